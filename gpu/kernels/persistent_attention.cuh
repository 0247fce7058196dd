#pragma once

#include "gpu/kernels/attention_state.cuh"
#include "gpu/kernels/persistent_block.cuh"

/// Attention of the persistent kernel: items are pieces for one kv head. Keys and values of earlier
/// waves come through the ring, those of this wave from their thread blocks.
namespace tokenrouter::gpu {

/// A KV block in a stage of the ring: 16 keys, then 16 values, as in the pool.
template <int head_dim>
struct stage_block {
  static constexpr int vector_bytes = head_dim * 2;
  static constexpr int bytes = 2 * 16 * vector_bytes;
  static constexpr int per_stage = stage_bytes / bytes;

  __device__ static int place(int side, int position) {
    return (side * 16 + position) * vector_bytes;
  }
};

/// What of an item is new: positions from `first` on, `count` of them, of wave tokens from `token`.
struct new_tokens {
  int first, count, token;

  __device__ new_tokens(const attention_piece& p) {
    const int last = p.position + p.token_count - 1;
    first = max(p.wave_position, p.block_begin * 16);
    count = max(0, min(last, p.block_end * 16 - 1) - first + 1);
    token = p.first_token - p.position + first;
  }
};

/// Norm and rotation of a query or key vector of `words`, which a warp holds in its first
/// head_dim / 4 lanes: words lane and lane + head_dim / 4.
template <int head_dim>
__device__ uint2 rotated(uint2 v, const float* norm, const float4& turn, float eps) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool active = lane < head_dim / 4;
  const auto floats = [](unsigned w) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&w));
  };
  float2 a = floats(v.x), b = floats(v.y);
  if (norm) {
    const float squares = warp_sum(active ? a.x * a.x + a.y * a.y + b.x * b.x + b.y * b.y : 0.0f);
    const float factor = 1.0f / sqrtf(squares / static_cast<float>(head_dim) + eps);
    const int at = active ? lane * 2 : 0;
    const float2 low = __ldg(reinterpret_cast<const float2*>(norm + at));
    const float2 high = __ldg(reinterpret_cast<const float2*>(norm + at + head_dim / 2));
    a.x *= factor * low.x;
    a.y *= factor * low.y;
    b.x *= factor * high.x;
    b.y *= factor * high.y;
  }
  return make_uint2(pack_bf16(a.x * turn.x - b.x * turn.y, a.y * turn.z - b.y * turn.w),
                    pack_bf16(b.x * turn.x + a.x * turn.y, b.y * turn.z + a.y * turn.w));
}

/// Queries of an item and its new keys and values to shared memory; the unit's own keys and values
/// also to the pool.
template <int head_dim, class Memory>
__device__ void collect(Memory& m, const persistent_call& c, const exchange_words& words,
                        unsigned layer, const attention_piece& piece, int kv_head) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const persistent_shape& s = c.shape;
  const int group = static_cast<int>(s.heads / s.kv_heads);
  const new_tokens fresh(piece);
  const int queries = piece.token_count * group;
  const int at = min(lane, head_dim / 4 - 1); // lanes beyond repeat the last one's part
  for (int i = warp; i < queries + 2 * fresh.count; i += persistent_warps) {
    const bool query = i < queries;
    const int n = i - queries;
    const bool value = !query && n % 2 == 1;
    const int token = query ? piece.first_token + i / group : fresh.token + n / 2;
    const int head = query   ? kv_head * group + i % group
                     : value ? static_cast<int>(s.heads + s.kv_heads) + kv_head
                             : static_cast<int>(s.heads) + kv_head;
    const float4 turn = __ldg(
        reinterpret_cast<const float4*>(c.rope + std::uint64_t(c.positions[token]) * head_dim) +
        at);
    const unsigned* from = words.qkv(static_cast<unsigned>(token)) + head * (head_dim / 2) + at;
    uint2 v;
    do
      v = make_uint2(read_shared_word(from), read_shared_word(from + head_dim / 4));
    while (v.x == absent_word || v.y == absent_word);
    const persistent_layer& l = m.layers[layer];
    if (!value)
      v = rotated<head_dim>(v, query ? l.q_norm : l.k_norm, turn, c.eps);
    if (lane >= head_dim / 4)
      continue;
    bf16* to = query ? m.q[i] : value ? m.new_values[n / 2] : m.new_keys[n / 2];
    reinterpret_cast<unsigned*>(to)[lane] = v.x;
    reinterpret_cast<unsigned*>(to)[lane + head_dim / 4] = v.y;
    if (query || token < piece.first_token)
      continue;
    const int slot = c.slots[token];
    unsigned* stored = reinterpret_cast<unsigned*>(
        c.pool + std::uint64_t(slot / 16) * c.block_elements +
        (2 * layer + (value ? 1 : 0)) * c.side_elements + (kv_head * 16 + slot % 16) * head_dim);
    stored[lane] = v.x;
    stored[lane + head_dim / 4] = v.y;
  }
}

