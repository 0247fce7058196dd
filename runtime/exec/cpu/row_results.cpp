#include "runtime/exec/cpu/row_results.hpp"

#include <algorithm>

#include "runtime/exec/likelihood.hpp"
#include "runtime/exec/mixture.hpp"
#include "runtime/exec/signals.hpp"

namespace tokenrouter::cpu {
namespace {

/// Rows whose logits are held at once.
constexpr std::size_t slots = 64;

step_row_output& output_of(step_output& out, const wave_end& end) {
  return end.earlier == wave_end::last ? out.rows[end.row] : out.earlier[end.earlier];
}

} // namespace

row_results::row_results(const model_config& config, const model_weights& weights,
                         const kernel_table& kernels, const kv_layout& layout)
    : config_(&config), weights_(&weights), kernels_(&kernels),
      kind_(static_cast<std::size_t>(weights.kind)), records_(layout, config.hidden_size),
      hidden_stride_(padded(config.hidden_size)) {}

result<row_results> row_results::create(const model_config& config, const model_weights& weights,
                                        const kernel_table& kernels, std::uint32_t threads,
                                        const kv_layout& layout, std::uint32_t vocab_legal_tokens,
                                        std::vector<std::unique_ptr<routing_head>> heads) {
  row_results results(config, weights, kernels, layout);
  results.vocab_legal_tokens_ = vocab_legal_tokens;
  results.logits_stride_ = padded(vocab_legal_tokens);
  results.heads_ = std::move(heads);
  for (const auto& head : results.heads_)
    if (head->window_positions() == 1)
      results.top_logits_wanted_ = std::max(results.top_logits_wanted_, head->top_logits_wanted());
  results.scratch_.resize(threads);
  const std::size_t hidden = results.hidden_stride_;
  auto bytes =
      memory::allocate((slots * (2 * hidden + results.logits_stride_) + hidden) * sizeof(float));
  if (!bytes)
    return tl::unexpected(bytes.error());
  results.activations_ = std::move(*bytes);
  results.hidden_ = results.activations_.floats();
  results.operand_ = results.hidden_ + slots * hidden;
  results.logits_ = results.operand_ + slots * hidden;
  results.embedding_ = results.logits_ + slots * results.logits_stride_;
  return results;
}

std::span<const float> row_results::hidden(std::size_t slot) const {
  return {hidden_ + slot * hidden_stride_, config_->hidden_size};
}

std::span<const float> row_results::logits(std::size_t slot) const {
  return {logits_ + slot * logits_stride_, vocab_legal_tokens_};
}

std::uint64_t row_results::head_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& head : heads_)
    bytes += head->weight_bytes();
  return bytes;
}

void row_results::run(worker& w, const wave& tokens, const forward_pass& pass, std::byte* pool,
                      const step_input& in, step_output& out) {
  for (std::size_t begin = 0; begin < tokens.ends.size(); begin += slots) {
    const std::span ends(tokens.ends.data() + begin, std::min(slots, tokens.ends.size() - begin));
    normalise(w, ends, pass);
    w.sync();
    const auto panels = w.share(padded(vocab_legal_tokens_) / lanes);
    kernels_->gemm[kind_]({.panels = weights_->lm_head.panels,
                           .panel_begin = panels.begin,
                           .panel_end = panels.end,
                           .k = weights_->lm_head.k,
                           .operand = operand_,
                           .operand_stride = hidden_stride_,
                           .rows = static_cast<std::uint32_t>(ends.size()),
                           .out = logits_,
                           .out_stride = logits_stride_});
    w.sync();
    const auto share = w.share(static_cast<std::uint32_t>(ends.size()));
    for (std::uint32_t slot = share.begin; slot < share.end; ++slot) {
      const wave_token& token = tokens.tokens[ends[slot].token];
      draw(slot, ends[slot], token.position + 1, in, out, scratch_[w.index()]);
      record(slot, token, pool, scratch_[w.index()]);
    }
    w.sync();
    // Heads keep memory of their own, so one thread runs them.
    if (w.index() == 0)
      for (std::size_t slot = 0; slot < ends.size(); ++slot) {
        score(slot, in.rows[ends[slot].row], tokens.tokens[ends[slot].token], pool,
              output_of(out, ends[slot]));
        if (tap_)
          tap_(ends[slot].row, hidden(slot), logits(slot));
      }
    w.sync();
  }
}

