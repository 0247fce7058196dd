#include "runtime/exec/cpu/packing.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/core/check.hpp"

namespace tokenrouter::cpu {
namespace {

std::uint32_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x)
    return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

/// One row of a tensor as float32.
void read_row(const tensor_view& tensor, std::int64_t row, std::span<float> out) {
  const std::size_t row_bytes =
      tensor.bytes.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, tensor.shape[0]));
  const tensor_view slice{
      tensor.dtype,
      {static_cast<std::int64_t>(out.size())},
      tensor.bytes.subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes)};
  to_float(slice, out);
}

void pack_panel(std::span<const column_source> columns, std::uint32_t k, storage kind,
                std::byte* panel, std::vector<float>& rows) {
  rows.assign(std::size_t{lanes} * k, 0.0f);
  for (std::uint32_t c = 0; c < lanes; ++c)
    if (columns[c].weight)
      read_row(*columns[c].weight, columns[c].row, {rows.data() + std::size_t{c} * k, k});
  const auto at = [&](std::uint32_t c, std::uint32_t i) {
    return i < k ? rows[std::size_t{c} * k + i] : 0.0f;
  };
  if (kind == storage::f32) {
    auto* out = reinterpret_cast<float*>(panel);
    for (std::uint32_t i = 0; i < k; ++i)
      for (std::uint32_t c = 0; c < lanes; ++c)
        *out++ = at(c, i);
    return;
  }
  auto* out = reinterpret_cast<std::uint32_t*>(panel);
  for (std::uint32_t i = 0; i < k; i += 2)
    for (std::uint32_t c = 0; c < lanes; ++c)
      *out++ = bf16_bits(at(c, i)) | (bf16_bits(at(c, i + 1)) << 16);
}

void pad_to_panels(std::vector<column_source>& columns) {
  columns.resize((columns.size() + lanes - 1) / lanes * lanes);
}

} // namespace

std::vector<column_source> stacked(const std::vector<const tensor_view*>& weights,
                                   const std::vector<const tensor_view*>& biases) {
  std::vector<column_source> columns;
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::int64_t row = 0; row < weights[i]->shape[0]; ++row)
      columns.push_back({weights[i], biases.empty() ? nullptr : biases[i], row});
  pad_to_panels(columns);
  return columns;
}

std::vector<column_source> interleaved(const tensor_view* first, const tensor_view* second,
                                       const tensor_view* first_bias,
                                       const tensor_view* second_bias) {
  std::vector<column_source> columns;
  for (std::int64_t begin = 0; begin < first->shape[0]; begin += lanes) {
    const std::int64_t end = std::min<std::int64_t>(begin + lanes, first->shape[0]);
    for (std::int64_t row = begin; row < end; ++row)
      columns.push_back({first, first_bias, row});
    pad_to_panels(columns);
    for (std::int64_t row = begin; row < end; ++row)
      columns.push_back({second, second_bias, row});
    pad_to_panels(columns);
  }
  return columns;
}

void pack(const std::vector<column_source>& columns, std::uint32_t k, storage kind,
          std::byte* panels, float* bias, thread_pool& pool) {
  check(columns.size() % lanes == 0, "pack: whole panels");
  const auto panel_count = static_cast<std::uint32_t>(columns.size() / lanes);
  pool.run([&](worker& w) {
    std::vector<float> rows;
    const auto share = w.share(panel_count);
    for (std::uint32_t p = share.begin; p < share.end; ++p)
      pack_panel({columns.data() + std::size_t{p} * lanes, lanes}, k, kind,
                 panels + p * panel_bytes(kind, k), rows);
  });
  if (!bias)
    return;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    bias[c] = 0;
    if (columns[c].bias)
      read_row(*columns[c].bias, columns[c].row, {bias + c, 1});
  }
}

} // namespace tokenrouter::cpu
