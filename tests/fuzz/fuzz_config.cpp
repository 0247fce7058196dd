// A job's YAML file: it has faults, or can be hashed and checked further.
#include "runtime/config/load.hpp"
#include "runtime/core/check.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace tokenrouter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const test::memory_file file(data, bytes);
  const auto load = load_config(file.path(), {});
  for (const auto& fault : load.faults)
    check(!to_string(fault).empty(), "a fault says what it is");
  if (load.faults.empty()) {
    (void)config_hash(load.config);
    (void)validate_ranks(load.config, 2);
  }
  return 0;
}
