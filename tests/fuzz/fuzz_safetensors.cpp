// A safetensors file: refused, or every tensor lies inside it.
#include "runtime/core/check.hpp"
#include "runtime/exec/safetensors.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace tokenrouter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const test::memory_file file(data, bytes);
  const auto weights = weight_files::open(file.path());
  if (!weights)
    return 0;
  std::size_t all_bytes = 0;
  for (const auto& name : weights->names()) {
    const auto& tensor = *weights->find(name);
    all_bytes += tensor.bytes.size();
    if (tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16")
      check(static_cast<std::int64_t>(to_float(tensor).size()) == tensor.elements(), "all of it");
  }
  check(all_bytes <= bytes, "tensors do not overlap");
  return 0;
}
