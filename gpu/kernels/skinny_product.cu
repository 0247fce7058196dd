#include "gpu/kernels/skinny_product.hpp"

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

/// Weights are the B operand of the tensor cores: 8 columns of the product. Order over k is free as
/// long as both operands agree, so a thread's 16 bytes of a row, 8 neighbouring k, serve two
/// multiplications, and rows go from memory to registers without a stop in shared memory.
constexpr int warps = 8;
constexpr int chunk = 64; ///< k of one row that a warp takes at a time: 4 lanes · 8 · 2

constexpr int norm_rows_max = 2;
constexpr int norm_k_max = 6144;

/// Where a row of normed operands starts in shared memory: neighbours half a line of banks apart.
__device__ __host__ constexpr std::uint32_t operand_stride(std::uint32_t k) {
  return k + 32;
}

constexpr int held_quads = 2; ///< of a row, 4 floats each, that a thread reads once

/// Writes the RMS norm of `rows` residual rows; rows beyond are left alone.
__device__ void norm_operands(const skinny_call& c, bf16* operands) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int quads = static_cast<int>(c.k) / 4;
  __shared__ float scratch[norm_rows_max][warps];
  const float4* weight = reinterpret_cast<const float4*>(c.norm_weight);
  for (unsigned row = 0; row < c.rows; ++row) {
    const float4* x = reinterpret_cast<const float4*>(c.residual + std::uint64_t{row} * c.k);
    const int me = static_cast<int>(threadIdx.x), all = 32 * warps;
    float4 held[held_quads];
#pragma unroll
    for (int i = 0; i < held_quads; ++i)
      held[i] = me + i * all < quads ? __ldcg(x + me + i * all) : make_float4(0, 0, 0, 0);
    float squares = 0;
    const auto add = [&](const float4& v) {
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    };
#pragma unroll
    for (int i = 0; i < held_quads; ++i)
      add(held[i]);
    for (int i = me + held_quads * all; i < quads; i += all)
      add(__ldcg(x + i));
    squares = warp_sum(squares);
    if (lane == 0)
      scratch[row][warp] = squares;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < warps; ++i)
      total += scratch[row][i];
    const float factor = 1.0f / sqrtf(total / static_cast<float>(c.k) + c.eps);
    uint2* to = reinterpret_cast<uint2*>(operands + row * operand_stride(c.k));
    const auto put = [&](int i, const float4& v) {
      const float4 w = weight[i];
      to[i] = make_uint2(pack_bf16(v.x * factor * w.x, v.y * factor * w.y),
                         pack_bf16(v.z * factor * w.z, v.w * factor * w.w));
    };
#pragma unroll
    for (int i = 0; i < held_quads; ++i)
      if (me + i * all < quads)
        put(me + i * all, held[i]);
    for (int i = me + held_quads * all; i < quads; i += all)
      put(i, __ldcg(x + i));
  }
  __syncthreads();
}

/// The operands of a chunk's four multiplications: rows lane / 4 and, if wanted, that plus 8.
template <bool two_halves>
__device__ void read_operands(const bf16* x, std::uint32_t stride, int rows, int at, bool shared,
                              uint4 (&low)[2], uint4 (&high)[2]) {
  const int row = static_cast<int>(threadIdx.x) % 32 / 4;
  const int place = at + static_cast<int>(threadIdx.x) % 4 * 8;
  const uint4 zero = make_uint4(0, 0, 0, 0);
  for (int half = 0; half < 2; ++half) {
    const auto* p = reinterpret_cast<const uint4*>(x + row * stride + place + half * 32);
    low[half] = row < rows ? (shared ? *p : __ldcg(p)) : zero;
    if (two_halves) {
      const auto* q = reinterpret_cast<const uint4*>(x + (row + 8) * stride + place + half * 32);
      high[half] = row + 8 < rows ? (shared ? *q : __ldcg(q)) : zero;
    } else {
      high[half] = zero;
    }
  }
}

