#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "gpu/kernels/exact_product.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/kernels/skinny_product.hpp"
#include "gpu/kernels/warpgroup_product.hpp"
#include "tests/gpu/device_values.hpp"
#include "tests/gpu/gpu_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::gpu;
using namespace tokenrouter::test;
using bf16_t = __nv_bfloat16;

namespace {

/// Operands of one product, and its result by the kernel that adds in order.
struct product_case {
  product_case(std::uint32_t columns_, std::uint32_t k_, std::uint32_t rows_)
      : columns(columns_), k(k_), rows(rows_),
        weight(allocate(std::size_t{columns} * k * sizeof(bf16_t))),
        x(allocate(std::size_t{rows} * k * sizeof(bf16_t))) {
    fill_random(weight.as<bf16_t>(), whole_matrix(columns, k), 1, 0.1f, nullptr);
    fill_random(x.as<bf16_t>(), whole_matrix(rows, k), 2, 1.0f, nullptr);
    sums = floats(columns, [&](void* y) {
      exact_product(x.as<bf16_t>(), weight.as<bf16_t>(), rows, columns, k, y, product_output::exact,
                    nullptr);
    });
  }

  skinny_call call(void* y) const {
    return {.weight = weight.as<bf16_t>(),
            .x = x.as<bf16_t>(),
            .residual = nullptr,
            .norm_weight = nullptr,
            .eps = 0,
            .rows = rows,
            .columns = columns,
            .k = k,
            .y = y};
  }

  /// What `work` writes into [rows][width] floats that are 3 before.
  std::vector<float> floats(std::uint32_t width, const std::function<void(void*)>& work) const {
    std::vector<float> there(std::size_t{rows + 1} * width, 3.0f);
    const auto y = allocate(there.size() * sizeof(float));
    cuda_check(cudaMemcpy(y.as(), there.data(), y.bytes(), cudaMemcpyHostToDevice));
    work(y.as());
    cuda_check(cudaDeviceSynchronize());
    cuda_check(cudaMemcpy(there.data(), y.as(), y.bytes(), cudaMemcpyDeviceToHost));
    for (std::uint32_t i = 0; i < width; ++i)
      BOOST_REQUIRE(there[std::size_t{rows} * width + i] == 3.0f);
    there.resize(std::size_t{rows} * width);
    return there;
  }

  std::vector<float> operands(std::uint32_t width, const std::function<void(void*)>& work) const {
    std::vector<bf16_t> there(std::size_t{rows + 1} * width, __float2bfloat16(3.0f));
    const auto y = allocate(there.size() * sizeof(bf16_t));
    cuda_check(cudaMemcpy(y.as(), there.data(), y.bytes(), cudaMemcpyHostToDevice));
    work(y.as());
    cuda_check(cudaDeviceSynchronize());
    cuda_check(cudaMemcpy(there.data(), y.as(), y.bytes(), cudaMemcpyDeviceToHost));
    std::vector<float> values(std::size_t{rows} * width);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = __bfloat162float(there[i]);
    for (std::uint32_t i = 0; i < width; ++i)
      BOOST_REQUIRE(__bfloat162float(there[std::size_t{rows} * width + i]) == 3.0f);
    return values;
  }

  /// Of gates and ups in groups of 8.
  std::vector<float> gated() const {
    std::vector<float> values;
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t i = 0; i < columns / 2; ++i) {
        const std::size_t at = std::size_t{row} * columns + i / 8 * 16 + i % 8;
        values.push_back(sums[at] / (1.0f + std::exp(-sums[at])) * sums[at + 8]);
      }
    return values;
  }

  std::uint32_t columns, k, rows;
  device_memory weight, x;
  std::vector<float> sums;
};

void expect_close(const std::vector<float>& got, const std::vector<float>& wanted, float offset,
                  float tolerance) {
  BOOST_REQUIRE_EQUAL(got.size(), wanted.size());
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - offset - wanted[i]) <= tolerance * (1 + std::abs(wanted[i]))) &&
        wrong++ == 0)
      first = i;
  BOOST_TEST(wrong == 0u, wrong << " of " << got.size() << " differ, first at " << first << ": "
                                << got[first] << " not " << wanted[first] + offset);
}

using product_kernel = std::function<void(const skinny_call&, product_output)>;

/// All outputs of a kernel; `gates`: it takes swiglu here.
void expect_product(const product_case& c, bool gates, const product_kernel& kernel) {
  const auto run = [&](product_output output) {
    return [&, output](void* y) { kernel(c.call(y), output); };
  };
  expect_close(c.floats(c.columns, run(product_output::exact)), c.sums, 0, 1e-3f);
  expect_close(c.floats(c.columns, run(product_output::residual)), c.sums, 3, 1e-3f);
  expect_close(c.operands(c.columns, run(product_output::operand)), c.sums, 0, 1e-2f);
  if (gates)
    expect_close(c.operands(c.columns / 2, run(product_output::swiglu)), c.gated(), 0, 1e-2f);
}

constexpr std::pair<std::uint32_t, std::uint32_t> shapes[] = {
    {64, 64}, {128, 512}, {192, 1024}, {1024, 3072}, {4096, 1024}};

} // namespace

BOOST_AUTO_TEST_CASE(skinny_products_are_those_that_add_in_order) {
  prepare_skinny_products();
  for (const auto& [columns, k] : shapes)
    for (const std::uint32_t rows : {1u, 2u, 7u, 8u, 9u, 16u}) {
      const product_case c(columns, k, rows);
      for (const std::uint32_t each : {8u, 16u, 32u, 64u})
        BOOST_TEST_CONTEXT(rows << " rows, " << columns << " columns by " << each << ", k " << k)
      expect_product(c, each >= 16, [&](const skinny_call& call, product_output output) {
        skinny_product(call, output, {each}, nullptr);
      });
    }
}

BOOST_AUTO_TEST_CASE(warpgroup_products_are_those_that_add_in_order,
                     *boost::unit_test::precondition(has_warpgroups{})) {
  prepare_warpgroup_products();
  for (const auto& [columns, k] : shapes)
    for (const std::uint32_t rows : {1u, 7u, 16u, 17u, 32u, 33u, 64u}) {
      const product_case c(columns, k, rows);
      for (const std::uint32_t parts : {1u, 2u, 4u, 8u})
        if (k % (64 * parts) == 0)
          BOOST_TEST_CONTEXT(rows << " rows, " << columns << " columns, k " << k << " in " << parts)
      expect_product(c, parts < 8, [&](const skinny_call& call, product_output output) {
        warpgroup_product(call, output, parts, nullptr);
      });
    }
}