/// Puts new keys and values over what the ring brought of a KV block; all warps that read it do so.
template <int head_dim, class Memory>
__device__ void patch(const Memory& m, const new_tokens& fresh, int block, unsigned char* keys) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int chunks = head_dim / 8; // of 16 bytes, of one vector
  const int begin = max(fresh.first, block * 16);
  const int end = min(fresh.first + fresh.count, block * 16 + 16);
  if (begin >= end)
    return;
  for (int i = lane; i < (end - begin) * 2 * chunks; i += 32) {
    const int position = begin + i / (2 * chunks), side = i / chunks % 2, chunk = i % chunks;
    const bf16* from =
        side == 0 ? m.new_keys[position - fresh.first] : m.new_values[position - fresh.first];
    reinterpret_cast<uint4*>(keys + stage_block<head_dim>::place(side, position % 16))[chunk] =
        reinterpret_cast<const uint4*>(from)[chunk];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // a bulk copy follows some day
  __syncwarp();
}

/// How a warp takes part in an item: it takes every `sharers`-th KV block from `place` on, all of
/// it or, where there are few, one group of 64 dimensions of the values.
template <int head_dim>
struct item_warp {
  static constexpr int groups = (head_dim + 63) / 64;
  static constexpr int width = warp_state<head_dim>::width;
  int lane, place, sharers, group; ///< group -1: all

  __device__ item_warp(int blocks) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    lane = static_cast<int>(threadIdx.x) % 32;
    const bool few = groups > 1 && blocks <= persistent_warps / groups;
    group = few ? warp % groups : -1;
    place = few ? warp / groups : warp;
    sharers = few ? persistent_warps / groups : persistent_warps;
  }
  __device__ bool has(int g) const { return group < 0 || group == g; }
};

template <int head_dim>
struct item_queries {
  uint4 low[head_dim / 32], high[head_dim / 32]; ///< rows lane / 4 and that + 8

  template <class Memory>
  __device__ item_queries(const Memory& m, int rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bf16* q = m.q[lane / 4] + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < head_dim / 32; ++i) {
      low[i] = *reinterpret_cast<const uint4*>(q + i * 32);
      high[i] = rows > 8 ? *reinterpret_cast<const uint4*>(q + 8 * head_dim + i * 32)
                         : make_uint4(0, 0, 0, 0);
    }
  }
};

/// One KV block in shared memory, keys and then values; `seen`: how many of its positions hold
/// something.
template <int head_dim>
__device__ void attend_block(warp_state<head_dim>& s, const item_queries<head_dim>& q,
                             const item_warp<head_dim>& who, const unsigned char* keys, float scale,
                             int first_position, int seen, const int (&last_position)[2]) {
  const int lane = who.lane;
  using layout = stage_block<head_dim>;
  const unsigned char* k = keys + layout::place(0, lane / 4) + lane % 4 * 16;
  float scores[2][4] = {}, more[2][4] = {}; // short chains
#pragma unroll
  for (int i = 0; i < head_dim / 32; ++i) {
    const unsigned first[4] = {q.low[i].x, q.high[i].x, q.low[i].y, q.high[i].y};
    const unsigned second[4] = {q.low[i].z, q.high[i].z, q.low[i].w, q.high[i].w};
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      const uint4 part =
          *reinterpret_cast<const uint4*>(k + tile * 8 * layout::vector_bytes + i * 64);
      multiply_add(scores[tile], first, part.x, part.y);
      multiply_add(more[tile], second, part.z, part.w);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    scores[0][i] += more[0][i];
    scores[1][i] += more[1][i];
  }
  weigh(s, scores, scale * log2_e, first_position, last_position);
  unsigned p[4];
  pack_weights(scores, p);
  constexpr int width = item_warp<head_dim>::width;
  const unsigned char* v = keys + lane / 4 * width * 2;
#pragma unroll
  for (int g = 0; g < item_warp<head_dim>::groups; ++g) {
    if (!who.has(g))
      continue;
    uint4 part[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = lane % 4 * 2 + i % 2 + i / 2 * 8;
      const unsigned char* at = v + layout::place(1, token) + g * 128;
      part[i] = make_uint4(0, 0, 0, 0);
      if (token >= seen)
        continue; // its memory may hold anything
      if constexpr (width == 8) {
        part[i] = *reinterpret_cast<const uint4*>(at);
      } else {
        const uint2 short_part = *reinterpret_cast<const uint2*>(at);
        part[i].x = short_part.x;
        part[i].y = short_part.y;
      }
    }
    add_weighted(s.sums[g], p, part);
  }
}

