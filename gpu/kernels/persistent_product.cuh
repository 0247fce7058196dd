#pragma once

#include "gpu/kernels/persistent_block.cuh"

/// A product of the persistent kernel: warps share k, 64 elements of every segment each, and add
/// their sums in the order of warps.
namespace tokenrouter::gpu {

/// Operands of one warp for one segment: rows lane / 4 and that + 8, see read_operands of
/// skinny_product.cu.
struct row_operands {
  uint4 low[2], high[2];
};

__device__ inline uint4 nothing() {
  return make_uint4(0, 0, 0, 0);
}

/// A warp's weights of one stage: 8 columns, 64 of k.
struct stage_weights {
  uint4 part[2];

  __device__ void load(const unsigned char* stage, int segment) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const unsigned char* row =
        stage + lane / 4 * stage_row_bytes + (segment * segment_k + warp * 64) * 2 + lane % 4 * 16;
    part[0] = *reinterpret_cast<const uint4*>(row);
    part[1] = *reinterpret_cast<const uint4*>(row + 64);
  }
  /// Two chains of sums: each waits for itself alone.
  __device__ void multiply(float (&sums)[2][4], const row_operands& x) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned first[4] = {x.low[half].x, x.high[half].x, x.low[half].y, x.high[half].y};
      const unsigned second[4] = {x.low[half].z, x.high[half].z, x.low[half].w, x.high[half].w};
      multiply_add(sums[0], first, part[half].x, part[half].y);
      multiply_add(sums[1], second, part[half].z, part[half].w);
    }
  }
};

__device__ inline uint4 weighted_bf16(const float4& a, const float4& b, const float4& w,
                                      const float4& v) {
  return make_uint4(pack_bf16(a.x * w.x, a.y * w.y), pack_bf16(a.z * w.z, a.w * w.w),
                    pack_bf16(b.x * v.x, b.y * v.y), pack_bf16(b.z * v.z, b.w * v.w));
}

__device__ inline float4 as_floats(const uint4& v) {
  return make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z),
                     __uint_as_float(v.w));
}

__device__ inline float squares_of(const float4& v) {
  return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

/// Where the i-th quad of a lane's operands stands, see row_operands: four to a segment.
__device__ constexpr int place(int i) {
  return i / 4 * segment_k + i / 2 % 2 * 32 + i % 2 * 4;
}

/// A residual stream: tagged floats, or, without them, rows of the embedding.
struct residual_rows {
  const float* tagged;
  unsigned tag;
  const bf16* table;
  const std::int32_t* ids;
  unsigned stride;
  bool crowded; ///< many rows

  /// Quads of elements at `at` + place(i), for segments that are wanted; of others and if not `any`
  /// zeros.
  template <int count, class Wanted>
  __device__ void read(bool any, unsigned row, int at, const Wanted& wanted,
                       float4 (&v)[count]) const {
    if (!tagged) {
#pragma unroll
      for (int i = 0; i < count; ++i)
        v[i] = any && wanted(i / 4) ? embedded(row, at + place(i)) : make_float4(0, 0, 0, 0);
      return;
    }
    const float* p = tagged + row * stride + at;
    if (crowded && row == 0 && wanted(0)) // the others hardly come later: less is asked for in vain
      while (!all_ready(tagged_words{tag}, read_shared_words(p)))
        ;
    __syncwarp();
    uint4 words[count];
    await_words(
        words, tagged_words{tag}, [&](int i) { return any && wanted(i / 4); },
        [&](int i) { return p + place(i); });
#pragma unroll
    for (int i = 0; i < count; ++i)
      v[i] = as_floats(words[i]);
  }
  __device__ float4 embedded(unsigned row, int at) const {
    const uint2 words =
        *reinterpret_cast<const uint2*>(table + std::uint64_t(ids[row]) * stride + at);
    const auto pair = [](unsigned w) {
      return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&w));
    };
    const float2 a = pair(words.x), b = pair(words.y);
    return make_float4(a.x, a.y, b.x, b.y);
  }
};

