#include <algorithm>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "tests/exec/cpu/kernel_support.hpp"

using namespace tokenrouter;
using namespace tokenrouter::cpu;
using namespace tokenrouter::test;

namespace {

/// One key-value head of one request in a pool of blocks, all else in the pool being NaN.
struct cache {
  storage kind;
  std::uint32_t dim, positions;
  std::size_t k_offset, v_offset, block_bytes;
  std::vector<block_id> blocks;
  std::vector<std::byte> pool;
  std::vector<float> keys, values; ///< [positions][dim], as stored

  cache(storage s, std::uint32_t head_dim, std::uint32_t count, std::uint64_t seed)
      : kind(s), dim(head_dim), positions(count) {
    random_source random(seed);
    keys = random.row(std::size_t{positions} * dim);
    values = random.row(std::size_t{positions} * dim);
    if (kind == storage::bf16)
      for (auto* all : {&keys, &values})
        std::transform(all->begin(), all->end(), all->begin(), to_bf16);
    k_offset = 64;
    v_offset = k_offset + std::size_t{dim} * lanes * element_bytes(kind);
    block_bytes = v_offset + std::size_t{padded(dim)} * lanes * element_bytes(kind);
    place(1);
  }

  /// Writes the head into blocks numbered in another order.
  void place(std::uint64_t seed) {
    const std::uint32_t count = (positions + lanes - 1) / lanes;
    std::vector<block_id> numbers(count + 3);
    for (std::uint32_t i = 0; i < numbers.size(); ++i)
      numbers[i] = i;
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(seed));
    blocks.assign(numbers.begin(), numbers.begin() + count);
    pool.assign(numbers.size() * block_bytes, std::byte{0xff});
    for (std::uint32_t p = 0; p < positions; ++p)
      for (std::uint32_t d = 0; d < dim; ++d) {
        std::byte* block = pool.data() + blocks[p / lanes] * block_bytes;
        put(block + k_offset, std::size_t{d} * lanes + p % lanes, keys[std::size_t{p} * dim + d]);
        put(block + v_offset, std::size_t{p % lanes} * padded(dim) + d,
            values[std::size_t{p} * dim + d]);
      }
  }

  void put(std::byte* at, std::size_t index, float value) const {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto half = static_cast<std::uint16_t>(bits >> 16);
    if (kind == storage::f32)
      std::memcpy(at + 4 * index, &bits, 4);
    else
      std::memcpy(at + 2 * index, &half, 2);
  }

  std::vector<double> reference(const float* q, std::uint32_t seen, double scale) const {
    std::vector<double> scores(seen);
    for (std::uint32_t p = 0; p < seen; ++p)
      for (std::uint32_t d = 0; d < dim; ++d)
        scores[p] += static_cast<double>(q[d]) * keys[std::size_t{p} * dim + d] * scale;
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    std::vector<double> out(dim);
    for (std::uint32_t p = 0; p < seen; ++p) {
      const double weight = std::exp(scores[p] - largest);
      sum += weight;
      for (std::uint32_t d = 0; d < dim; ++d)
        out[d] += weight * values[std::size_t{p} * dim + d];
    }
    for (auto& x : out)
      x /= sum;
    return out;
  }

  /// Outputs of queries i that see seen[i] positions, [query][dim].
  std::vector<std::vector<float>> run(const kernel_table& table, const std::vector<float>& q,
                                      const std::vector<std::uint32_t>& seen, float scale) const {
    std::vector<attention_query> queries;
    const std::size_t stride = padded(dim);
    std::vector<float> out(seen.size() * stride);
    for (std::size_t i = 0; i < seen.size(); ++i)
      queries.push_back({q.data() + i * dim, out.data() + i * stride, 0, seen[i]});
    std::vector<float> scratch(seen.size() * stride, std::numeric_limits<float>::quiet_NaN());
    table.attend[index_of(kind)]({.queries = queries.data(),
                                  .query_count = static_cast<std::uint32_t>(queries.size()),
                                  .head_dim = dim,
                                  .scale = scale,
                                  .blocks = blocks.data(),
                                  .pool = pool.data(),
                                  .block_bytes = block_bytes,
                                  .k_offset = k_offset,
                                  .v_offset = v_offset,
                                  .scratch = scratch.data()});
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < seen.size(); ++i)
      rows.push_back(operand_values(table, kind, out.data() + i * stride, dim));
    return rows;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(attention_matches_a_double_reference_beside_memory_full_of_nan) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(8);
    for (int trial = 0; trial < 40; ++trial)
      for (const storage kind : both_storages) {
        const std::uint32_t dim = 2 * random.whole(1, 50);
        const cache c(kind, dim, random.whole(1, 90), static_cast<std::uint64_t>(trial));
        const auto count = random.whole(1, attention_queries_max);
        const auto q = random.row(std::size_t{count} * dim, -4, 4);
        std::vector<std::uint32_t> seen;
        for (std::uint32_t i = 0; i < count; ++i)
          seen.push_back(random.whole(1, c.positions));
        const float scale = 1 / std::sqrt(static_cast<float>(dim));
        const auto rows = c.run(table, q, seen, scale);
        for (std::uint32_t i = 0; i < count; ++i) {
          const auto wanted = c.reference(q.data() + i * dim, seen[i], scale);
          const double relative = kind == storage::bf16 ? 1.0 / 128 : 1e-5;
          for (std::uint32_t d = 0; d < dim; ++d)
            BOOST_TEST(close(rows[i][d], wanted[d], relative, 1e-5),
                       "dim " << dim << ", sees " << seen[i] << ", query " << i);
        }
      }
  });
}

BOOST_AUTO_TEST_CASE(a_query_has_the_same_bits_alone_in_company_and_in_other_blocks) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(9);
    for (const storage kind : both_storages) {
      cache c(kind, 40, 77, 3);
      const auto q = random.row(std::size_t{attention_queries_max} * c.dim, -4, 4);
      std::vector<std::uint32_t> seen;
      for (std::uint32_t i = 0; i < attention_queries_max; ++i)
        seen.push_back(62 + i);
      const auto together = c.run(table, q, seen, 0.2f);
      c.place(99);
      for (std::uint32_t i = 0; i < attention_queries_max; ++i) {
        const std::vector<float> one(q.begin() + i * c.dim, q.begin() + (i + 1) * c.dim);
        const auto alone = c.run(table, one, {seen[i]}, 0.2f);
        BOOST_TEST(std::memcmp(alone[0].data(), together[i].data(), c.dim * sizeof(float)) == 0,
                   "query " << i);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(all_kernel_sets_attend_with_the_same_bits) {
  const auto* scalar = runnable_kernels().front();
  random_source random(10);
  for (const storage kind : both_storages) {
    const cache c(kind, 64, 100, 4);
    const auto q = random.row(std::size_t{5} * c.dim, -4, 4);
    const std::vector<std::uint32_t> seen = {1, 16, 17, 99, 100};
    const auto wanted = c.run(*scalar, q, seen, 0.125f);
    for_each_kernel_set([&](const kernel_table& table) {
      const auto found = c.run(table, q, seen, 0.125f);
      for (std::size_t i = 0; i < seen.size(); ++i)
        BOOST_TEST(std::memcmp(found[i].data(), wanted[i].data(), c.dim * sizeof(float)) == 0);
    });
  }
}
