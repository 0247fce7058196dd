#include "gpu/wave_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/cuda_error.hpp"
#include "runtime/core/check.hpp"

namespace tokenrouter::gpu {

/// Offsets in bytes; all arrays are of 32-bit values.
struct wave_buffers::places {
  std::size_t ids, positions, slots, tables_of, orders, piece_count, pieces, tiles, tables;
};

wave_buffers::places wave_buffers::places_of(const wave_bucket& bucket) const {
  std::size_t next = 0;
  const auto take = [&](std::size_t bytes) {
    const std::size_t at = next;
    next += (bytes + 15) / 16 * 16;
    return at;
  };
  const std::size_t tokens = bucket.tokens;
  places p;
  p.ids = take(tokens * sizeof(std::int32_t));
  p.positions = take(tokens * sizeof(std::int32_t));
  p.slots = take(tokens * sizeof(std::int32_t));
  p.tables_of = take(tokens * sizeof(std::int32_t));
  p.orders = take(bucket.ends * sizeof(draw_order));
  p.piece_count = take(sizeof(std::int32_t));
  p.pieces = take(pieces_max(bucket.tokens, attention_) * sizeof(attention_piece));
  p.tiles = take(tokens / 16 * sizeof(attention_tile));
  p.tables = next;
  return p;
}

result<wave_buffers> wave_buffers::create(const wave_limits& limits,
                                          const attention_plan& attention,
                                          std::uint64_t tables_max) {
  wave_buffers b;
  b.limits_ = limits;
  b.attention_ = attention;
  const std::size_t bytes = b.places_of({limits.tokens_max, limits.ends_max}).tables +
                            tables_max * sizeof(std::int32_t) +
                            std::size_t{limits.ends_max} * draw_biases_max * sizeof(draw_bias);
  auto device = device_memory::allocate(bytes);
  if (!device)
    return tl::unexpected(device.error());
  auto host = device_memory::allocate_pinned(bytes);
  if (!host)
    return tl::unexpected(host.error());
  b.device_ = std::move(*device);
  b.host_ = std::move(*host);
  return b;
}

device_wave wave_buffers::view(const wave_bucket& bucket) const {
  const places p = places_of(bucket);
  const std::byte* base = device_.as();
  const auto ints = [&](std::size_t at) {
    return reinterpret_cast<const std::int32_t*>(base + at);
  };
  return {ints(p.ids),
          ints(p.positions),
          ints(p.slots),
          ints(p.tables_of),
          reinterpret_cast<const draw_order*>(base + p.orders),
          ints(p.piece_count),
          reinterpret_cast<const attention_piece*>(base + p.pieces),
          reinterpret_cast<const attention_tile*>(base + p.tiles),
          ints(p.tables)};
}

void wave_buffers::upload(const wave& w, const wave_bucket& bucket, cudaStream_t stream) {
  check(w.ids.size() <= bucket.tokens && w.orders.size() <= bucket.ends,
        "wave_buffers: a wave fits its bucket");
  const places p = places_of(bucket);
  const std::size_t bytes = p.tables + w.tables.size() * sizeof(std::int32_t);
  check(bytes <= host_.bytes(), "wave_buffers: block tables and biases fit");
  std::byte* base = host_.as();
  const auto put = [&]<class T>(std::size_t at, const std::vector<T>& from, std::size_t count,
                                const T& padding) {
    T* to = reinterpret_cast<T*>(base + at);
    std::copy(from.begin(), from.end(), to);
    std::fill(to + from.size(), to + count, padding);
  };
  put(p.ids, w.ids, bucket.tokens, 0);
  put(p.positions, w.positions, bucket.tokens, 0);
  put(p.slots, w.slots, bucket.tokens, -1);
  put(p.tables_of, w.tables_of, bucket.tokens, 0);
  put(p.orders, w.orders, bucket.ends,
      draw_order{.token = 0,
                 .temperature = 0,
                 .top_k = 0,
                 .top_p = 1,
                 .min_p = 0,
                 .uniform = 0,
                 .signals = 0,
                 .mix_weight = 0,
                 .mix = -1,
                 .distribution = -1,
                 .scored = -1,
                 .likeliest = 0,
                 .biases = 0,
                 .bias_count = 0,
                 .window_start = -1});
  *reinterpret_cast<std::int32_t*>(base + p.piece_count) =
      static_cast<std::int32_t>(w.pieces.size());
  put(p.pieces, w.pieces, w.pieces.size(), {});
  put(p.tiles, w.tiles, w.tiles.size(), {});
  put(p.tables, w.tables, w.tables.size(), 0);
  cuda_check(cudaMemcpyAsync(device_.as(), base, bytes, cudaMemcpyHostToDevice, stream));
}

} // namespace tokenrouter::gpu
