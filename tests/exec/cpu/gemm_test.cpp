#include <limits>

#include <boost/test/unit_test.hpp>

#include "runtime/exec/cpu/packing.hpp"
#include "tests/exec/cpu/kernel_support.hpp"

using namespace tokenrouter;
using namespace tokenrouter::cpu;
using namespace tokenrouter::test;

namespace {

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

/// A matrix product with everything it needs, in one place.
struct product {
  std::uint32_t rows, k, columns;
  std::vector<float> weight, input, bias, before;
  bool biased, accumulate;

  product(std::uint32_t r, std::uint32_t inputs, std::uint32_t c, std::uint64_t seed)
      : rows(r), k(inputs), columns(c) {
    random_source random(seed);
    weight = random.row(std::size_t{columns} * k, -1, 1);
    input = random.row(std::size_t{rows} * k);
    bias = random.row(padded(columns));
    before = random.row(std::size_t{rows} * padded(columns));
    biased = random.whole(0, 1) == 1;
    accumulate = random.whole(0, 1) == 1;
  }

  std::vector<std::byte> pack_weights(storage kind) const {
    const tensor_view view{"F32", {columns, k}, std::as_bytes(std::span(weight))};
    const auto sources = stacked({&view}, {});
    std::vector<std::byte> panels(sources.size() / lanes * panel_bytes(kind, k));
    thread_pool pool(1);
    pack(sources, k, kind, panels.data(), nullptr, pool);
    return panels;
  }

  /// [rows][padded(columns)]. Memory between rows of the operand holds NaN.
  std::vector<float> run(const kernel_table& table, storage kind, std::uint32_t first_row,
                         std::uint32_t row_count, std::uint32_t panel_split = 0) const {
    const std::size_t stride = padded(k) + lanes;
    std::vector<float> operand(row_count * stride, quiet_nan);
    for (std::uint32_t r = 0; r < row_count; ++r)
      table.to_operand[index_of(kind)](input.data() + std::size_t{first_row + r} * k,
                                       operand.data() + r * stride, k);
    const auto panels = pack_weights(kind);
    const std::size_t out_stride = padded(columns);
    std::vector<float> out(before.begin() + static_cast<std::ptrdiff_t>(first_row * out_stride),
                           before.begin() +
                               static_cast<std::ptrdiff_t>((first_row + row_count) * out_stride));
    gemm_call call{.panels = panels.data(),
                   .panel_begin = 0,
                   .panel_end = panel_split,
                   .k = k,
                   .operand = operand.data(),
                   .operand_stride = stride,
                   .rows = row_count,
                   .out = out.data(),
                   .out_stride = out_stride,
                   .bias = biased ? bias.data() : nullptr,
                   .accumulate = accumulate};
    table.gemm[index_of(kind)](call);
    call.panel_begin = panel_split;
    call.panel_end = padded(columns) / lanes;
    table.gemm[index_of(kind)](call);
    return out;
  }

  void check_against_reference(const std::vector<float>& out, storage kind) const {
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t c = 0; c < columns; ++c) {
        double sum = 0;
        double magnitude = 0;
        for (std::uint32_t i = 0; i < k; ++i) {
          float w = weight[std::size_t{c} * k + i];
          float x = input[std::size_t{r} * k + i];
          if (kind == storage::bf16) {
            w = to_bf16(w);
            x = to_bf16(x);
          }
          sum += static_cast<double>(w) * x;
          magnitude += std::abs(static_cast<double>(w) * x);
        }
        if (biased)
          sum += bias[c];
        if (accumulate)
          sum += before[std::size_t{r} * padded(columns) + c];
        const double found = out[std::size_t{r} * padded(columns) + c];
        BOOST_TEST(std::abs(found - sum) <= 1e-6 * (magnitude + 4) + 1e-7 * k);
      }
  }
};

std::vector<float> rows_of(const std::vector<float>& all, std::size_t stride, std::size_t first,
                           std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first * stride),
          all.begin() + static_cast<std::ptrdiff_t>((first + count) * stride)};
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(products_of_any_shape_match_a_double_reference) {
  for_each_kernel_set([](const kernel_table& table) {
    random_source random(11);
    for (int trial = 0; trial < 60; ++trial) {
      const product p(random.whole(1, 20), random.whole(1, 130), random.whole(1, 180),
                      static_cast<std::uint64_t>(trial));
      for (const storage kind : both_storages)
        BOOST_TEST_CONTEXT(p.rows << " rows, " << p.k << " inputs, " << p.columns << " columns, "
                                  << (kind == storage::bf16 ? "bf16" : "f32"))
      p.check_against_reference(p.run(table, kind, 0, p.rows), kind);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_row_has_the_same_bits_in_any_batch_and_any_cut_of_the_panels) {
  for_each_kernel_set([](const kernel_table& table) {
    const product p(70, 77, 213, 5);
    const std::size_t stride = padded(p.columns);
    for (const storage kind : both_storages) {
      const auto all = p.run(table, kind, 0, p.rows);
      for (std::uint32_t count = 1; count <= 70; ++count) {
        const std::uint32_t first = (count * 37) % (71 - count);
        const auto some = p.run(table, kind, first, count, count % 14);
        BOOST_TEST(equal_bits(some, rows_of(all, stride, first, count)),
                   count << " rows from " << first);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(all_kernel_sets_give_the_same_bits) {
  const product p(23, 131, 200, 6);
  const auto* scalar = runnable_kernels().front();
  for_each_kernel_set([&](const kernel_table& table) {
    for (const storage kind : both_storages)
      BOOST_TEST(equal_bits(p.run(table, kind, 0, p.rows), p.run(*scalar, kind, 0, p.rows)),
                 "storage " << index_of(kind));
  });
}

BOOST_AUTO_TEST_CASE(interleaved_columns_alternate_by_panel_and_pad_with_zeros) {
  const std::vector<float> gate(20, 1.0f);
  const std::vector<float> up(20, 2.0f);
  const tensor_view gates{"F32", {20, 1}, std::as_bytes(std::span(gate))};
  const tensor_view ups{"F32", {20, 1}, std::as_bytes(std::span(up))};
  const auto columns = interleaved(&gates, &ups, nullptr, nullptr);
  BOOST_TEST_REQUIRE(columns.size() == 64u);
  std::vector<float> panels(64);
  thread_pool pool(1);
  pack(columns, 1, storage::f32, reinterpret_cast<std::byte*>(panels.data()), nullptr, pool);
  for (std::size_t i = 0; i < 64; ++i) {
    const bool padding = i / 32 == 1 && i % 16 >= 4;
    BOOST_TEST(panels[i] == (padding ? 0.0f : i / 16 % 2 ? 2.0f : 1.0f), "column " << i);
  }
}