/// Merges the warps' sums of an item, as many rows at a time as there is room for, and hands them
/// on: to the products, or to the merge of the unit's pieces.
template <int head_dim, class Memory>
__device__ void hand_on(Memory& m, const persistent_call& c, const exchange_words& words,
                        unsigned tag, const attention_piece& piece, int kv_head,
                        const item_warp<head_dim>& who, warp_state<head_dim>& s) {
  constexpr int width = item_warp<head_dim>::width, groups = item_warp<head_dim>::groups;
  const int heads_each = static_cast<int>(c.shape.heads / c.shape.kv_heads);
  const int rows = piece.token_count * heads_each;
  const int parts = min(who.sharers, piece.block_end - piece.block_begin);
  const int room = Memory::sum_count / (parts * head_dim);
  const int lane = who.lane;
  const bool speaks = who.place < parts && who.group <= 0 && lane % 4 == 0;
#pragma unroll
  for (int side = 0; side < 2; ++side)
    if (speaks)
      m.largest[who.place][lane / 4 + side * 8] = s.largest[side];
  sync_readers();
  if (who.place < parts) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float most = -1e30f; // finite, so that it can carry a tag
      for (int p = lane % 4; p < parts; p += 4)
        most = fmaxf(most, m.largest[p][lane / 4 + side * 8]);
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      const float share = power_of_two(s.largest[side] - most);
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (int j = 0; j < width; ++j) {
          s.sums[g][j][side * 2] *= share;
          s.sums[g][j][side * 2 + 1] *= share;
        }
      s.total[side] *= share;
      s.total[side] += __shfl_xor_sync(0xffffffffu, s.total[side], 1);
      s.total[side] += __shfl_xor_sync(0xffffffffu, s.total[side], 2);
      if (speaks) {
        m.total[who.place][lane / 4 + side * 8] = s.total[side];
        if (who.place == 0)
          m.most[lane / 4 + side * 8] = most;
      }
    }
  }
#pragma unroll 1
  for (int first = 0; first < rows; first += room) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int row = lane / 4 + side * 8 - first;
      if (who.place >= parts || row < 0 || row >= room || row + first >= rows)
        continue;
      float* to = m.sums + (who.place * room + row) * head_dim + lane % 4 * 2 * width;
#pragma unroll
      for (int g = 0; g < groups; ++g)
#pragma unroll
        for (int odd = 0; odd < 2; ++odd)
#pragma unroll
          for (int j = 0; j < width; j += 4)
            if (who.has(g))
              *reinterpret_cast<float4*>(to + g * 64 + odd * width + j) =
                  make_float4(s.sums[g][j][side * 2 + odd], s.sums[g][j + 1][side * 2 + odd],
                              s.sums[g][j + 2][side * 2 + odd], s.sums[g][j + 3][side * 2 + odd]);
    }
    sync_readers();
    const int here = min(room, rows - first);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < here * (head_dim / 2);
         i += persistent_threads) {
      const int row = first + i / (head_dim / 2), d = i % (head_dim / 2) * 2;
      float total = 0;
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (int w = 0; w < persistent_warps; ++w)
        if (w < parts) {
          const float2 part =
              *reinterpret_cast<const float2*>(m.sums + (w * room + row - first) * head_dim + d);
          total += m.total[w][row];
          sum.x += part.x;
          sum.y += part.y;
        }
      const unsigned token = static_cast<unsigned>(piece.first_token + row / heads_each);
      if (piece.piece_count == 1) {
        const int head = kv_head * heads_each + row % heads_each;
        write_bf16_pair(words.attended(token) + (head * head_dim + d) / 2, sum.x / total,
                        sum.y / total);
        continue;
      }
      const std::uint64_t at =
          (std::uint64_t(piece.partial + piece.piece) * c.shape.kv_heads + kv_head) * 16 + row;
      write_tagged_pair(c.exchange.sums + at * head_dim + d, sum.x, sum.y, tag);
      if (d == 0)
        write_tagged_pair(c.exchange.bounds + at * 2, m.most[row], total, tag);
    }
    sync_readers();
  }
}

template <int head_dim, class Memory>
__device__ void attend_item(Memory& m, ring& r, const persistent_call& c,
                            const exchange_words& words, unsigned layer, int item) {
  const int heads_each = static_cast<int>(c.shape.heads / c.shape.kv_heads);
  const attention_piece& piece = m.items[item];
  const int kv_head = m.item_heads[item];
  collect<head_dim>(m, c, words, layer, piece, kv_head);
  sync_readers();
  const int count = piece.block_end - piece.block_begin;
  const item_warp<head_dim> who(count);
  const item_queries<head_dim> queries(m, piece.token_count * heads_each);
  const new_tokens fresh(piece);
  const int last_position[2] = {piece.position + who.lane / 4 / heads_each,
                                piece.position + (who.lane / 4 + 8) / heads_each};
  const int last = piece.position + piece.token_count - 1;
  warp_state<head_dim> state;
  int mine = who.place;
#pragma unroll 1
  for (int i = 0; i < count; i += stage_block<head_dim>::per_stage) {
    r.await_full();
    unsigned char* stage = r.here();
#pragma unroll 1
    for (; mine < min(count, i + stage_block<head_dim>::per_stage); mine += who.sharers) {
      unsigned char* keys = stage + (mine - i) * stage_block<head_dim>::bytes;
      const int block = piece.block_begin + mine;
      patch<head_dim>(m, fresh, block, keys);
      attend_block<head_dim>(state, queries, who, keys, c.scale, block * 16, last - block * 16 + 1,
                             last_position);
    }
    r.release();
  }
  hand_on<head_dim>(m, c, words, tag_of_layer(layer), piece, kv_head, who, state);
}

} // namespace tokenrouter::gpu
