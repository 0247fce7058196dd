#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/exec/cpu/forward.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "runtime/exec/cpu/memory.hpp"
#include "runtime/exec/cpu/thread_pool.hpp"
#include "runtime/exec/cpu/wave.hpp"
#include "runtime/exec/cpu/weights.hpp"
#include "runtime/exec/cpu/window_records.hpp"
#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/model_config.hpp"
#include "runtime/exec/sampler.hpp"
#include "runtime/exec/step.hpp"

namespace tokenrouter::cpu {

/// From the last hidden state of a row to its token, signals and head scores.
class row_results {
 public:
  /// `vocab_legal_tokens`: 1 … vocabulary. References must outlive this. Error: capacity.
  static result<row_results> create(const model_config& config, const model_weights& weights,
                                    const kernel_table& kernels, std::uint32_t threads,
                                    const kv_layout& layout, std::uint32_t vocab_legal_tokens,
                                    std::vector<std::unique_ptr<routing_head>> heads);

  /// Fills what `out` holds of the wave's ends, and writes their window_records to `pool`, whose
  /// blocks are of `layout`; every worker of the pool calls it after `pass` ran. On return all of
  /// them are done.
  void run(worker& w, const wave& tokens, const forward_pass& pass, std::byte* pool,
           const step_input& in, step_output& out);

  std::uint64_t head_bytes() const;
  /// Heads read records of earlier positions.
  bool reads_window() const { return records_.kept(); }
  std::uint32_t vocab_legal_tokens() const { return vocab_legal_tokens_; }

  using row_tap = std::function<void(std::size_t row, std::span<const float> hidden,
                                     std::span<const float> logits)>;
  /// For tests: called for each row with what its results are made of.
  void set_tap(row_tap tap) { tap_ = std::move(tap); }
  memory& activations() { return activations_; }

 private:
  struct scratch {
    sampler_scratch sampler;
    std::vector<float> signals;
    std::vector<float> top_logits;
  };

  row_results(const model_config& config, const model_weights& weights, const kernel_table& kernels,
              const kv_layout& layout);
  void normalise(worker& w, std::span<const wave_end> ends, const forward_pass& pass);
  void draw(std::size_t slot, const wave_end& end, std::uint32_t position, const step_input& in,
            step_output& out, scratch& s);
  void record(std::size_t slot, const wave_token& token, std::byte* pool, scratch& s) const;
  void score(std::size_t slot, const step_row& row, const wave_token& token, std::byte* pool,
             step_row_output& out);
  std::span<const float> hidden(std::size_t slot) const;
  std::span<const float> logits(std::size_t slot) const;

  const model_config* config_;
  const model_weights* weights_;
  const kernel_table* kernels_;
  std::size_t kind_; ///< index into the kernels' pairs
  std::uint32_t vocab_legal_tokens_ = 0;
  std::vector<std::unique_ptr<routing_head>> heads_;
  std::uint32_t top_logits_wanted_ = 0; ///< the most of any head without a window
  window_records records_;
  row_tap tap_;

  std::size_t hidden_stride_ = 0;
  std::size_t logits_stride_ = 0;
  memory activations_;
  float* hidden_ = nullptr;      ///< [rows][hidden], after the final norm
  float* operand_ = nullptr;     ///< the same as operand rows
  float* logits_ = nullptr;      ///< [rows][vocab_legal]
  float* embedding_ = nullptr;   ///< [hidden] of a proposed token
  std::vector<scratch> scratch_; ///< one for each thread
  std::vector<float> top_logits_;
  std::vector<float> window_;
};

} // namespace tokenrouter::cpu
