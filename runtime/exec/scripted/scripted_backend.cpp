#include "runtime/exec/scripted/scripted_backend.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/exec/likelihood.hpp"

namespace tokenrouter {

namespace {

using limits::block_tokens;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t root_hash(const scripted_options& options) {
  return mix(mix(options.seed) ^ options.weights_id);
}

/// Never 0, which marks a slot that was not written.
std::uint64_t extend_hash(std::uint64_t prefix, token_id token) {
  return mix(prefix ^ mix(static_cast<std::uint32_t>(token))) | 1u;
}

/// Independent uniform numbers in [0, 1) drawn from one prefix hash.
enum class draw : std::uint64_t {
  eos = 1,
  token,
  logprob,
  entropy,
  top,
  aleatoric,
  epistemic,
  head,
  likelihood
};

double uniform(std::uint64_t prefix, draw what, std::uint64_t index = 0) {
  const std::uint64_t bits = mix(prefix ^ mix(static_cast<std::uint64_t>(what) + (index << 8)));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

float in_range(value_range range, double u) {
  return static_cast<float>(double{range.low} + u * (double{range.high} - double{range.low}));
}

step_row_output answer(const scripted_options& options, std::uint64_t prefix, signal_set signals,
                       const sampling_params& sampling, std::uint32_t stream,
                       std::uint32_t position, std::uint32_t window_lacks = 0) {
  step_row_output out;
  std::uint64_t choice = prefix;
  if (sampling.temperature > 0)
    choice ^= mix(
        static_cast<std::uint64_t>(uniform_draw(sampling.seed, stream, position) * 16777216.0f));
  for (const auto& x : sampling.biases)
    choice = mix(choice ^ mix(static_cast<std::uint32_t>(x.token)) ^
                 std::bit_cast<std::uint32_t>(x.bias));
  if (uniform(choice, draw::eos) < options.eos_odds || options.vocab_tokens == 1) {
    out.token = options.eos_token;
  } else {
    const auto others = static_cast<double>(options.vocab_tokens - 1);
    out.token = static_cast<token_id>(uniform(choice, draw::token) * others);
    out.token += out.token >= options.eos_token;
  }
  out.logprob = -static_cast<float>(uniform(choice, draw::logprob));
  if (has(signals, signal::entropy)) {
    out.entropy_nats = in_range(options.entropy_nats, uniform(prefix, draw::entropy));
    out.entropy_normalised =
        out.entropy_nats / std::log(static_cast<float>(std::max(2u, options.vocab_tokens)));
  }
  if (has(signals, signal::top_entropy))
    out.entropy_top20_nats = in_range({0.0f, std::log(20.0f)}, uniform(prefix, draw::top));
  if (has(signals, signal::evidence)) {
    out.aleatoric = in_range({0.0f, std::log(10.0f)}, uniform(prefix, draw::aleatoric));
    out.epistemic = in_range({0.0f, 1.0f}, uniform(prefix, draw::epistemic));
  }
  if (has(signals, signal::heads))
    for (std::uint32_t i = 0; i < options.heads; ++i)
      out.head_scores[i] =
          in_range(options.head_scores, uniform(prefix + window_lacks, draw::head, i));
  return out;
}

/// Entry i of the toy distribution after `prefix`; only its bits matter.
float likelihood(std::uint64_t prefix, std::uint32_t i) {
  return static_cast<float>(uniform(prefix, draw::likelihood, i));
}

void append_distribution(const scripted_options& options, std::uint64_t prefix,
                         std::vector<float>& out) {
  for (std::uint32_t i = 0; i < options.vocab_tokens; ++i)
    out.push_back(likelihood(prefix, i));
}

float toy_logprob(std::uint64_t prefix, token_id token) {
  return -static_cast<float>(uniform(extend_hash(prefix, token), draw::logprob));
}

/// Tokens 0, 1, … as the likeliest; their figures and the scored token's follow from the prefix.
void tell_likelihoods(std::uint64_t prefix, token_id scored, std::uint32_t count,
                      step_row_output& out, std::vector<token_likelihood>& likeliest) {
  if (scored >= 0)
    out.scored_logprob = toy_logprob(prefix, scored);
  out.likeliest_offset = static_cast<std::uint32_t>(likeliest.size());
  for (std::uint32_t i = 0; i < count; ++i)
    likeliest.push_back({static_cast<token_id>(i), toy_logprob(prefix, static_cast<token_id>(i))});
}

std::uint64_t hash_of(std::span<const float> distribution, float weight) {
  std::uint64_t h = std::bit_cast<std::uint32_t>(weight);
  for (const float x : distribution)
    h = mix(h ^ std::bit_cast<std::uint32_t>(x));
  return h;
}

/// What a peer's distribution does to an answer: changes it, by every bit of it.
std::uint64_t mix_hash(const step_input& in, const step_row& row, const scripted_options& options) {
  check(std::size_t{row.mix_offset} + options.vocab_tokens <= in.mixes.size(),
        "a row's mix is in the step's");
  return hash_of(std::span(in.mixes).subspan(row.mix_offset, options.vocab_tokens), row.mix_weight);
}

} // namespace

scripted_backend::scripted_backend(const scripted_options& options) : options_(options) {
  check(options.vocab_tokens > 0 && options.eos_token >= 0 &&
            static_cast<std::uint32_t>(options.eos_token) < options.vocab_tokens,
        "the scripted vocabulary holds its end token");
  check(options.heads <= limits::heads_max, "scripted heads fit a row's output");
  check(options.context_tokens_max <= limits::context_tokens_max, "the scripted context fits");
  facts_.architecture = "Scripted";
  facts_.vocab_tokens = options.vocab_tokens;
  facts_.context_tokens_max = options.context_tokens_max;
  facts_.eos_tokens = {options.eos_token};
  facts_.kv_bytes_per_block = block_tokens * sizeof(slot);
  facts_.kernels = facts_.kv_layout = "scripted";
}

result<void> scripted_backend::allocate_kv(std::uint32_t blocks) {
  check(!allocated_, "the KV pool is allocated once");
  if (options_.kv_blocks_max != 0 && blocks > options_.kv_blocks_max)
    return fail(errc::capacity, "a KV pool of " + std::to_string(blocks) +
                                    " blocks was asked of a scripted model that has room for " +
                                    std::to_string(options_.kv_blocks_max));
  allocated_ = true;
  slots_->assign(std::size_t{blocks} * block_tokens, slot{});
  block_uses_.assign(blocks, 0);
  if (options_.reachable_kv)
    kv_address_ = publish_kv(region());
  return {};
}

kv_region scripted_backend::region() const {
  return {slots_, reinterpret_cast<std::byte*>(slots_->data()), facts_.kv_bytes_per_block,
          static_cast<std::uint32_t>(slots_->size() / block_tokens)};
}

result<std::unique_ptr<kv_source>> scripted_backend::reach_kv(std::span<const std::byte> address) {
  return reach_region(address, region());
}

std::span<scripted_backend::slot> scripted_backend::block_slots(block_id block) {
  check((std::size_t{block} + 1) * block_tokens <= slots_->size(), "a block id is in the KV pool");
  return std::span(*slots_).subspan(std::size_t{block} * block_tokens, block_tokens);
}

std::span<const scripted_backend::slot> scripted_backend::block_slots(block_id block) const {
  check((std::size_t{block} + 1) * block_tokens <= slots_->size(), "a block id is in the KV pool");
  return std::span<const slot>(*slots_).subspan(std::size_t{block} * block_tokens, block_tokens);
}

/// Checks the window of heads that score `position`. Returns how many positions it is short of.
std::uint32_t scripted_backend::check_window(const step_input& in, const step_row& row,
                                             std::uint32_t position) {
  const std::uint32_t wanted = options_.head_window_positions;
  if (wanted <= 1 || !has(row.signals, signal::heads))
    return 0;
  check(row.window_start_position <= position, "a window holds the position that is scored");
  const std::uint32_t seen = std::min(wanted, position - row.window_start_position + 1);
  for (std::uint32_t at = position + 1 - seen; at <= position; ++at) {
    const block_id block = in.block_tables[row.block_offset + at / block_tokens];
    check(block_slots(block)[at % block_tokens].answered, "a window holds answered positions");
  }
  return wanted - seen;
}

/// Reads the row's KV, writes that of its new tokens, answers the positions that ask for it.
void scripted_backend::run_row(const step_input& in, const step_row& row, step_row_output& last,
                               step_output& out) {
  const auto at = [&](std::uint32_t position) -> slot& {
    const block_id block = in.block_tables[row.block_offset + position / block_tokens];
    return block_slots(block)[position % block_tokens];
  };
  std::uint64_t prefix = root_hash(options_);
  for (std::uint32_t position = 0; position < row.start_position; ++position) {
    const slot& cached = at(position);
    check(cached.after != 0, "a step reads only KV that was written");
    check(cached.before == prefix, "the blocks of a row hold one sequence, in its order");
    prefix = cached.after;
  }
  for (std::uint32_t i = 0; i < row.token_count; ++i) {
    const token_id token = in.tokens[row.token_offset + i];
    check(token >= 0 && static_cast<std::uint32_t>(token) < options_.vocab_tokens,
          "a step's tokens are in the vocabulary");
    slot& written = at(row.start_position + i);
    written.before = prefix;
    prefix = written.after = extend_hash(prefix, token);
    const std::uint32_t after = row.token_count - i;
    written.answered = after <= row.answered_positions;
    if (after > row.answered_positions)
      continue;
    const std::uint32_t position = row.start_position + i + 1;
    const std::uint32_t window_lacks = check_window(in, row, position - 1);
    const token_id scored = scored_token(in, row, row.answered_positions - after);
    if (after > 1) {
      out.earlier.push_back(answer(options_, prefix, row.signals, row.sampling, row.sample_stream,
                                   position, window_lacks));
      tell_likelihoods(prefix, scored, row.likeliest_count, out.earlier.back(), out.likeliest);
      continue;
    }
    const std::uint64_t mixed = row.mix_weight > 0 ? mix_hash(in, row, options_) : 0;
    last = answer(options_, prefix ^ mixed, row.signals, row.sampling, row.sample_stream, position,
                  window_lacks);
    tell_likelihoods(prefix, scored, row.likeliest_count, last, out.likeliest);
    if (has(row.signals, signal::distribution)) {
      last.distribution_offset = static_cast<std::uint32_t>(out.distributions.size());
      append_distribution(options_, prefix, out.distributions);
    }
  }
}

void scripted_backend::check_rows(const step_input& in) {
  check(!in.rows.empty() && in.rows.size() <= limits::batch_rows_max, "a step has 1 to max rows");
  // Who uses each block in this step: 0 nobody, 1 readers, otherwise 2 + the one writing row.
  std::ranges::fill(block_uses_, 0);
  for (std::size_t r = 0; r < in.rows.size(); ++r) {
    const step_row& row = in.rows[r];
    const std::uint64_t end = std::uint64_t{row.start_position} + row.token_count;
    check(row.token_count > 0, "a row has at least one token");
    check(std::size_t{row.token_offset} + row.token_count <= in.tokens.size(),
          "a row's tokens are in the step's");
    check(std::size_t{row.block_offset} + row.block_count <= in.block_tables.size(),
          "a row's table is in the step's");
    check(end <= std::uint64_t{row.block_count} * block_tokens, "a row's blocks cover its tokens");
    check(end <= options_.context_tokens_max, "a row fits the context");
    check(row.answered_positions <= row.token_count, "a row answers positions that it runs");
    check(row.answered_positions > 0 || row.signals == 0, "signals come with a token");
    for (std::uint32_t b = 0; b * block_tokens < end; ++b) {
      const block_id block = in.block_tables[row.block_offset + b];
      check(block < block_uses_.size(), "a block id is in the KV pool");
      const bool writes = (b + 1) * block_tokens > row.start_position;
      check(block_uses_[block] == 0 || (block_uses_[block] == 1 && !writes),
            "no two rows share a block that either writes");
      block_uses_[block] = writes ? 2 + r : 1;
    }
  }
}

void scripted_backend::step(const step_input& in, step_output& out) {
  check_rows(in);
  copy_blocks(in.copies);
  out.rows.assign(in.rows.size(), step_row_output{});
  out.earlier.clear();
  out.likeliest.clear();
  out.distributions.clear();
  out.distribution_tokens = options_.vocab_tokens;
  std::uint64_t new_tokens = 0;
  for (std::size_t r = 0; r < in.rows.size(); ++r) {
    run_row(in, in.rows[r], out.rows[r], out);
    new_tokens += in.rows[r].token_count;
  }
  computed_tokens_ += new_tokens;
  ++steps_;
  out.step_us = options_.step_base_us +
                static_cast<std::uint32_t>(in.rows.size()) * options_.step_row_us +
                static_cast<std::uint32_t>(new_tokens) * options_.step_token_us;
}

void scripted_backend::copy_blocks(std::span<const block_copy> copies) {
  for (const block_copy& copy : copies)
    std::ranges::copy(block_slots(copy.from), block_slots(copy.to).begin());
}

void scripted_backend::export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) {
  const std::size_t each = facts_.kv_bytes_per_block;
  check(bytes.size() == blocks.size() * each, "export_blocks: as many bytes as the blocks have");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::memcpy(bytes.data() + i * each, block_slots(blocks[i]).data(), each);
}

void scripted_backend::import_blocks(std::span<const block_id> blocks,
                                     std::span<const std::byte> bytes) {
  const std::size_t each = facts_.kv_bytes_per_block;
  check(bytes.size() == blocks.size() * each, "import_blocks: as many bytes as the blocks have");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::memcpy(block_slots(blocks[i]).data(), bytes.data() + i * each, each);
}

step_row_output scripted_answer(const scripted_options& options, std::span<const token_id> tokens,
                                signal_set signals, const sampling_params& sampling,
                                std::uint32_t sample_stream, const scripted_mix& mixed) {
  check(!tokens.empty(), "a model answers at least one token");
  std::uint64_t prefix = root_hash(options);
  for (const token_id token : tokens)
    prefix = extend_hash(prefix, token);
  if (mixed.weight > 0)
    prefix ^= hash_of(mixed.distribution, mixed.weight);
  return answer(options, prefix, signals, sampling, sample_stream,
                static_cast<std::uint32_t>(tokens.size()));
}

float scripted_logprob(const scripted_options& options, std::span<const token_id> tokens,
                       token_id scored) {
  std::uint64_t prefix = root_hash(options);
  for (const token_id token : tokens)
    prefix = extend_hash(prefix, token);
  return toy_logprob(prefix, scored);
}

std::vector<float> scripted_distribution(const scripted_options& options,
                                         std::span<const token_id> tokens) {
  std::uint64_t prefix = root_hash(options);
  for (const token_id token : tokens)
    prefix = extend_hash(prefix, token);
  std::vector<float> out;
  append_distribution(options, prefix, out);
  return out;
}

} // namespace tokenrouter
