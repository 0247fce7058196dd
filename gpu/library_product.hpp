#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/kernels/skinny_product.hpp"
#include "runtime/core/error.hpp"

namespace tokenrouter::gpu {

/// One product of bf16 operands that cuBLASLt runs: y[rows][columns] = x[rows][k] · weightᵀ.
struct library_shape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t k = 0;
  product_output output = product_output::operand; ///< not swiglu
};

/// A way cuBLASLt knows to run a shape.
class library_plan {
 public:
  virtual ~library_plan() = default;
  /// Enqueues the product; may be captured in a graph.
  virtual void run(const void* x, const void* weight, void* y, cudaStream_t stream) const = 0;
};

/// cuBLASLt, loaded when it is first needed, so that programs start on hosts without it.
class library_products {
 public:
  /// Error: unavailable (the library can't be loaded: the loader's words).
  static result<std::unique_ptr<library_products>> open();
  virtual ~library_products() = default;

  /// At most `count` plans, the library's favourite first. Empty if it can't run the shape.
  virtual std::vector<std::shared_ptr<const library_plan>> plans(const library_shape& shape,
                                                                 std::uint32_t count) = 0;
};

} // namespace tokenrouter::gpu
