#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/device_memory.hpp"
#include "gpu/kernels/head_layers.hpp"
#include "gpu/kernels/window_records.hpp"
#include "gpu/wave_buffers.hpp"
#include "runtime/core/error.hpp"
#include "runtime/exec/heads/head.hpp"

namespace tokenrouter::gpu {

/// What heads read on the device.
struct head_sources {
  const float* hidden; ///< [rows][hidden_size]
  std::uint32_t hidden_size;
  const void* embeddings; ///< [vocabulary][hidden_size], bf16 or float
  bool bf16_embeddings;
  const float* top;    ///< [rows][kept_logits_max]
  drawn_row* drawn;    ///< [rows]
  record_view records; ///< those of the rows are written
};

/// A routing head beside the model.
class device_head {
 public:
  /// `head` may go afterwards. Errors: capacity.
  static result<device_head> create(const routing_head& head, std::uint32_t rows_max);

  /// Enqueues the head's layers; its score goes to drawn[row].head_scores[index].
  void run(const device_wave& wave, const head_sources& from, std::uint32_t index,
           std::uint32_t rows, cudaStream_t stream) const;

  std::uint64_t bytes() const { return weights_.bytes() + workspace_.bytes(); }

 private:
  void fill_inputs(const device_wave& wave, const head_sources& from, const head_rows& rows,
                   cudaStream_t stream) const;

  struct step {
    bool is_dense = true;
    dense_call dense{};
    scale_call scale{};
  };

  std::vector<step> steps_;
  device_memory weights_, workspace_;
  std::uint32_t floats_ = 0, top_count_ = 0, window_positions_ = 1, output_at_ = 0;
  std::int32_t hidden_at_ = -1, embedding_at_ = -1, top_at_ = -1;
};

} // namespace tokenrouter::gpu
