#pragma once

#include <cstdint>
#include <vector>

#include "runtime/exec/heads/head_file.hpp"

namespace tokenrouter {

/// One layer of a head over vectors in a workspace of floats.
struct head_step {
  enum class kind : std::uint8_t { dense, layer_norm, batch_norm };
  enum class activation : std::uint8_t { none, relu, gelu };

  kind what = kind::dense;
  activation after = activation::none;       ///< batch_norm: none or relu; layer_norm: none
  bool accumulate = false;                   ///< dense: added to what stands at `to`
  std::uint32_t from = 0;                    ///< offset of the input
  std::uint32_t to = 0;                      ///< offset of the output
  const dense_layer* dense = nullptr;        ///< of the head, which must outlive this
  std::vector<float> scale = {}, shift = {}; ///< norms
  std::vector<float> mean = {};              ///< batch_norm
  float eps = 0;                             ///< layer_norm
};

/// A head as a list of layers, for a device that runs heads beside the model: inputs are written at
/// their offsets, steps run in order, the score is the sigmoid of the float at `output_at`.
struct head_program {
  static constexpr std::int32_t unused = -1;

  std::uint32_t floats = 0;            ///< of the workspace of one row
  std::int32_t hidden_at = unused;     ///< [window_positions][hidden], oldest first
  std::int32_t embedding_at = unused;  ///< [hidden]
  std::int32_t top_logits_at = unused; ///< [window_positions][top_logits_wanted], likewise
  std::vector<head_step> steps = {};
  std::uint32_t output_at = 0;
};

} // namespace tokenrouter
