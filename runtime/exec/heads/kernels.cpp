#include "runtime/exec/heads/kernels.hpp"

#include <cmath>

#include "runtime/exec/hot_kernel.hpp"
#include "runtime/exec/hot_math.hpp"

namespace tokenrouter::head_kernels {

TR_HOT_KERNEL void dense(const float* __restrict weight, const float* __restrict bias,
                         const float* __restrict x, float* __restrict y, std::size_t in,
                         std::size_t out) {
  for (std::size_t o = 0; o < out; ++o)
    y[o] = bias[o];
  // Eight inputs at a time: one load and store of y for eight products.
  std::size_t i = 0;
  for (; i + 8 <= in; i += 8) {
    const float* w = weight + i * out;
    const float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
    const float x4 = x[i + 4], x5 = x[i + 5], x6 = x[i + 6], x7 = x[i + 7];
    for (std::size_t o = 0; o < out; ++o)
      y[o] += ((x0 * w[o] + x1 * w[o + out]) + (x2 * w[o + 2 * out] + x3 * w[o + 3 * out])) +
              ((x4 * w[o + 4 * out] + x5 * w[o + 5 * out]) +
               (x6 * w[o + 6 * out] + x7 * w[o + 7 * out]));
  }
  for (; i < in; ++i)
    for (std::size_t o = 0; o < out; ++o)
      y[o] += x[i] * weight[i * out + o];
}

TR_HOT_KERNEL float dot(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t lanes = 32;
  float sums[lanes] = {};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  for (std::size_t i = whole; i < count; ++i)
    sums[i - whole] += a[i] * b[i];
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane)
      sums[lane] += sums[lane + half];
  return sums[0];
}

TR_HOT_KERNEL void layer_norm(const float* __restrict x, const float* __restrict scale,
                              const float* __restrict shift, float eps, float* __restrict y,
                              std::size_t count) {
  constexpr std::size_t lanes = 16;
  double sums[lanes] = {}, squares[lanes] = {};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += double{x[i + lane]};
  for (std::size_t i = whole; i < count; ++i)
    sums[i - whole] += double{x[i]};
  for (std::size_t lane = 1; lane < lanes; ++lane)
    sums[0] += sums[lane];
  const double mean = sums[0] / static_cast<double>(count);
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      squares[lane] += (double{x[i + lane]} - mean) * (double{x[i + lane]} - mean);
  for (std::size_t i = whole; i < count; ++i)
    squares[i - whole] += (double{x[i]} - mean) * (double{x[i]} - mean);
  for (std::size_t lane = 1; lane < lanes; ++lane)
    squares[0] += squares[lane];
  const double variance = squares[0] / static_cast<double>(count);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(variance + double{eps}));
  const auto centre = static_cast<float>(mean);
  for (std::size_t i = 0; i < count; ++i)
    y[i] = (x[i] - centre) * inverse * scale[i] + shift[i];
}

TR_HOT_KERNEL void gelu(float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float z = x[i] * 0.707106781f;
    const float a = z < 0.0f ? -z : z;
    const float t = 1.0f / (1.0f + 0.3275911f * a);
    float p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const float tail = p * t * exp_nonpositive(-a * a); // 1 − erf(|z|)
    x[i] *= z < 0.0f ? 0.5f * tail : 1.0f - 0.5f * tail;
  }
}

TR_HOT_KERNEL void relu(float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

TR_HOT_KERNEL void add(float* __restrict x, const float* __restrict y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    x[i] += y[i];
}

float sigmoid(float x) {
  return static_cast<float>(1.0 / (1.0 + std::exp(-double{x})));
}

} // namespace tokenrouter::head_kernels