template <int tiles>
struct weight_chunk {
  uint4 part[tiles][2];

  __device__ void load(const bf16* row, std::uint32_t k, int at) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        part[tile][half] = stream_weights(row + std::uint64_t{8} * tile * k + at + half * 32);
  }
};

template <int tiles>
__device__ void multiply_chunk(float (&sums)[tiles][4], const weight_chunk<tiles>& w,
                               const uint4 (&low)[2], const uint4 (&high)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const unsigned first[4] = {low[half].x, high[half].x, low[half].y, high[half].y};
    const unsigned second[4] = {low[half].z, high[half].z, low[half].w, high[half].w};
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      multiply_add(sums[tile], first, w.part[tile][half].x, w.part[tile][half].y);
      multiply_add(sums[tile], second, w.part[tile][half].z, w.part[tile][half].w);
    }
  }
}

template <product_output output>
__device__ void write_sum(const skinny_call& c, std::uint32_t row, std::uint32_t column,
                          float sum) {
  const std::uint64_t place = std::uint64_t{row} * c.columns + column;
  if constexpr (output == product_output::operand)
    static_cast<bf16*>(c.y)[place] = __float2bfloat16_rn(sum);
  if constexpr (output == product_output::residual) {
    float* y = static_cast<float*>(c.y) + place;
    *y = __ldcg(y) + sum;
  }
  if constexpr (output == product_output::exact)
    static_cast<float*>(c.y)[place] = sum;
}

/// Adds the warps' sums, in their order, and writes the block's columns.
template <int tiles, product_output output>
__device__ void finish(const skinny_call& c, float (&sums)[tiles][4], float* shared,
                       std::uint32_t first_column) {
  constexpr int columns = tiles * 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int stride = columns + 1;
  float* mine = shared + warp * 16 * stride;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      mine[(lane / 4 + i / 2 * 8) * stride + tile * 8 + lane % 4 * 2 + i % 2] = sums[tile][i];
  __syncthreads();
  const auto total = [&](int row, int column) {
    float sum = 0;
    for (int w = 0; w < warps; ++w)
      sum += shared[(w * 16 + row) * stride + column];
    return sum;
  };
  const int rows = static_cast<int>(c.rows);
  if constexpr (output == product_output::swiglu) {
    constexpr int width = columns / 2;
    for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += 32 * warps) {
      const int row = i / width, column = i % width;
      const int place = column / 8 * 16 + column % 8;
      const float gate = total(row, place), up = total(row, place + 8);
      const std::uint64_t out = std::uint64_t(row) * (c.columns / 2) + first_column / 2 + column;
      static_cast<bf16*>(c.y)[out] = __float2bfloat16_rn(swiglu_of(gate, up));
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += 32 * warps)
      write_sum<output>(c, i / columns, first_column + i % columns,
                        total(i / columns, i % columns));
  }
}

template <int tiles, bool two_halves, product_output output>
__global__ void __launch_bounds__(32 * warps, tiles > 4 ? 1 : 2) skinny_kernel(skinny_call c) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t first_column = blockIdx.x * tiles * 8;
  const bf16* row = c.weight + std::uint64_t{first_column + lane / 4} * c.k + lane % 4 * 8;
  const int chunks = static_cast<int>(c.k) / chunk;
  constexpr int depth = tiles == 8   ? 1
                        : tiles == 4 ? 2
                        : tiles == 2 ? 3
                                     : 6; ///< chunks loaded ahead
  weight_chunk<tiles> ahead[depth];
