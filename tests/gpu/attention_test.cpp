#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/rows.hpp"
#include "tests/gpu/device_values.hpp"
#include "tests/gpu/gpu_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::gpu;
using namespace tokenrouter::test;
using bf16_t = __nv_bfloat16;

namespace {

struct heads_shape {
  std::uint32_t heads, kv_heads, head_dim;
};

/// One request's new tokens after `position` older ones, in a pool of two layers of which the
/// second is used. What no query may read is no number.
struct prompt_part {
  prompt_part(const heads_shape& shape, std::uint32_t position_, std::uint32_t count_)
      : s(shape), position(position_), count(count_) {
    const std::size_t side = std::size_t{s.kv_heads} * 16 * s.head_dim, block = 4 * side;
    const std::uint32_t used = (position + count + 15) / 16, blocks = used + 3;
    const std::size_t row = std::size_t{s.heads} * s.head_dim;
    std::vector<std::int32_t> all(blocks);
    std::iota(all.begin(), all.end(), 0);
    std::ranges::shuffle(all, std::mt19937(position + count));
    table.assign(all.begin(), all.begin() + used);
    pool = allocate(block * blocks * sizeof(bf16_t));
    q = allocate(count * row * sizeof(bf16_t));
    fill_random(pool.as<bf16_t>(), whole_matrix(block * blocks), 3, 1.0f, nullptr);
    fill_random(q.as<bf16_t>(), whole_matrix(count * row), 5, 2.0f, nullptr);
    const std::size_t block_bytes = block * sizeof(bf16_t);
    for (std::uint32_t b = used; b < blocks; ++b)
      cuda_check(
          cudaMemset(pool.as<std::byte>() + std::size_t(all[b]) * block_bytes, 0xff, block_bytes));
    if (const std::uint32_t last = (position + count) % 16; last > 0) {
      const std::size_t token = s.head_dim * sizeof(bf16_t), pitch = 16 * token;
      cuda_check(cudaMemset2D(pool.as<std::byte>() + std::size_t(table.back()) * block_bytes +
                                  last * token,
                              pitch, 0xff, pitch - last * token, 4 * s.kv_heads));
    }
    tables = copied(table);
    call = {.q = q.as(),
            .kv = {pool.as(), block, 2 * side, 3 * side},
            .tables = tables.as<std::int32_t>(),
            .heads = s.heads,
            .kv_heads = s.kv_heads,
            .head_dim = s.head_dim,
            .scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim)),
            .out = nullptr};
  }

  template <class Work>
  std::vector<float> results(const Work& work) {
    const auto out = allocate(q.bytes());
    cuda_check(cudaMemset(out.as(), 0xff, out.bytes()));
    call.out = out.as();
    work();
    cuda_check(cudaDeviceSynchronize());
    std::vector<bf16_t> there(out.bytes() / sizeof(bf16_t));
    cuda_check(cudaMemcpy(there.data(), out.as(), out.bytes(), cudaMemcpyDeviceToHost));
    std::vector<float> values(there.size());
    std::ranges::transform(there, values.begin(), [](bf16_t x) { return __bfloat162float(x); });
    return values;
  }

  std::vector<float> plain() {
    std::vector<std::int32_t> positions(count), tables_of(count, 0);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(position));
    const auto at = copied(positions), of = copied(tables_of);
    return results([&] {
      plain_attention<bf16_t>(call, at.as<std::int32_t>(), of.as<std::int32_t>(), count, nullptr);
    });
  }

  std::vector<float> tiled(std::int32_t each, decltype(tile_attention)& kernel) {
    std::vector<attention_tile> tiles;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(count); i += each)
      tiles.push_back({i, std::min(each, static_cast<std::int32_t>(count) - i),
                       static_cast<std::int32_t>(position) + i, 0});
    const auto there = copied(tiles);
    return results([&] {
      kernel(call, there.as<attention_tile>(), static_cast<std::uint32_t>(tiles.size()), nullptr);
    });
  }

  heads_shape s;
  std::uint32_t position, count;
  std::vector<std::int32_t> table;
  device_memory pool, q, tables;
  attention_call call{};
};

/// Results are sums of weights and values that are rounded to bf16 on the way.
void expect_close(const std::vector<float>& got, const std::vector<float>& wanted) {
  BOOST_REQUIRE_EQUAL(got.size(), wanted.size());
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - wanted[i]) <= 0.01f + 0.01f * std::abs(wanted[i])) && wrong++ == 0)
      first = i;
  BOOST_TEST(wrong == 0u, wrong << " of " << got.size() << " differ, first at " << first << ": "
                                << got[first] << " not " << wanted[first]);
}

constexpr heads_shape shapes[] = {{16, 8, 128}, {8, 1, 64}, {32, 4, 128}, {6, 2, 64}};
constexpr std::pair<std::uint32_t, std::uint32_t> parts[] = {
    {0, 17},  {0, 64},    {0, 128},   {0, 129},   {0, 300},   {1, 31},
    {15, 65}, {100, 128}, {127, 130}, {1000, 24}, {777, 515}, {4096, 256}};

void expect_kernel(std::int32_t each, decltype(tile_attention)& kernel) {
  prepare_attention();
  for (const auto& shape : shapes)
    for (const auto& [position, count] : parts)
      BOOST_TEST_CONTEXT(shape.heads << '/' << shape.kv_heads << " heads of " << shape.head_dim
                                     << ", " << count << " tokens after " << position) {
        prompt_part part(shape, position, count);
        const auto wanted = part.plain();
        BOOST_TEST(std::ranges::all_of(wanted, [](float x) { return std::isfinite(x); }));
        expect_close(part.tiled(each, kernel), wanted);
      }
}

} // namespace

BOOST_AUTO_TEST_CASE(tiles_attend_as_every_query_on_its_own) {
  expect_kernel(tile_tokens, tile_attention);
}

BOOST_AUTO_TEST_CASE(warpgroups_attend_as_every_query_on_its_own,
                     *boost::unit_test::precondition(has_warpgroups{})) {
  expect_kernel(warpgroup_tile_tokens, warpgroup_attention);
}
