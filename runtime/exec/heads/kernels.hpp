#pragma once

#include <cstddef>

/// Dense float32 kernels of the routing heads. Every sum has a fixed order, so a row's result does
/// not depend on anything but the row. Pointers of one call don't overlap unless said.
namespace tokenrouter::head_kernels {

/// y[out] = bias[out] + Σ_i x[in] · weight[in][out]: weights transposed, so that the inner loop
/// runs over outputs.
void dense(const float* weight, const float* bias, const float* x, float* y, std::size_t in,
           std::size_t out);

/// Σ a[count] · b[count].
float dot(const float* a, const float* b, std::size_t count);

/// y[count] = (x − mean) / sqrt(variance + eps) · scale + shift, variance with divisor count.
void layer_norm(const float* x, const float* scale, const float* shift, float eps, float* y,
                std::size_t count);

/// x ← x · Φ(x) in place: the exact GELU, erf by Abramowitz and Stegun 7.1.26 (error ≤ 1.5e-7).
void gelu(float* x, std::size_t count);

/// x ← max(x, 0) in place; NaN stays NaN.
void relu(float* x, std::size_t count);

/// x[count] += y[count].
void add(float* x, const float* y, std::size_t count);

float sigmoid(float x);

} // namespace tokenrouter::head_kernels
