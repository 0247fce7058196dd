#include "gpu/kernels/rows.hpp"

#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/wave_types.hpp"

namespace tokenrouter::gpu {
namespace {

constexpr unsigned row_threads = 256;

template <class T>
__global__ void embed_kernel(const T* table, const std::int32_t* ids, std::uint32_t hidden,
                             float* residual) {
  wait_for_previous();
  let_next_start();
  const T* from = table + static_cast<std::uint64_t>(read_activation(ids + blockIdx.x)) * hidden;
  float* to = residual + static_cast<std::uint64_t>(blockIdx.x) * hidden;
  for (unsigned i = threadIdx.x; i < hidden; i += blockDim.x)
    to[i] = to_float(from[i]);
}

template <class T>
__global__ void norm_kernel(norm_call c, T* out) {
  __shared__ float scratch[32];
  wait_for_previous();
  let_next_start();
  const std::uint64_t from = c.gather ? read_activation(&c.gather[blockIdx.x].token) : blockIdx.x;
  const float* x = c.residual + from * c.hidden;
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * c.hidden;
  // The part of the row that a thread holds; what is beyond is read twice.
  constexpr unsigned held = 8;
  float values[held];
  float squares = 0;
#pragma unroll
  for (unsigned k = 0; k < held; ++k) {
    const unsigned i = threadIdx.x + k * blockDim.x;
    values[k] = i < c.hidden ? read_activation(x + i) : 0.0f;
  }
#pragma unroll
  for (unsigned k = 0; k < held; ++k)
    squares += values[k] * values[k];
  for (unsigned i = threadIdx.x + held * blockDim.x; i < c.hidden; i += blockDim.x) {
    const float value = read_activation(x + i);
    squares += value * value;
  }
  const float factor =
      1.0f / sqrtf(block_sum(squares, scratch) / static_cast<float>(c.hidden) + c.eps);
  const auto put = [&](unsigned i, float x_i) {
    const float value = x_i * factor * c.weight[i];
    out[row + i] = from_float<T>(value);
    if (c.exact)
      c.exact[row + i] = value;
  };
#pragma unroll
  for (unsigned k = 0; k < held; ++k)
    if (const unsigned i = threadIdx.x + k * blockDim.x; i < c.hidden)
      put(i, values[k]);
  for (unsigned i = threadIdx.x + held * blockDim.x; i < c.hidden; i += blockDim.x)
    put(i, read_activation(x + i));
}

__global__ void rope_table_kernel(const double* frequencies, std::uint32_t pairs,
                                  std::uint64_t count, float* out) {
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  double sine, cosine;
  sincos(static_cast<double>(i / pairs) * frequencies[i % pairs], &sine, &cosine);
  out[2 * i] = static_cast<float>(cosine);
  out[2 * i + 1] = static_cast<float>(sine);
}

/// One warp for each head of each token: queries, then keys, then values.
template <class T>
__global__ void rotate_kernel(rotate_call c) {
  const unsigned all_heads = c.heads + 2 * c.kv_heads;
  const unsigned head = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t token = blockIdx.x;
  if (head >= all_heads) {
    wait_for_previous();
    return;
  }
  const T* x = static_cast<const T*>(c.qkv) + (token * all_heads + head) * c.head_dim;
  const int slot = read_activation(c.slots + token);
  const float* turn =
      c.rope + static_cast<std::uint64_t>(read_activation(c.positions + token)) * c.head_dim;
  const bool query = head < c.heads;
  const bool key = !query && head < c.heads + c.kv_heads;
  // All that was read until here is older than the step's kernels.
  wait_for_previous();
  let_next_start();
  if (!query && slot < 0)
    return;
  const std::uint64_t kv_head = key ? head - c.heads : head - c.heads - c.kv_heads;
  T* to = query
              ? static_cast<T*>(c.q) + (token * c.heads + head) * c.head_dim
              : static_cast<T*>(c.pool) + static_cast<std::uint64_t>(slot / 16) * c.block_elements +
                    (key ? c.key_offset : c.value_offset) +
                    (kv_head * 16 + static_cast<unsigned>(slot) % 16) * c.head_dim;
  if (!query && !key) {
    for (unsigned i = lane; i < c.head_dim; i += 32)
      to[i] = read_activation(x + i);
    return;
  }
  const float* norm = query ? c.q_norm : c.k_norm;
  float factor = 1;
  if (norm) {
    float squares = 0;
    for (unsigned i = lane; i < c.head_dim; i += 32) {
      const float value = to_float(read_activation(x + i));
      squares += value * value;
    }
    factor = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(c.head_dim) + c.eps);
  }
  const unsigned pairs = c.head_dim / 2;
  for (unsigned i = lane; i < pairs; i += 32) {
    float a = to_float(read_activation(x + i));
    float b = to_float(read_activation(x + i + pairs));
    if (norm) {
      a *= factor * norm[i];
      b *= factor * norm[i + pairs];
    }
    const float cosine = turn[2 * i], sine = turn[2 * i + 1];
    to[i] = from_float<T>(a * cosine - b * sine);
    to[i + pairs] = from_float<T>(b * cosine + a * sine);
  }
}

__device__ inline float gate_of(float gate, float up) {
  return gate / (1.0f + __expf(-gate)) * up;
}

/// A thread takes a group: 8 gates and the 8 ups after them.
template <class T>
__global__ void swiglu_kernel(const T* gate_up, std::uint64_t groups, T* out) {
  wait_for_previous();
  let_next_start();
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= groups)
    return;
  if constexpr (sizeof(T) == 2) {
    const uint4* from = reinterpret_cast<const uint4*>(gate_up) + 2 * i;
    const uint4 gates = __ldcg(from), ups = __ldcg(from + 1);
    const auto pair = [](unsigned gate, unsigned up) {
      const float2 g = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&gate));
      const float2 u = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&up));
      return pack_bf16(gate_of(g.x, u.x), gate_of(g.y, u.y));
    };
    reinterpret_cast<uint4*>(out)[i] = make_uint4(pair(gates.x, ups.x), pair(gates.y, ups.y),
                                                  pair(gates.z, ups.z), pair(gates.w, ups.w));
  } else {
    for (int k = 0; k < 8; ++k) {
      const float gate = read_activation(gate_up + 16 * i + k);
      out[8 * i + k] = gate / (1.0f + expf(-gate)) * read_activation(gate_up + 16 * i + 8 + k);
    }
  }
}

