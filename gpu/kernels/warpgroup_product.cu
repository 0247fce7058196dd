#include "gpu/kernels/warpgroup_product.hpp"

#include "gpu/kernels/barriers.cuh"
#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/tensor_map.hpp"
#include "gpu/kernels/warpgroup_math.cuh"

namespace tokenrouter::gpu {
namespace {

/// The weights' columns are the 64 rows of the tensor cores, the product's rows their columns. One
/// warpgroup multiplies; a warp has the copy engine fill a ring of stages of 64 k.
constexpr int block_columns = 64;
constexpr int stage_k = 64;
constexpr int stages = 6;
constexpr int threads = 128 + 32;

template <int n>
struct product_memory {
  bf16 weights[stages][block_columns * stage_k];
  bf16 x[stages][n * stage_k];
  std::uint64_t full[stages], empty[stages];

  /// Sums of this thread block, [n][sum_stride], once the stages are read.
  static constexpr int sum_stride = block_columns + 4;
  __device__ float* sums() { return reinterpret_cast<float*>(weights); }
};

constexpr std::size_t alignment_bytes = 1024;

template <int n>
__device__ void fill(product_memory<n>& m, const CUtensorMap& weights, const CUtensorMap& x,
                     int column, int first_k, int count) {
  const auto bring_weights = [&](int i) {
    const int stage = i % stages;
    expect_bytes(m.full + stage, sizeof m.weights[0] + sizeof m.x[0]);
    copy_box(m.weights[stage], weights, first_k + i * stage_k, column, m.full + stage);
  };
  const auto bring_x = [&](int i) {
    copy_box(m.x[i % stages], x, first_k + i * stage_k, 0, m.full + i % stages);
  };
  const int ahead = min(stages, count);
  for (int i = 0; i < ahead; ++i)
    bring_weights(i);
  wait_for_previous();
  let_next_start();
  for (int i = 0; i < ahead; ++i)
    bring_x(i);
  for (int i = stages; i < count; ++i) {
    await_barrier(m.empty + i % stages, static_cast<unsigned>(i / stages - 1) & 1);
    bring_weights(i);
    bring_x(i);
  }
}

template <int n>
__device__ void multiply(product_memory<n>& m, float (&sums)[n / 2], int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = 0; i < count; ++i) {
    const int stage = i % stages;
    await_barrier(m.full + stage, static_cast<unsigned>(i / stages) & 1);
    const std::uint64_t a = along_k(shared_address(m.weights[stage]));
    const std::uint64_t b = along_k(shared_address(m.x[stage]));
    begin_products();
#pragma unroll
    for (int k = 0; k < stage_k / 16; ++k)
      shared_product(sums, a + k * 2, b + k * 2);
    commit_products();
    await_products<1>();
    if (i > 0 && lane == 0)
      arrive(m.empty + (i - 1) % stages);
  }
  await_products<0>();
  hold(sums);
}

__device__ inline void meet_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
#endif
}

/// 4 floats of the same place in another thread block of the cluster.
__device__ inline float4 read_of_block(const float* here, int block) {
  float4 v{};
#if __CUDA_ARCH__ >= 900
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(here)), "r"(block));
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(there)
               : "memory");
#endif
  return v;
}

template <product_output output>
__device__ void write_quad(const skinny_call& c, int row, std::uint32_t column, const float4& v) {
  const std::uint64_t place = static_cast<std::uint64_t>(row) * c.columns + column;
  if constexpr (output == product_output::operand)
    put_quad(static_cast<bf16*>(c.y) + place, v);
  if constexpr (output == product_output::residual) {
    float4* y = reinterpret_cast<float4*>(static_cast<float*>(c.y) + place);
    const float4 old = __ldcg(y);
    *y = make_float4(old.x + v.x, old.y + v.y, old.z + v.z, old.w + v.w);
  }
  if constexpr (output == product_output::exact)
    put_quad(static_cast<float*>(c.y) + place, v);
}

/// Adds the parts' sums, in their order, and writes this block's share of the columns.
template <int n, int parts, product_output output>
__device__ void finish(const skinny_call& c, product_memory<n>& m, std::uint32_t first_column,
                       int part) {
  constexpr int stride = product_memory<n>::sum_stride, columns = block_columns / parts;
  constexpr bool gates = output == product_output::swiglu;
  constexpr int quads = columns / 4 / (gates ? 2 : 1);
  const int rows = static_cast<int>(c.rows);
  const auto total = [&](int row, int column) {
    const float* here = m.sums() + row * stride + column;
    float4 read[parts];
#pragma unroll
    for (int i = 0; i < parts; ++i)
      read[i] = parts == 1 ? *reinterpret_cast<const float4*>(here) : read_of_block(here, i);
    float4 sum = read[0];
#pragma unroll
    for (int i = 1; i < parts; ++i)
      sum = make_float4(sum.x + read[i].x, sum.y + read[i].y, sum.z + read[i].z, sum.w + read[i].w);
    return sum;
  };
  for (int i = static_cast<int>(threadIdx.x); i < rows * quads; i += threads) {
    const int row = i / quads, quad = i % quads;
    if constexpr (gates) {
      const int group = quad / 2, column = part * columns + group * 16 + quad % 2 * 4;
      const float4 gate = total(row, column), up = total(row, column + 8);
      bf16* to = static_cast<bf16*>(c.y) + static_cast<std::uint64_t>(row) * (c.columns / 2) +
                 (first_column + part * columns) / 2 + group * 8 + quad % 2 * 4;
      *reinterpret_cast<uint2*>(to) =
          make_uint2(pack_bf16(swiglu_of(gate.x, up.x), swiglu_of(gate.y, up.y)),
                     pack_bf16(swiglu_of(gate.z, up.z), swiglu_of(gate.w, up.w)));
    } else {
      const int column = part * columns + quad * 4;
      write_quad<output>(c, row, first_column + column, total(row, column));
    }
  }
}

