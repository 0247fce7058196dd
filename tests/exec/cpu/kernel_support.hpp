#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/exec/cpu/kernels.hpp"

/// Helpers of the kernel tests: random rows, rounding, and a loop over what this machine runs.
namespace tokenrouter::test {

inline float to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

class random_source {
 public:
  explicit random_source(std::uint64_t seed) : engine_(seed) {}
  float uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  std::uint32_t whole(std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(engine_);
  }
  std::vector<float> row(std::size_t size, float low = -2, float high = 2) {
    std::vector<float> values(size);
    for (auto& v : values)
      v = uniform(low, high);
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

/// Calls f for every set this machine runs, and prints those it can't.
template <class F>
void for_each_kernel_set(F f) {
  for (const auto& name : cpu::unrunnable_kernels())
    BOOST_TEST_MESSAGE("kernels not runnable here, so not tested: " << name);
  const auto tables = cpu::runnable_kernels();
  BOOST_TEST_REQUIRE(!tables.empty());
  for (const auto* table : tables)
    BOOST_TEST_CONTEXT("kernels " << table->name) {
      f(*table);
    }
}

inline constexpr cpu::storage both_storages[] = {cpu::storage::bf16, cpu::storage::f32};

inline std::size_t index_of(cpu::storage s) {
  return static_cast<std::size_t>(s);
}

/// Reads `columns` values of an operand row back, whatever form the set gives it.
inline std::vector<float> operand_values(const cpu::kernel_table& table, cpu::storage kind,
                                         const float* row, std::uint32_t columns) {
  std::vector<float> values(columns);
  const bool packed = kind == cpu::storage::bf16 && std::string_view(table.name) == "avx512-bf16";
  for (std::uint32_t i = 0; i < columns; ++i) {
    if (packed) {
      std::uint16_t half = 0;
      std::memcpy(&half, reinterpret_cast<const std::byte*>(row) + 2 * i, 2);
      values[i] = std::bit_cast<float>(std::uint32_t{half} << 16);
    } else {
      values[i] = row[i];
    }
  }
  return values;
}

/// Whether a is within `relative` of b, or of its bf16 neighbours where values were rounded.
inline bool close(double a, double b, double relative, double absolute = 1e-6) {
  return std::abs(a - b) <= absolute + relative * std::abs(b);
}

} // namespace tokenrouter::test
