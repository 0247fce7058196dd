#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/library_product.hpp"
#include "gpu/model_weights.hpp"

namespace tokenrouter::gpu {

/// Where the rows of a product come from: operands, or a residual stream that is normed first.
struct product_input {
  const void* x = nullptr;         ///< [rows][k], bf16 or float
  const float* residual = nullptr; ///< [rows][k]; used instead of `x` where a kernel norms itself
  const float* norm_weight = nullptr; ///< [k]
  float eps = 0;
};

/// Runs the matrix products of one model, each by the fastest way that was measured for its shape:
/// our kernels for few rows (bf16), cuBLASLt, or kernels that add in order (float32, odd shapes).
class products {
 public:
  /// `scratch`: bf16 or float [rows_max][widest gate_up], for products whose SwiGLU is a step of
  /// its own. Errors: unavailable, capacity.
  static result<products> create(compute_type compute, void* scratch, std::uint32_t processors);

  /// Measures the ways to run `sample` (matrices of one kind, of several layers, so that they don't
  /// all stay in the cache) with so many rows, and remembers the best. Operands may hold anything.
  void tune(std::span<const matrix> sample, std::uint32_t rows, product_output output,
            const product_input& input, void* y, cudaStream_t stream);

  /// Enqueues y = x · weightᵀ + bias. `output` as the product writes it.
  void run(const matrix& m, std::uint32_t rows, product_output output, const product_input& input,
           void* y, cudaStream_t stream);

  /// Whether `run` would norm the residual itself; else the caller puts the normed rows in `x`.
  bool norms_itself(const matrix& m, std::uint32_t rows, product_output output,
                    bool has_residual) const;

 private:
  struct way {
    enum class kind : std::uint8_t { skinny, warpgroup, library, exact };
    kind what = kind::exact;
    skinny_shape shape{};
    std::uint32_t parts = 1; ///< of a warpgroup's product
    std::shared_ptr<const library_plan> plan;
  };
  using key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, product_output>;

  std::vector<way> ways(const matrix& m, std::uint32_t rows, product_output output,
                        std::uint32_t plans);
  const way& chosen(const matrix& m, std::uint32_t rows, product_output output);
  void enqueue(const way& w, const matrix& m, std::uint32_t rows, product_output output,
               const product_input& input, void* y, cudaStream_t stream) const;
  bool skinny_fits(const matrix& m, std::uint32_t rows, product_output output) const;

  compute_type compute_ = compute_type::bfloat16;
  void* scratch_ = nullptr;
  std::uint32_t processors_ = 1;
  bool warpgroups_ = false;
  std::unique_ptr<library_products> library_; ///< null: float32
  std::map<key, way> chosen_;
};

} // namespace tokenrouter::gpu
