#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

/// Matrix products of few rows: the weights pass through the chip once, and that is the cost.
namespace tokenrouter::gpu {

enum class product_output : std::uint8_t {
  operand,  ///< bf16 [rows][columns]
  residual, ///< added to float32 [rows][columns]
  exact,    ///< float32 [rows][columns]
  swiglu,   ///< bf16 [rows][columns / 2]: silu(gate) · up, in groups of 8 of each in the weights
};

inline constexpr std::uint32_t skinny_rows_max = 16;

/// y[rows][columns] = x[rows][k] · weight[columns][k]ᵀ. One of `x` and `residual` is given.
struct skinny_call {
  const __nv_bfloat16* weight;
  const __nv_bfloat16* x;
  const float* residual;    ///< [rows][k]: x is its RMS norm
  const float* norm_weight; ///< [k], with `residual`
  float eps;
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t k;
  void* y;
};

/// How the columns are dealt out.
struct skinny_shape {
  std::uint32_t columns_per_block; ///< 8, 16, 32 or 64
};

/// Requires rows ≤ skinny_rows_max, k % 64 == 0, columns % columns_per_block == 0 (a multiple of 16
/// for swiglu); with `residual`, skinny_norm_fits.
void skinny_product(const skinny_call& call, product_output output, skinny_shape shape,
                    cudaStream_t stream);

/// Whether rows of that length are normed by the product itself: every thread block does it again,
/// so that it pays for one or two rows only.
bool skinny_norm_fits(std::uint32_t rows, std::uint32_t k);

/// Lets kernels take the shared memory they need; once for each device, before the first product.
void prepare_skinny_products();

} // namespace tokenrouter::gpu
