#pragma once

#include <cstdint>

#include <cuda.h>

namespace tokenrouter::gpu {

/// How the copy engine finds boxes of `box_rows` rows by 64 columns in bf16 [rows][columns], for
/// operands as warpgroup_math.cuh wants them. Rows past the end are read as zeros. Requires
/// columns % 8 == 0 and a driver of CUDA 12 or newer: checked.
CUtensorMap tensor_map(const void* from, std::uint64_t rows, std::uint32_t columns,
                       std::uint32_t box_rows);

} // namespace tokenrouter::gpu
