#include <limits>
#include <numeric>

#include <boost/test/unit_test.hpp>

#include "tests/exec/cpu/kernel_support.hpp"

using namespace tokenrouter;
using namespace tokenrouter::cpu;
using namespace tokenrouter::test;

namespace {

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float eps = 1e-6f;
constexpr double bf16_step = 1.0 / 128; ///< relative distance of neighbours, at most

double tolerance(storage kind) {
  return kind == storage::bf16 ? bf16_step : 2e-6;
}

std::vector<double> norm_reference(const float* x, const float* weight, std::uint32_t columns) {
  double squares = 0;
  for (std::uint32_t i = 0; i < columns; ++i)
    squares += static_cast<double>(x[i]) * x[i];
  const double factor = 1 / std::sqrt(squares / columns + eps);
  std::vector<double> out(columns);
  for (std::uint32_t i = 0; i < columns; ++i)
    out[i] = x[i] * factor * (weight ? weight[i] : 1.0f);
  return out;
}

std::vector<double> rotate_reference(const std::vector<double>& x, const float* cosines,
                                     const float* sines) {
  const std::size_t half = x.size() / 2;
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < half; ++i) {
    out[i] = x[i] * cosines[i] - x[i + half] * sines[i];
    out[i + half] = x[i + half] * cosines[i] + x[i] * sines[i];
  }
  return out;
}

float stored(const std::vector<std::byte>& bytes, storage kind, std::size_t index) {
  if (kind == storage::f32) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * index, 4);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, bytes.data() + 2 * index, 2);
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

} // namespace

BOOST_AUTO_TEST_CASE(norms_match_a_double_reference_at_any_width) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(3);
    for (std::uint32_t columns = 1; columns <= 70; ++columns) {
      auto x = random.row(columns + lanes);
      const auto weight = random.row(columns + lanes);
      std::fill(x.begin() + columns, x.end(), quiet_nan);
      const auto wanted = norm_reference(x.data(), weight.data(), columns);
      std::vector<float> out(padded(columns) + lanes, 7.0f);
      norm_call call{.x = x.data(),
                     .weight = weight.data(),
                     .columns = columns,
                     .eps = eps,
                     .out = out.data()};
      table.norm(call);
      for (std::uint32_t i = 0; i < columns; ++i)
        BOOST_TEST(close(out[i], wanted[i], 1e-6), columns << " columns, at " << i);
      BOOST_TEST(out[columns] == 7.0f, "writes past " << columns << " columns");
      for (const storage kind : both_storages) {
        table.norm_operand[index_of(kind)](call);
        const auto operand = operand_values(table, kind, out.data(), columns);
        for (std::uint32_t i = 0; i < columns; ++i)
          BOOST_TEST(close(operand[i], wanted[i], tolerance(kind)));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(operands_in_bf16_are_rounded_to_nearest_even) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(4);
    const auto x = random.row(37, -1000, 1000);
    std::vector<float> out(48);
    table.to_operand[index_of(storage::bf16)](x.data(), out.data(), 37);
    const auto operand = operand_values(table, storage::bf16, out.data(), 37);
    for (std::size_t i = 0; i < 37; ++i)
      BOOST_TEST(operand[i] == to_bf16(x[i]));
    table.to_operand[index_of(storage::f32)](x.data(), out.data(), 37);
    for (std::size_t i = 0; i < 37; ++i)
      BOOST_TEST(out[i] == x[i]);
  });
}

