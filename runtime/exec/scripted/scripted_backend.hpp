#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/exec/kv_region.hpp"

namespace tokenrouter {

/// Values are drawn uniformly from [low, high].
struct value_range {
  float low = 0;
  float high = 0;
};

struct scripted_options {
  std::uint64_t seed = 0;       ///< of the simulated world
  std::uint64_t weights_id = 0; ///< two backends with the same seed and id are the same model
  std::uint32_t vocab_tokens = 1024;
  std::uint32_t context_tokens_max = 2048;
  token_id eos_token = 0;
  double eos_odds = 0.02; ///< that the next token is eos_token, in [0, 1]
  value_range entropy_nats{0.0f, 3.0f};
  value_range head_scores{0.0f, 1.0f};
  std::uint32_t heads = 0; ///< at most limits::heads_max
  std::uint32_t head_window_positions = 1;
  std::uint32_t kv_blocks_max = 0; ///< allocate_kv refuses more; 0 = no bound
  std::uint32_t step_base_us = 0;  ///< step_us = base + rows · row + new tokens · token
  std::uint32_t step_row_us = 0;
  std::uint32_t step_token_us = 0;
  bool reachable_kv = false; ///< siblings of this process may read its KV themselves
};

/// A model without weights for simulation. What it says at a position is a pure hash of (seed,
/// weights_id, every token up to there), and at temperature > 0 of the sampling seed, stream and
/// position as well, and of every logit bias of the request; so rows, blocks, chunks or seeds that
/// are mixed up change the answer.
///
/// Its KV of a position is the hash of all tokens before it and of those with it. A step walks the
/// whole table of a row and checks that these hashes form one chain from position 0: blocks of
/// another sequence, in another order, or never written are a failed check, not a wrong answer.
/// So is a head's window over a position that was not answered; a window that is cut short changes
/// the score.
class scripted_backend final : public backend {
 public:
  explicit scripted_backend(const scripted_options& options);

  const model_facts& facts() const override { return facts_; }
  result<void> allocate_kv(std::uint32_t blocks) override;
  void step(const step_input& in, step_output& out) override;
  void copy_blocks(std::span<const block_copy> copies) override;
  void export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) override;
  void import_blocks(std::span<const block_id> blocks, std::span<const std::byte> bytes) override;
  std::vector<std::byte> kv_address() const override { return kv_address_; }
  result<std::unique_ptr<kv_source>> reach_kv(std::span<const std::byte> address) override;

  /// Token positions computed by all steps so far: what a prefix cache or a parked KV saves.
  std::uint64_t computed_tokens() const { return computed_tokens_; }
  std::uint64_t steps() const { return steps_; }

 private:
  struct slot {
    std::uint64_t before = 0; ///< hash of the tokens before this position
    std::uint64_t after = 0;  ///< … and of this one too; 0 = never written
    bool answered = false;    ///< when it was written
  };

  kv_region region() const;
  std::span<slot> block_slots(block_id block);
  std::span<const slot> block_slots(block_id block) const;
  void run_row(const step_input& in, const step_row& row, step_row_output& last, step_output& out);
  std::uint32_t check_window(const step_input& in, const step_row& row, std::uint32_t position);
  void check_rows(const step_input& in);

  scripted_options options_;
  model_facts facts_;
  /// [blocks][limits::block_tokens]; siblings may read it
  std::shared_ptr<std::vector<slot>> slots_ = std::make_shared<std::vector<slot>>();
  std::vector<std::byte> kv_address_;
  bool allocated_ = false;
  std::uint64_t computed_tokens_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<std::uint64_t> block_uses_; ///< scratch of one step
};

/// A peer's distribution for the next token, as in step_row; weight 0: none.
struct scripted_mix {
  float weight = 0;
  std::span<const float> distribution;
};

/// What such a model says after `tokens` (not empty), without any KV: the expected answer.
step_row_output scripted_answer(const scripted_options& options, std::span<const token_id> tokens,
                                signal_set signals = 0, const sampling_params& sampling = {},
                                std::uint32_t sample_stream = 0, const scripted_mix& mixed = {});

/// Its step_row_output::scored_logprob of `scored` after `tokens`.
float scripted_logprob(const scripted_options& options, std::span<const token_id> tokens,
                       token_id scored);

/// Its signal::distribution after `tokens`: [vocab_tokens] numbers that stand for one, not
/// normalised.
std::vector<float> scripted_distribution(const scripted_options& options,
                                         std::span<const token_id> tokens);

} // namespace tokenrouter
