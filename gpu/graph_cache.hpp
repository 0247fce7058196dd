#pragma once

#include <array>
#include <cstdint>
#include <map>

#include <cuda_runtime_api.h>

#include "gpu/recorded_work.hpp"
#include "gpu/wave_buffers.hpp"

namespace tokenrouter::gpu {

/// Token counts that CUDA graphs are made for; a wave is padded to the next.
inline constexpr std::array<std::uint32_t, 14> graph_sizes = {1,  2,  4,  8,  16,  24,  32,
                                                              40, 48, 64, 96, 128, 192, 256};

/// The smallest of `graph_sizes` that holds `count`; 0: none does.
std::uint32_t graph_size_for(std::uint32_t count);

/// Replays of whole waves, one for each bucket.
class graph_cache {
 public:
  bool has(const wave_bucket& bucket) const { return graphs_.contains(bucket); }
  std::size_t count() const { return graphs_.size(); }

  /// Records what `enqueue` puts on the stream, and keeps it for the bucket.
  template <class F>
  void capture(const wave_bucket& bucket, cudaStream_t stream, const F& enqueue) {
    graphs_.emplace(bucket, recorded_work(stream, enqueue)).first->second.upload(stream);
  }

  /// Requires has(bucket).
  void launch(const wave_bucket& bucket, cudaStream_t stream) const {
    graphs_.at(bucket).launch(stream);
  }

 private:
  std::map<wave_bucket, recorded_work> graphs_;
};

} // namespace tokenrouter::gpu