void row_results::normalise(worker& w, std::span<const wave_end> ends, const forward_pass& pass) {
  const auto share = w.share(static_cast<std::uint32_t>(ends.size()));
  for (std::uint32_t slot = share.begin; slot < share.end; ++slot) {
    float* row = hidden_ + slot * hidden_stride_;
    kernels_->norm({.x = pass.residual(ends[slot].token),
                    .weight = weights_->final_norm,
                    .columns = config_->hidden_size,
                    .eps = config_->rms_norm_eps,
                    .out = row});
    kernels_->to_operand[kind_](row, operand_ + slot * hidden_stride_, config_->hidden_size);
  }
}

void row_results::draw(std::size_t slot, const wave_end& end, std::uint32_t position,
                       const step_input& in, step_output& out, scratch& s) {
  const step_row& row = in.rows[end.row];
  step_row_output& result = output_of(out, end);
  const bool last = end.earlier == wave_end::last;
  const auto drawn =
      last && row.mix_weight > 0
          ? most_likely_of_mixture(logits(slot),
                                   std::span(in.mixes).subspan(row.mix_offset, vocab_legal_tokens_),
                                   row.mix_weight, row.sampling.biases)
          : sample_token(logits(slot), row.sampling, row.sample_stream, position, s.sampler);
  result.token = drawn.token;
  result.logprob = drawn.logprob;
  fill_signals(logits(slot), row.signals, s.signals, result);
  const std::uint32_t first = row.start_position + row.token_count - row.answered_positions;
  const token_id scored = scored_token(in, row, position - 1 - first);
  if (scored >= 0 || row.likeliest_count > 0)
    fill_likelihoods(
        logits(slot), scored, result,
        std::span(out.likeliest).subspan(result.likeliest_offset, row.likeliest_count));
  if (last && has(row.signals, signal::distribution))
    probabilities(
        logits(slot),
        std::span(out.distributions).subspan(result.distribution_offset, vocab_legal_tokens_));
}

void row_results::record(std::size_t slot, const wave_token& token, std::byte* pool,
                         scratch& s) const {
  if (!records_.kept())
    return;
  const auto to = records_.at(pool, token.blocks, token.position);
  top_logits(logits(slot), records_.top_logits(), s.top_logits);
  // A vocabulary may have fewer: zeros then.
  s.top_logits.resize(records_.top_logits());
  std::ranges::copy(hidden(slot), to.begin());
  std::ranges::copy(s.top_logits, to.begin() + config_->hidden_size);
}

void row_results::score(std::size_t slot, const step_row& row, const wave_token& token,
                        std::byte* pool, step_row_output& out) {
  if (!has(row.signals, signal::heads) || heads_.empty())
    return;
  top_logits_.clear();
  if (top_logits_wanted_ > 0)
    top_logits(logits(slot), top_logits_wanted_, top_logits_);
  const bool embedding = std::any_of(heads_.begin(), heads_.end(), [](const auto& head) {
    return head->wants_proposed_embedding();
  });
  if (embedding)
    read_embedding(*weights_, out.token, embedding_);
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const head_window window{heads_[i]->window_positions(), heads_[i]->top_logits_wanted()};
    window_.clear();
    if (window.positions > 1)
      records_.gather(pool, token.blocks, row.window_start_position, token.position, window,
                      window_);
    const std::size_t wanted = std::min<std::size_t>(window.top_logits, top_logits_.size());
    out.head_scores[i] = heads_[i]->score({.hidden = hidden(slot),
                                           .proposed_embedding = {embedding_, config_->hidden_size},
                                           .top_logits = std::span(top_logits_).first(wanted),
                                           .window = window_});
  }
}

} // namespace tokenrouter::cpu
