#include "gpu/products.hpp"

#include <algorithm>

#include <cuda_bf16.h>

#include "gpu/cuda_error.hpp"
#include "gpu/kernels/exact_product.hpp"
#include "gpu/kernels/kernel_target.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/kernels/warpgroup_product.hpp"
#include "gpu/recorded_work.hpp"

namespace tokenrouter::gpu {
namespace {

constexpr std::uint32_t library_plans_tried = 6;
constexpr std::uint32_t shapes_of_blocks[] = {8, 16, 32, 64};

bool fuses_bias(const matrix& m, product_output output) {
  return output == product_output::swiglu && m.bias;
}

} // namespace

result<products> products::create(compute_type compute, void* scratch, std::uint32_t processors) {
  products p;
  p.compute_ = compute;
  p.scratch_ = scratch;
  p.processors_ = processors;
  if (compute == compute_type::bfloat16) {
    auto library = library_products::open();
    if (!library)
      return tl::unexpected(library.error());
    p.library_ = std::move(*library);
    prepare_skinny_products();
    p.warpgroups_ = wgmma_runs_here();
    if (p.warpgroups_)
      prepare_warpgroup_products();
  }
  return p;
}

bool products::skinny_fits(const matrix& m, std::uint32_t rows, product_output output) const {
  return compute_ == compute_type::bfloat16 && rows <= skinny_rows_max && m.k % 64 == 0 &&
         m.columns % 8 == 0 && !fuses_bias(m, output);
}

std::vector<products::way> products::ways(const matrix& m, std::uint32_t rows,
                                          product_output output, std::uint32_t plans) {
  std::vector<way> out;
  if (skinny_fits(m, rows, output))
    for (const std::uint32_t columns : shapes_of_blocks)
      if (m.columns % columns == 0 && (output != product_output::swiglu || columns >= 16) &&
          (columns == 8 || m.columns / columns >= processors_ / 2))
        out.push_back({way::kind::skinny, {columns}, 1, nullptr});
  if (library_ && m.k % 8 == 0 && m.columns % 8 == 0) {
    const auto plain = output == product_output::swiglu ? product_output::operand : output;
    for (auto& plan : library_->plans({rows, m.columns, m.k, plain}, plans))
      out.push_back({way::kind::library, {}, 1, std::move(plan)});
  }
  if (warpgroups_ && rows <= warpgroup_rows_max && m.columns % 64 == 0 && !fuses_bias(m, output))
    for (const std::uint32_t parts : {1u, 2u, 4u, 8u})
      if (m.k % (64 * parts) == 0 && (output != product_output::swiglu || parts < 8) &&
          (parts == 1 || m.columns / 64 * parts <= 2 * processors_))
        out.push_back({way::kind::warpgroup, {}, parts, nullptr});
  if (out.empty())
    out.push_back({});
  return out;
}

const products::way& products::chosen(const matrix& m, std::uint32_t rows, product_output output) {
  const key k{rows, m.columns, m.k, output};
  const auto found = chosen_.find(k);
  return found != chosen_.end()
             ? found->second
             : chosen_.emplace(k, ways(m, rows, output, 1).front()).first->second;
}

bool products::norms_itself(const matrix& m, std::uint32_t rows, product_output output,
                            bool has_residual) const {
  const auto found = chosen_.find({rows, m.columns, m.k, output});
  return has_residual && found != chosen_.end() && found->second.what == way::kind::skinny &&
         skinny_norm_fits(rows, m.k);
}

void products::tune(std::span<const matrix> sample, std::uint32_t rows, product_output output,
                    const product_input& input, void* y, cudaStream_t stream) {
  const key k{rows, sample.front().columns, sample.front().k, output};
  if (chosen_.contains(k))
    return;
  double best_us = 0;
  for (const way& w : ways(sample.front(), rows, output, library_plans_tried)) {
    const auto pass = [&] {
      for (const matrix& m : sample)
        enqueue(w, m, rows, output, input, y, stream);
    };
    const double us = measure_us(stream, pass);
    if (!chosen_.contains(k) || us < best_us) {
      chosen_.insert_or_assign(k, w);
      best_us = us;
    }
  }
}

void products::run(const matrix& m, std::uint32_t rows, product_output output,
                   const product_input& input, void* y, cudaStream_t stream) {
  enqueue(chosen(m, rows, output), m, rows, output, input, y, stream);
}

void products::enqueue(const way& w, const matrix& m, std::uint32_t rows, product_output output,
                       const product_input& input, void* y, cudaStream_t stream) const {
  const bool float32 = compute_ == compute_type::float32;
  if (w.what == way::kind::skinny || w.what == way::kind::warpgroup) {
    const bool normed =
        w.what == way::kind::skinny && input.residual && skinny_norm_fits(rows, m.k);
    const skinny_call call{.weight = static_cast<const __nv_bfloat16*>(m.weight),
                           .x = static_cast<const __nv_bfloat16*>(input.x),
                           .residual = normed ? input.residual : nullptr,
                           .norm_weight = input.norm_weight,
                           .eps = input.eps,
                           .rows = rows,
                           .columns = m.columns,
                           .k = m.k,
                           .y = y};
    if (w.what == way::kind::skinny)
      skinny_product(call, output, w.shape, stream);
    else
      warpgroup_product(call, output, w.parts, stream);
  } else {
    const bool gated = output == product_output::swiglu;
    const auto plain = gated ? product_output::operand : output;
    void* to = gated ? scratch_ : y;
    if (w.what == way::kind::library)
      w.plan->run(input.x, m.weight, to, stream);
    else if (float32)
      exact_product(static_cast<const float*>(input.x), static_cast<const float*>(m.weight), rows,
                    m.columns, m.k, to, plain, stream);
    else
      exact_product(static_cast<const __nv_bfloat16*>(input.x),
                    static_cast<const __nv_bfloat16*>(m.weight), rows, m.columns, m.k, to, plain,
                    stream);
    if (gated) {
      if (m.bias && float32)
        add_bias(static_cast<float*>(to), m.bias, rows, m.columns, stream);
      else if (m.bias)
        add_bias(static_cast<__nv_bfloat16*>(to), m.bias, rows, m.columns, stream);
      if (float32)
        swiglu(static_cast<const float*>(to), rows, m.columns / 2, static_cast<float*>(y), stream);
      else
        swiglu(static_cast<const __nv_bfloat16*>(to), rows, m.columns / 2,
               static_cast<__nv_bfloat16*>(y), stream);
      return;
    }
  }
  if (!m.bias)
    return;
  if (float32 || output != product_output::operand)
    add_bias(static_cast<float*>(y), m.bias, rows, m.columns, stream);
  else
    add_bias(static_cast<__nv_bfloat16*>(y), m.bias, rows, m.columns, stream);
}

} // namespace tokenrouter::gpu