/// Operands x · weight of a residual stream; the factor that makes it an RMS norm comes last, since
/// it is the same for a whole row. The weights stand in the ring before the product's tiles.
template <bool two_halves>
struct normed_operands {
  static constexpr bool normed = true;
  static constexpr int held = streamed_segments;
  residual_rows rows;
  ring& r;
  unsigned count;

  __device__ void read(int segment, int k, row_operands (&x)[held], float (&squares)[2]) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int first = segment * segment_k + warp * 64, at = first + lane % 4 * 8;
    const auto wanted = [&](int s) { return first + s * segment_k < k; };
    float4 w[held * 4];
    const float* weight = reinterpret_cast<const float*>(r.await_full());
#pragma unroll
    for (int i = 0; i < held * 4; ++i)
      w[i] = wanted(i / 4) ? *reinterpret_cast<const float4*>(weight + at + place(i))
                           : make_float4(0, 0, 0, 0);
    r.release();
    const auto take = [&](unsigned row, int half) {
      float4 v[held * 4];
      rows.read<held * 4>(row < count, row, at, wanted, v);
#pragma unroll
      for (int s = 0; s < held; ++s)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          (half == 0 ? x[s].low : x[s].high)[i] = weighted_bf16(
              v[4 * s + 2 * i], v[4 * s + 2 * i + 1], w[4 * s + 2 * i], w[4 * s + 2 * i + 1]);
#pragma unroll
      for (int i = 0; i < held * 4; ++i)
        squares[half] += squares_of(v[i]);
    };
    const unsigned row = static_cast<unsigned>(lane) / 4;
    take(row, 0);
    if constexpr (two_halves) {
      take(row + 8, 1);
    } else {
#pragma unroll
      for (int s = 0; s < held; ++s)
        x[s].high[0] = x[s].high[1] = nothing();
    }
  }
};

/// Operands that come as bf16 words.
template <bool two_halves>
struct word_operands {
  static constexpr bool normed = false;
  static constexpr int held = added_segments;
  const unsigned* base; ///< of row 0
  unsigned stride;      ///< words from row to row
  unsigned count;

  __device__ void read(int segment, int k, row_operands (&x)[held], float (&)[2]) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int at = segment * segment_k + warp * 64;
    const unsigned row = static_cast<unsigned>(lane) / 4;
    const unsigned* p = base + row * stride + at / 2 + lane % 4 * 4;
    constexpr int halves = two_halves ? 2 : 1;
    constexpr int parts = held * halves * 2;
    uint4 v[parts];
    const auto wanted = [&](int i) {
      return at + i / (2 * halves) * segment_k < k && row + i / 2 % halves * 8 < count;
    };
    const auto place = [&](int i) {
      return p + i / (2 * halves) * (segment_k / 2) + i / 2 % halves * 8 * stride + i % 2 * 16;
    };
    if (count > crowded_rows && row == 0 && wanted(0))
      while (!all_ready(written_words{}, read_shared_words(place(0))))
        ;
    __syncwarp();
    await_words(v, written_words{}, wanted, place);
#pragma unroll
    for (int s = 0; s < held; ++s)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        x[s].low[i] = v[s * 2 * halves + i];
        x[s].high[i] = two_halves ? v[s * 2 * halves + 2 * (halves - 1) + i] : nothing();
      }
  }
};

/// The next stages of a product: `tiles` column tiles, at most max_tiles, and of each the same
/// segments as `x`.
template <int max_tiles, int held>
__device__ void multiply_stages(ring& r, int tiles, int segments, bool (&mine)[held],
                                const row_operands (&x)[held], float (&sums)[max_tiles][2][4]) {
  const int stages = (segments + stage_segments - 1) / stage_segments; // of a tile
  r.await_full(tiles * stages);
  constexpr int at_once = held < 3 ? held : 3;
#pragma unroll
  for (int first = 0; first < held; first += at_once) {
    stage_weights w[max_tiles][at_once] = {}; // all, so that nothing of it lives longer
#pragma unroll
    for (int t = 0; t < max_tiles; ++t)
#pragma unroll
      for (int s = 0; s < at_once; ++s)
        if (t < tiles && mine[first + s])
          w[t][s].load(r.ahead(t * stages + (first + s) / stage_segments),
                       (first + s) % stage_segments);
#pragma unroll
    for (int s = 0; s < at_once; ++s)
#pragma unroll
      for (int t = 0; t < max_tiles; ++t)
        if (t < tiles && mine[first + s])
          w[t][s].multiply(sums[t], x[first + s]);
  }
  r.release(tiles * stages);
}

