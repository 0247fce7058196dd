#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "gpu/wave_plan.hpp"

namespace tokenrouter::gpu {

/// Sizes that arrays of a wave are padded to; what a CUDA graph is made for.
struct wave_bucket {
  std::uint32_t tokens = 0;
  std::uint32_t ends = 0;
  bool has_biases = false; ///< of some end: another kernel draws

  friend auto operator<=>(const wave_bucket&, const wave_bucket&) = default;
};

/// Where a wave's arrays stand on the device. All are in one buffer, so that they travel in one
/// copy; for one bucket they always stand in the same places.
struct device_wave {
  const std::int32_t* ids;
  const std::int32_t* positions;
  const std::int32_t* slots;
  const std::int32_t* tables_of;
  const draw_order* orders;
  const std::int32_t* piece_count;
  const attention_piece* pieces;
  const attention_tile* tiles;
  const std::int32_t* tables;
};

/// The buffer and its pinned image on the host.
class wave_buffers {
 public:
  /// `tables_max`: block ids of a wave. Errors: capacity.
  static result<wave_buffers> create(const wave_limits& limits, const attention_plan& attention,
                                     std::uint64_t tables_max);

  device_wave view(const wave_bucket& bucket) const;

  /// Copies a wave that the bucket holds; its padding writes no KV. The image is free again when
  /// the stream has passed the copy.
  void upload(const wave& w, const wave_bucket& bucket, cudaStream_t stream);

 private:
  struct places;
  places places_of(const wave_bucket& bucket) const;

  wave_limits limits_;
  attention_plan attention_;
  device_memory device_, host_;
};

} // namespace tokenrouter::gpu
