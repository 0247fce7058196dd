#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/kernels/skinny_product.hpp"

/// A matrix product whose sums run over k in order, whatever the number of rows: for float32 models
/// that are compared bit for bit, and for shapes that no faster kernel takes.
namespace tokenrouter::gpu {

/// y = x · weightᵀ with x and weight of type T (float or bf16); `output` as for skinny products,
/// `operand` being T; swiglu is not offered.
template <class T>
void exact_product(const T* x, const T* weight, std::uint32_t rows, std::uint32_t columns,
                   std::uint32_t k, void* y, product_output output, cudaStream_t stream);

} // namespace tokenrouter::gpu