/// Hands `emit` the sums of the thread block's `tiles` column tiles: emit(row, tile, column, sums),
/// where sums(i) are those of two neighbouring columns of tile + i. If `gated`, every other tile is
/// left to the one before it: gates and ups. The ring holds group_tiles tiles after another, and of
/// them as many segments as the operands hold.
template <int group_tiles, int pass_tiles, bool two_halves, class Memory, class Operands,
          class Emit>
__device__ __forceinline__ void product(Memory& m, ring& r, int tiles, int k, int rows, float eps,
                                        bool gated, const Operands& operands, const Emit& emit) {
  constexpr int held = Operands::held;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const bool once = k <= held * segment_k;
  row_operands x[held] = {}; // here, so that nothing of it lives longer
#pragma unroll 1
  for (int first = 0; first < tiles; first += pass_tiles) {
    const int here = min(pass_tiles, tiles - first);
#pragma unroll 1
    for (int tile = 0; tile < here; tile += group_tiles) {
      float sums[group_tiles][2][4] = {};
      float squares[2] = {0, 0};
#pragma unroll 1
      for (int segment = 0; segment * segment_k < k; segment += held) {
        if (!once || first + tile == 0)
          operands.read(segment, k, x, squares);
        bool mine[held];
#pragma unroll
        for (int s = 0; s < held; ++s)
          mine[s] = (segment + s) * segment_k + warp * 64 < k;
        const int segments = min(held, (k + segment_k - 1) / segment_k - segment);
        multiply_stages<group_tiles, held>(r, min(group_tiles, here - tile), segments, mine, x,
                                           sums);
      }
      if constexpr (Operands::normed) {
        if (first + tile == 0) {
#pragma unroll
          for (int half = 0; half < (two_halves ? 2 : 1); ++half) {
            float sum = squares[half];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
              m.squares[lane / 4 + half * 8][warp] = sum;
          }
        }
      }
#pragma unroll
      for (int half = 0; half < (two_halves ? 2 : 1); ++half) {
        const int row = lane / 4 + half * 8;
        float* to = m.sums + (warp * Memory::rows + row) * column_stride + tile * 8 + lane % 4 * 2;
#pragma unroll
        for (int t = 0; t < group_tiles; ++t)
          if (row < rows && tile + t < here)
            *reinterpret_cast<float2*>(to + t * 8) =
                make_float2(sums[t][0][half * 2] + sums[t][1][half * 2],
                            sums[t][0][half * 2 + 1] + sums[t][1][half * 2 + 1]);
      }
    }
    sync_readers();
    static_assert(pass_tiles * 4 <= 32);
    const int pair = lane % 4, tile = gated ? lane / 4 * 2 : lane / 4;
    if (tile < here)
#pragma unroll 1
      for (int row = warp; row < rows; row += persistent_warps) {
        float factor = 1;
        if constexpr (Operands::normed) {
          float total = 0;
#pragma unroll
          for (int w = 0; w < persistent_warps; w += 4) {
            const float4 part = *reinterpret_cast<const float4*>(&m.squares[row][w]);
            total += part.x + part.y + part.z + part.w;
          }
          factor = rsqrtf(total / static_cast<float>(k) + eps);
        }
        const float* from = m.sums + row * column_stride + tile * 8 + pair * 2;
        emit(static_cast<unsigned>(row), static_cast<unsigned>(first + tile),
             static_cast<unsigned>(pair) * 2, [&](int of) {
               float2 sum = make_float2(0, 0);
#pragma unroll
               for (int w = 0; w < persistent_warps; ++w) {
                 const float2 part = *reinterpret_cast<const float2*>(
                     from + of * 8 + w * Memory::rows * column_stride);
                 sum.x += part.x;
                 sum.y += part.y;
               }
               return make_float2(sum.x * factor, sum.y * factor);
             });
      }
    sync_readers(); // the sums have been read
  }
}

} // namespace tokenrouter::gpu