template <class T>
__global__ void bias_kernel(T* y, const float* bias, std::uint64_t count, std::uint32_t columns) {
  wait_for_previous();
  let_next_start();
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    y[i] = from_float<T>(to_float(read_activation(y + i)) + bias[i % columns]);
}

/// A permutation of 64 bits with good mixing (the finaliser of SplitMix64).
__device__ std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <class T>
__global__ void random_kernel(T* out, matrix_part part, std::uint64_t salt, float width) {
  const std::uint64_t count = part.rows * part.columns;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += step) {
    const std::uint64_t place = (part.first_row + i / part.columns) * part.whole_columns +
                                part.first_column + i % part.columns;
    const auto bits = static_cast<std::uint32_t>(mix_bits(place + salt) >> 40);
    out[i] = from_float<T>((static_cast<float>(bits) * 0x1p-24f - 0.5f) * width);
  }
}

__global__ void constant_kernel(float* out, std::uint64_t count, float value) {
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    out[i] = value;
}

unsigned blocks_for(std::uint64_t count) {
  return static_cast<unsigned>((count + row_threads - 1) / row_threads);
}

} // namespace

template <class T>
void embed(const T* table, const std::int32_t* ids, std::uint32_t tokens, std::uint32_t hidden,
           float* residual, cudaStream_t stream) {
  launch(embed_kernel<T>, {tokens, row_threads}, stream, table, ids, hidden, residual);
}