template <int n, int parts, product_output output>
__global__ void __launch_bounds__(threads)
    product_kernel(skinny_call c, const __grid_constant__ CUtensorMap weights,
                   const __grid_constant__ CUtensorMap x) {
  if constexpr (!has_warpgroups)
    return; // no other target has the instructions of what follows
  extern __shared__ unsigned char shared[];
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(shared);
  auto& m = *reinterpret_cast<product_memory<n>*>(
      shared + (alignment_bytes - place % alignment_bytes) % alignment_bytes);
  const int part = static_cast<int>(blockIdx.x) % parts;
  const std::uint32_t first_column = blockIdx.x / parts * block_columns;
  const int count = static_cast<int>(c.k) / stage_k / parts;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      init_barrier(m.full + i, 1);
      init_barrier(m.empty + i, 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sums[n / 2] = {};
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
      fill<n>(m, weights, x, static_cast<int>(first_column), part * count * stage_k, count);
    __syncwarp();
  }
  wait_for_previous();
  let_next_start();
  if (threadIdx.x < 128)
    multiply<n>(m, sums, count);
  __syncthreads(); // all stages are read
  if (threadIdx.x < 128) {
    constexpr int stride = product_memory<n>::sum_stride;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    float* to = m.sums() + warp * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < n / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[(8 * j + lane % 4 * 2 + i % 2) * stride + i / 2 * 8] = sums[4 * j + i];
  }
  if constexpr (parts == 1)
    __syncthreads();
  else
    meet_cluster();
  finish<n, parts, output>(c, m, first_column, part);
  if constexpr (parts > 1)
    meet_cluster(); // until then others read this block's sums
}

template <int n, int parts, product_output output>
void run(const skinny_call& c, cudaStream_t stream) {
  launch_shape shape{dim3(c.columns / block_columns * parts), dim3(threads),
                     sizeof(product_memory<n>) + alignment_bytes};
  shape.cluster = parts;
  launch(product_kernel<n, parts, output>, shape, stream, c,
         tensor_map(c.weight, c.columns, c.k, block_columns), tensor_map(c.x, c.rows, c.k, n));
}

template <int n, int parts>
void run_output(const skinny_call& c, product_output output, cudaStream_t stream) {
  switch (output) {
  case product_output::operand:
    return run<n, parts, product_output::operand>(c, stream);
  case product_output::residual:
    return run<n, parts, product_output::residual>(c, stream);
  case product_output::exact:
    return run<n, parts, product_output::exact>(c, stream);
  case product_output::swiglu:
    if constexpr (parts < 8)
      return run<n, parts, product_output::swiglu>(c, stream);
  }
}

template <int n>
void run_parts(const skinny_call& c, product_output output, std::uint32_t parts,
               cudaStream_t stream) {
  switch (parts) {
  case 1:
    return run_output<n, 1>(c, output, stream);
  case 2:
    return run_output<n, 2>(c, output, stream);
  case 4:
    return run_output<n, 4>(c, output, stream);
  default:
    return run_output<n, 8>(c, output, stream);
  }
}

template <int n, int parts>
void allow_memory() {
  constexpr int bytes = static_cast<int>(sizeof(product_memory<n>) + alignment_bytes);
  const auto allow = [](const void* kernel) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  };
  allow(reinterpret_cast<const void*>(product_kernel<n, parts, product_output::operand>));
  allow(reinterpret_cast<const void*>(product_kernel<n, parts, product_output::residual>));
  allow(reinterpret_cast<const void*>(product_kernel<n, parts, product_output::exact>));
  if constexpr (parts < 8)
    allow(reinterpret_cast<const void*>(product_kernel<n, parts, product_output::swiglu>));
}

template <int n>
void allow_memory_of() {
  allow_memory<n, 1>();
  allow_memory<n, 2>();
  allow_memory<n, 4>();
  allow_memory<n, 8>();
}

} // namespace

void warpgroup_product(const skinny_call& call, product_output output, std::uint32_t parts,
                       cudaStream_t stream) {
  if (call.rows <= 16)
    run_parts<16>(call, output, parts, stream);
  else if (call.rows <= 32)
    run_parts<32>(call, output, parts, stream);
  else
    run_parts<64>(call, output, parts, stream);
}

void prepare_warpgroup_products() {
  allow_memory_of<16>();
  allow_memory_of<32>();
  allow_memory_of<64>();
}

} // namespace tokenrouter::gpu
