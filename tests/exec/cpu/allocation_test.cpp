#include <atomic>
#include <cstdlib>
#include <new>

#include <boost/test/unit_test.hpp>

#include "runtime/exec/cpu/cpu_backend.hpp"
#include "tests/exec/cpu/test_sequence.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

} // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* at = std::malloc(bytes ? bytes : 1))
    return at;
  throw std::bad_alloc();
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}

using namespace tokenrouter;
using namespace tokenrouter::test;

BOOST_AUTO_TEST_CASE(a_step_like_an_earlier_one_allocates_nothing) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-xs";
  options.heads.push_back({"r2r", "examples/models/abacus/routers/r2r.safetensors"});
  options.threads = 2;
  const auto model = load(options, 64);
  step_input in;
  for (std::uint32_t i = 0; i < 5; ++i) {
    sequence s{std::vector<token_id>(40, static_cast<token_id>(i + 3)), blocks_for(48, 3 * i), 0};
    add_row(in, s, 40, true);
    in.rows.back().signals = in.rows.back().signals | signal::heads;
    in.rows.back().sampling.temperature = i % 2 ? 0.8f : 0.0f;
    in.rows.back().sampling.top_k = 20;
  }
  step_output out;
  model->step(in, out);
  model->step(in, out);
  const std::size_t before = allocations;
  BOOST_TEST(before > 0u);
  model->step(in, out);
  const std::size_t after = allocations;
  BOOST_TEST(after == before);
}
