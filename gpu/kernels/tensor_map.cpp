#include "gpu/kernels/tensor_map.hpp"

#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"

namespace tokenrouter::gpu {
namespace {

using encode_map = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

encode_map find_encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state{};
  cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                              cudaEnableDefault, &state));
  cuda_check(found ? cudaSuccess : cudaErrorInsufficientDriver);
  return reinterpret_cast<encode_map>(found);
}

} // namespace

CUtensorMap tensor_map(const void* from, std::uint64_t rows, std::uint32_t columns,
                       std::uint32_t box_rows) {
  static const encode_map encode = find_encoder();
  CUtensorMap map;
  const cuuint64_t sizes[2] = {columns, rows}, row_bytes[1] = {columns * std::uint64_t{2}};
  const cuuint32_t box[2] = {64, box_rows}, steps[2] = {1, 1};
  const CUresult done =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(from), sizes, row_bytes,
             box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  cuda_check(done == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue);
  return map;
}

} // namespace tokenrouter::gpu