#pragma unroll
  for (int i = 0; i < depth; ++i)
    if (warp + i * warps < chunks)
      ahead[i].load(row, c.k, (warp + i * warps) * chunk);

  wait_for_previous();
  let_next_start();
  const bool normed = c.residual != nullptr;
  const bf16* x = c.x;
  std::uint32_t stride = c.k;
  if (normed) {
    bf16* operands = reinterpret_cast<bf16*>(shared);
    norm_operands(c, operands);
    x = operands;
    stride = operand_stride(c.k);
  }

  float sums[tiles][4] = {};
  for (int at = warp; at < chunks; at += depth * warps) {
#pragma unroll
    for (int i = 0; i < depth; ++i) {
      const int here = at + i * warps;
      if (here >= chunks)
        break;
      uint4 low[2], high[2];
      read_operands<two_halves>(x, stride, static_cast<int>(c.rows), here * chunk, normed, low,
                                high);
      const weight_chunk<tiles> now = ahead[i];
      if (here + depth * warps < chunks)
        ahead[i].load(row, c.k, (here + depth * warps) * chunk);
      multiply_chunk<tiles>(sums, now, low, high);
    }
  }
  if (normed)
    __syncthreads();
  finish<tiles, output>(c, sums, reinterpret_cast<float*>(shared), first_column);
}

template <int tiles>
constexpr std::size_t sum_bytes = std::size_t{warps} * 16 * (tiles * 8 + 1) * sizeof(float);

template <int tiles, product_output output>
void run(const skinny_call& call, cudaStream_t stream) {
  const std::size_t norm_bytes =
      call.residual ? std::size_t{call.rows} * operand_stride(call.k) * sizeof(bf16) : 0;
  const launch_shape shape{dim3(call.columns / (tiles * 8)), dim3(32 * warps),
                           norm_bytes > sum_bytes<tiles> ? norm_bytes : sum_bytes<tiles>};
  if (call.rows > 8)
    launch(skinny_kernel<tiles, true, output>, shape, stream, call);
  else
    launch(skinny_kernel<tiles, false, output>, shape, stream, call);
}

template <int tiles>
void run_tiles(const skinny_call& call, product_output output, cudaStream_t stream) {
  switch (output) {
  case product_output::operand:
    return run<tiles, product_output::operand>(call, stream);
  case product_output::residual:
    return run<tiles, product_output::residual>(call, stream);
  case product_output::exact:
    return run<tiles, product_output::exact>(call, stream);
  case product_output::swiglu:
    if constexpr (tiles > 1)
      return run<tiles, product_output::swiglu>(call, stream);
  }
}

template <int tiles, product_output output>
void allow_memory() {
  constexpr int bytes = static_cast<int>(norm_rows_max * operand_stride(norm_k_max) * sizeof(bf16) +
                                         sum_bytes<tiles>);
  static_assert(bytes <= shared_bytes_everywhere);
  const auto allow = [](const void* kernel) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  };
  allow(reinterpret_cast<const void*>(skinny_kernel<tiles, true, output>));
  allow(reinterpret_cast<const void*>(skinny_kernel<tiles, false, output>));
}

template <int tiles>
void allow_memory_of() {
  allow_memory<tiles, product_output::operand>();
  allow_memory<tiles, product_output::residual>();
  allow_memory<tiles, product_output::exact>();
  if constexpr (tiles > 1)
    allow_memory<tiles, product_output::swiglu>();
}

} // namespace

bool skinny_norm_fits(std::uint32_t rows, std::uint32_t k) {
  return rows <= norm_rows_max && k <= norm_k_max;
}

void prepare_skinny_products() {
  allow_memory_of<1>();
  allow_memory_of<2>();
  allow_memory_of<4>();
  allow_memory_of<8>();
}

void skinny_product(const skinny_call& call, product_output output, skinny_shape shape,
                    cudaStream_t stream) {
  switch (shape.columns_per_block) {
  case 8:
    return run_tiles<1>(call, output, stream);
  case 16:
    return run_tiles<2>(call, output, stream);
  case 32:
    return run_tiles<4>(call, output, stream);
  default:
    return run_tiles<8>(call, output, stream);
  }
}

} // namespace tokenrouter::gpu