BOOST_AUTO_TEST_CASE(swiglu_matches_a_double_reference_over_the_whole_range) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(5);
    constexpr std::uint32_t panels = 40;
    std::vector<float> gate_up(panels * 2 * lanes);
    for (std::size_t i = 0; i < gate_up.size(); ++i) {
      const bool gate = i / lanes % 2 == 0;
      gate_up[i] = gate ? random.uniform(-120, 120) * random.uniform(0, 1) : random.uniform(-3, 3);
    }
    for (const storage kind : both_storages) {
      std::vector<float> out(panels * lanes);
      table.swiglu[index_of(kind)]({gate_up.data(), out.data(), 0, 13});
      table.swiglu[index_of(kind)]({gate_up.data(), out.data(), 13, panels});
      const auto operand = operand_values(table, kind, out.data(), panels * lanes);
      for (std::size_t i = 0; i < operand.size(); ++i) {
        const double gate = gate_up[i / lanes * 2 * lanes + i % lanes];
        const double up = gate_up[(i / lanes * 2 + 1) * lanes + i % lanes];
        BOOST_TEST(close(operand[i], gate / (1 + std::exp(-gate)) * up, tolerance(kind)),
                   "gate " << gate << " up " << up);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(rotation_matches_a_double_reference_and_fills_one_slot_of_the_block) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(6);
    for (const std::uint32_t dim : {2u, 24u, 32u, 64u, 80u, 128u})
      for (const storage kind : both_storages)
        for (const bool normed : {false, true}) {
          constexpr std::uint32_t heads = 3;
          constexpr std::uint32_t kv_heads = 2;
          const std::uint32_t slot = random.whole(0, 15);
          const auto qkv = random.row((heads + 2 * kv_heads) * dim);
          const auto weight = random.row(dim, 0.5f, 1.5f);
          std::vector<float> cosines, sines;
          for (std::uint32_t i = 0; i < dim / 2; ++i) {
            const double angle = random.uniform(0, 6.28f);
            cosines.push_back(static_cast<float>(std::cos(angle)));
            sines.push_back(static_cast<float>(std::sin(angle)));
          }
          std::vector<float> q(heads * dim);
          const std::size_t element = element_bytes(kind);
          std::vector<std::byte> keys(kv_heads * dim * lanes * element, std::byte{0xff});
          std::vector<std::byte> values(kv_heads * padded(dim) * lanes * element, std::byte{0xff});
          const float* norm = normed ? weight.data() : nullptr;
          table.rotate[index_of(kind)]({.qkv = qkv.data(),
                                        .heads = heads,
                                        .kv_heads = kv_heads,
                                        .head_dim = dim,
                                        .q_norm = norm,
                                        .k_norm = norm,
                                        .eps = eps,
                                        .cosines = cosines.data(),
                                        .sines = sines.data(),
                                        .q_out = q.data(),
                                        .k_block = keys.data(),
                                        .v_block = values.data(),
                                        .slot = slot});
          const auto wanted = [&](std::uint32_t head) {
            std::vector<double> x(qkv.begin() + head * dim, qkv.begin() + (head + 1) * dim);
            if (normed)
              x = norm_reference(qkv.data() + head * dim, norm, dim);
            return rotate_reference(x, cosines.data(), sines.data());
          };
          for (std::uint32_t head = 0; head < heads; ++head)
            for (std::uint32_t d = 0; d < dim; ++d)
              BOOST_TEST(close(q[head * dim + d], wanted(head)[d], 2e-6, 2e-6));
          std::size_t written = 0;
          for (std::uint32_t head = 0; head < kv_heads; ++head)
            for (std::uint32_t d = 0; d < dim; ++d) {
              const float key = stored(keys, kind, (std::size_t{head} * dim + d) * lanes + slot);
              BOOST_TEST(close(key, wanted(heads + head)[d], tolerance(kind), 2e-6));
              const float value =
                  stored(values, kind, (std::size_t{head} * lanes + slot) * padded(dim) + d);
              BOOST_TEST(close(value, qkv[(heads + kv_heads + head) * dim + d], tolerance(kind)));
            }
          for (std::size_t i = 0; i < keys.size() / element; ++i)
            written += stored(keys, kind, i) == stored(keys, kind, i);
          BOOST_TEST(written == kv_heads * dim, "other slots stay as they were");
        }
  });
}