template <class T>
void norm_rows(const norm_call& call, T* out, cudaStream_t stream) {
  const unsigned threads = call.hidden > 2048 ? 1024 : row_threads;
  launch(norm_kernel<T>, {call.rows, threads}, stream, call, out);
}

void fill_rope_table(const double* frequencies, std::uint32_t pairs, std::uint32_t positions,
                     float* out, cudaStream_t stream) {
  const std::uint64_t count = std::uint64_t{pairs} * positions;
  rope_table_kernel<<<blocks_for(count), row_threads, 0, stream>>>(frequencies, pairs, count, out);
  cuda_check(cudaGetLastError());
}

template <class T>
void rotate_and_store(const rotate_call& call, cudaStream_t stream) {
  const unsigned all_heads = call.heads + 2 * call.kv_heads;
  const unsigned warps = 4;
  launch(rotate_kernel<T>, {dim3(call.tokens, (all_heads + warps - 1) / warps), 32 * warps}, stream,
         call);
}

template <class T>
void swiglu(const T* gate_up, std::uint32_t tokens, std::uint32_t width, T* out,
            cudaStream_t stream) {
  const std::uint64_t groups = std::uint64_t{tokens} * width / 8;
  launch(swiglu_kernel<T>, {blocks_for(groups), row_threads}, stream, gate_up, groups, out);
}

template <class T>
void add_bias(T* y, const float* bias, std::uint32_t tokens, std::uint32_t columns,
              cudaStream_t stream) {
  const std::uint64_t count = std::uint64_t{tokens} * columns;
  launch(bias_kernel<T>, {blocks_for(count), row_threads}, stream, y, bias, count, columns);
}

template <class T>
void fill_random(T* out, const matrix_part& part, std::uint32_t stream_id, float deviation,
                 cudaStream_t stream) {
  const std::uint64_t count = part.rows * part.columns;
  const float width = deviation * 3.4641016f; // of a uniform distribution: sqrt(12) deviations
  const std::uint64_t salt = (std::uint64_t{stream_id} + 1) * 0x9e3779b97f4a7c15ull;
  const auto blocks =
      static_cast<unsigned>(count / row_threads + 1 < 4096 ? count / row_threads + 1 : 4096);
  random_kernel<T><<<blocks, row_threads, 0, stream>>>(out, part, salt, width);
  cuda_check(cudaGetLastError());
}

void fill_constant(float* out, std::uint64_t count, float value, cudaStream_t stream) {
  constant_kernel<<<blocks_for(count), row_threads, 0, stream>>>(out, count, value);
  cuda_check(cudaGetLastError());
}

template void embed(const float*, const std::int32_t*, std::uint32_t, std::uint32_t, float*,
                    cudaStream_t);
template void embed(const bf16*, const std::int32_t*, std::uint32_t, std::uint32_t, float*,
                    cudaStream_t);
template void norm_rows(const norm_call&, float*, cudaStream_t);
template void norm_rows(const norm_call&, bf16*, cudaStream_t);
template void rotate_and_store<float>(const rotate_call&, cudaStream_t);
template void rotate_and_store<bf16>(const rotate_call&, cudaStream_t);
template void swiglu(const float*, std::uint32_t, std::uint32_t, float*, cudaStream_t);
template void swiglu(const bf16*, std::uint32_t, std::uint32_t, bf16*, cudaStream_t);
template void add_bias(float*, const float*, std::uint32_t, std::uint32_t, cudaStream_t);
template void add_bias(bf16*, const float*, std::uint32_t, std::uint32_t, cudaStream_t);
template void fill_random(float*, const matrix_part&, std::uint32_t, float, cudaStream_t);
template void fill_random(bf16*, const matrix_part&, std::uint32_t, float, cudaStream_t);

} // namespace tokenrouter::gpu
