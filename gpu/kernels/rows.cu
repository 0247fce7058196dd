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

/// A row in quads of 4, for each thread at most so many held; what is beyond is read twice.
constexpr unsigned quads_held = 4;

/// Requires hidden % 4 == 0.
template <class T>
__global__ void norm_kernel(norm_call c, T* out) {
  __shared__ float scratch[32];
  const unsigned quads = c.hidden / 4;
  wait_for_previous();
  let_next_start();
  const std::uint64_t from = c.gather ? read_activation(&c.gather[blockIdx.x].token) : blockIdx.x;
  const float4* x = reinterpret_cast<const float4*>(c.residual + from * c.hidden);
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * c.hidden;
  float4 values[quads_held];
  float squares = 0;
  const auto add = [&](const float4& v) {
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  };
#pragma unroll
  for (unsigned k = 0; k < quads_held; ++k) {
    const unsigned i = threadIdx.x + k * blockDim.x;
    values[k] = i < quads ? __ldcg(x + i) : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (unsigned k = 0; k < quads_held; ++k)
    add(values[k]);
  for (unsigned i = threadIdx.x + quads_held * blockDim.x; i < quads; i += blockDim.x)
    add(__ldcg(x + i));
  const float factor =
      1.0f / sqrtf(block_sum(squares, scratch) / static_cast<float>(c.hidden) + c.eps);
  const auto put = [&](unsigned i, const float4& v) {
    const float4 w = reinterpret_cast<const float4*>(c.weight)[i];
    const float4 normed =
        make_float4(v.x * factor * w.x, v.y * factor * w.y, v.z * factor * w.z, v.w * factor * w.w);
    put_quad(out + row + 4 * i, normed);
    if (c.exact)
      put_quad(c.exact + row + 4 * i, normed);
  };
#pragma unroll
  for (unsigned k = 0; k < quads_held; ++k)
    if (const unsigned i = threadIdx.x + k * blockDim.x; i < quads)
      put(i, values[k]);
  for (unsigned i = threadIdx.x + quads_held * blockDim.x; i < quads; i += blockDim.x)
    put(i, __ldcg(x + i));
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

/// Where a token's keys or values of one kv head go, in quads.
template <int head_dim>
__device__ uint2* store_kv(const rotate_call& c, int slot, unsigned kv_head,
                           std::uint64_t side_offset) {
  const std::uint64_t place =
      static_cast<std::uint64_t>(slot / 16) * c.block_elements + side_offset +
      (std::uint64_t{kv_head} * 16 + static_cast<unsigned>(slot) % 16) * head_dim;
  return static_cast<uint2*>(c.pool) + place / 4;
}

/// The same for heads of 64 or 128 bf16: 4 neighbouring dimensions for each lane, several heads of
/// one token one after another, which share their rotation.
constexpr unsigned rotated_heads = 4;

template <int head_dim>
__global__ void rotate_quads_kernel(rotate_call c) {
  constexpr unsigned lanes = head_dim / 4, at_once = 32 / lanes;
  const unsigned all_heads = c.heads + 2 * c.kv_heads;
  const unsigned lane = threadIdx.x % lanes;
  const unsigned warp = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
  const unsigned first_head = warp * at_once * rotated_heads + threadIdx.x % 32 / lanes;
  const std::uint64_t token = blockIdx.x;
  const int slot = read_activation(c.slots + token);
  const float4* turn = reinterpret_cast<const float4*>(
      c.rope + static_cast<std::uint64_t>(read_activation(c.positions + token)) * head_dim +
      lane % (lanes / 2) * 8);
  const float4 turns[2] = {turn[0], turn[1]}; // cosine, sine, cosine, sine
  const bool low = lane < lanes / 2;
  float4 query_norm{}, key_norm{};
  if (c.q_norm) {
    query_norm = reinterpret_cast<const float4*>(c.q_norm)[lane];
    key_norm = reinterpret_cast<const float4*>(c.k_norm)[lane];
  }
  // All that was read until here is older than the step's kernels.
  wait_for_previous();
  let_next_start();
  const uint2* x = static_cast<const uint2*>(c.qkv) + token * all_heads * lanes;
  uint2 read[rotated_heads];
#pragma unroll
  for (unsigned i = 0; i < rotated_heads; ++i)
    if (const unsigned head = first_head + i * at_once; head < all_heads)
      read[i] = __ldcg(x + head * lanes + lane);
#pragma unroll
  for (unsigned i = 0; i < rotated_heads; ++i) {
    const unsigned head = first_head + i * at_once;
    const bool query = head < c.heads, key = !query && head < c.heads + c.kv_heads;
    const float2 a = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&read[i].x));
    const float2 b = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&read[i].y));
    float v[4] = {a.x, a.y, b.x, b.y};
    if (c.q_norm) {
      float squares = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3];
      for (unsigned step = lanes / 2; step > 0; step /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, step);
      const float factor = 1.0f / sqrtf(squares / static_cast<float>(head_dim) + c.eps);
      v[0] *= factor * (query ? query_norm.x : key_norm.x);
      v[1] *= factor * (query ? query_norm.y : key_norm.y);
      v[2] *= factor * (query ? query_norm.z : key_norm.z);
      v[3] *= factor * (query ? query_norm.w : key_norm.w);
    }
    const float cosines[4] = {turns[0].x, turns[0].z, turns[1].x, turns[1].z};
    const float sines[4] = {turns[0].y, turns[0].w, turns[1].y, turns[1].w};
    float turned[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float other = __shfl_xor_sync(0xffffffffu, v[k], lanes / 2);
      turned[k] = v[k] * cosines[k] + (low ? -other : other) * sines[k];
    }
    if (head >= all_heads || (!query && slot < 0))
      continue;
    if (!query && !key) {
      store_kv<head_dim>(c, slot, head - c.heads - c.kv_heads, c.value_offset)[lane] = read[i];
      continue;
    }
    const uint2 packed =
        make_uint2(pack_bf16(turned[0], turned[1]), pack_bf16(turned[2], turned[3]));
    if (query)
      static_cast<uint2*>(c.q)[(token * c.heads + head) * lanes + lane] = packed;
    else
      store_kv<head_dim>(c, slot, head - c.heads, c.key_offset)[lane] = packed;
  }
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
      return pack_bf16(swiglu_of(g.x, u.x), swiglu_of(g.y, u.y));
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
  constexpr unsigned threads_max = 1024;
  const unsigned quads = call.hidden / 4, each = quads > 512 ? quads_held : 2;
  const unsigned threads = (quads + each - 1) / each;
  launch(norm_kernel<T>,
         {call.rows, threads < threads_max ? (threads + 31) / 32 * 32 : threads_max}, stream, call,
         out);
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
  if (sizeof(T) == 2 && (call.head_dim == 64 || call.head_dim == 128)) {
    const unsigned block_heads = warps * rotated_heads * (call.head_dim == 64 ? 2 : 1);
    launch(call.head_dim == 64 ? rotate_quads_kernel<64> : rotate_quads_kernel<128>,
           {dim3(call.tokens, (all_heads + block_heads - 1) / block_heads), 32 * warps}, stream,
           call);
    return;
  }
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
