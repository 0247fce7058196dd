#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/device_head.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/forward.hpp"
#include "gpu/kernels/shard_columns.hpp"
#include "gpu/wave_buffers.hpp"
#include "runtime/exec/backend.hpp"

namespace tokenrouter::gpu {

/// What follows the layers: final norm, logits, draws, signals and heads of a wave's ends. Only
/// `drawn_row`s come back to the host, and distributions where asked for.
class wave_results {
 public:
  /// References must outlive this; `group` is null for a model that is not split. Errors:
  /// capacity, those of load_head.
  static result<wave_results> create(const load_options& options, const model_config& config,
                                     const model_weights& weights, const kv_shape& kv,
                                     std::uint32_t ends_max, communicator* group);

  std::uint32_t vocab_legal_tokens() const { return vocab_legal_tokens_; }
  /// Heads read records of earlier positions.
  bool reads_window() const { return kv_.record_floats > 0; }
  std::uint64_t bytes() const;

  /// Measures how to run the LM head for so many rows.
  void tune(forward_pass& pass, std::uint32_t rows, cudaStream_t stream);

  /// Makes room for the mixes and distributions of a step and copies the mixes. Errors: capacity.
  result<void> prepare(const step_input& in, std::size_t distributions, cudaStream_t stream);

  /// Enqueues everything, and the copy of the results to `drawn()`. `pool`: where records of
  /// positions are kept.
  void run(const device_wave& wave, const wave_bucket& bucket, forward_pass& pass, std::byte* pool,
           cudaStream_t stream);

  /// Of the last run, once the stream has passed it.
  std::span<const drawn_row> drawn() const;

  /// Of the last run: [ends][likeliest_max]; waits for the stream.
  std::span<const likely_token> read_likeliest(std::uint32_t ends, cudaStream_t stream);

  /// Copies the step's distributions to the host; waits for the stream.
  void read_distributions(std::span<float> out, cudaStream_t stream) const;

  /// For tests: hidden states and logits of an end of the last run.
  std::vector<float> hidden_of(std::uint32_t end) const;
  std::vector<float> logits_of(std::uint32_t end) const;

 private:
  explicit wave_results(const kv_shape& kv) : kv_(kv) {}
  void compute_logits(std::uint32_t ends, forward_pass& pass, cudaStream_t stream);
  void run_heads(const device_wave& wave, std::uint32_t ends, std::byte* pool, cudaStream_t stream);

  kv_shape kv_;
  const model_config* config_ = nullptr;
  const model_weights* weights_ = nullptr;
  communicator* group_ = nullptr;
  matrix lm_head_;        ///< the rows that are legal; of a shard, its part of them
  column_shares columns_; ///< of the logits
  std::uint32_t vocab_legal_tokens_ = 0, ends_max_ = 0, top_wanted_ = 0;
  std::vector<device_head> heads_;
  device_memory hidden_, operands_, logits_, gathered_, top_, drawn_, drawn_host_, mixes_,
      distributions_, likeliest_, likeliest_host_;
};

} // namespace tokenrouter::gpu
