#include <boost/test/unit_test.hpp>

#include "gpu/cuda_backend.hpp"
#include "runtime/core/limits.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_block_holds_records_only_for_heads_with_a_window) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-xs";
  for (const auto compute : {compute_type::bfloat16, compute_type::float32}) {
    options.compute = compute;
    options.heads = {{"r2r", "examples/models/abacus/routers/r2r.safetensors"}};
    const auto plain = estimate_cuda_memory(options);
    BOOST_REQUIRE(plain.has_value());
    options.heads.push_back(
        {"r2r_multi", "examples/models/abacus/routers/r2r_multi.safetensors", 3});
    const auto more = estimate_cuda_memory(options);
    BOOST_REQUIRE(more.has_value());
    // A hidden state of 64 and 33 logits of each position, in whole rows of a head's 32 elements.
    const std::uint64_t records = limits::block_tokens * (64u + 33u) * sizeof(float);
    const std::uint64_t row = 32 * (compute == compute_type::bfloat16 ? 2 : 4);
    BOOST_TEST(more->kv_bytes_per_block - plain->kv_bytes_per_block ==
               (records + row - 1) / row * row);
  }
}
