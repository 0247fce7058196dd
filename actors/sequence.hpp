#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/messages.hpp"
#include "runtime/exec/step.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/policy/leased_blocks.hpp"

namespace tokenrouter {

/// One request as one replica knows it: its tokens, how much of their KV is here, and what the next
/// steps must still answer. Free of CAF, clocks and I/O; owned by a scheduler_state.
///
/// Of `tokens`, the last tentative.size() are tentative, the others committed. KV is held for the
/// first `kv_tokens` of them.
struct sequence {
  request_id request;
  turn_number turn = 0; ///< newest seen
  bool has_turn = false;
  bool in_step = false;
  bool matching = false;   ///< the pool looks for its prefix in the cache
  bool fetching = false;   ///< … or a sibling's cache; ends by itself
  bool drop_match = false; ///< … for tokens of an earlier epoch: what it finds is not used
  bool recalled = false;   ///< no token here is known to be committed in the epoch of `turn`
  bool starts = false;     ///< the turn came from the request's home
  bool doomed = false;     ///< released; ends when it is not in a step or fetching
  bool finished = false;   ///< its last token was committed here
  bool judging = false;    ///< the tentative tokens are a peer's: `receive` decides on them
  bool scoring = false;    ///< the prompt's tokens are scored on the way
  bool scored = false;     ///< … and that was told
  bool remembered = false; ///< its prompt's KV is in the prefix cache
  std::uint64_t age = 0;
  std::uint64_t ready_since_us = 0;
  std::vector<token_id> tokens;
  std::vector<tentative_token> tentative;
  std::uint32_t kv_tokens = 0;
  leased_blocks blocks;                      ///< known only while this replica has the turn
  std::vector<std::uint32_t> peer_kv_tokens; ///< for each model, as last heard
  exact_float position_score; ///< of the first decision at the next position, from earlier stages
  token_mix mix;              ///< for the next proposal
  request_spec spec;
  method_state state;

  std::uint32_t answer_from = 0;                   ///< first position whose answer is wanted
  std::vector<step_row_output> answers;            ///< of positions answer_from … kv_tokens − 1
  std::vector<std::vector<token_score>> likeliest; ///< beside `answers`, if asked for
  std::vector<token_score> proposed_top;           ///< … of the proposal
  std::vector<scored_token_info> prompt_scores;    ///< of the prompt's tokens so far, if asked for
  std::vector<float> tail_entropies; ///< of the positions before kv_tokens, oldest first
  /// So many positions before kv_tokens were all answered here, by what holds their KV: heads may
  /// read them in a window.
  std::uint32_t recorded_positions = 0;

  std::uint64_t computed_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t fetched_tokens = 0; ///< of these
  std::uint64_t recomputed_tokens = 0;
  std::uint32_t kv_reached_tokens = 0; ///< the most kv_tokens ever was

  replica_id sent_to;        ///< of the handoff that gave the turn away
  turn_number sent_turn = 0; ///< 0: none
  token_mix sent_mix;        ///< that went with it

  std::uint32_t length() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t committed_tokens() const {
    return length() - static_cast<std::uint32_t>(tentative.size());
  }
  std::span<const token_id> committed() const {
    return std::span(tokens).first(committed_tokens());
  }
  std::uint32_t lacking_tokens() const { return length() - kv_tokens; }

  /// What the next steps run, up to where a step must end: those that score the prompt end before
  /// its last position, so that heads score no position but those they always do.
  std::uint32_t runnable_tokens() const {
    return scores_next() ? spec.prompt_tokens - 1 - kv_tokens : lacking_tokens();
  }

  /// The next row scores tokens of the prompt.
  bool scores_next() const { return scoring && kv_tokens + 1 < spec.prompt_tokens; }

  /// Takes a turn that was judged acceptable. Keeps the KV that still fits.
  void take(handoff&& x, std::uint32_t models, std::uint64_t now_us);

  /// Notes what a step told of the last `answered` answers beside their tokens.
  void take_scores(const step_output& out, std::uint32_t answered);

  /// Before the next step: which positions must be answered, and from where KV must be run again
  /// for that: all whose signals or windows the role wants and that are not known any more.
  void prepare(const role_needs& needs);

  /// KV of `count` positions was computed or taken from the cache.
  void advance(std::uint32_t count, bool from_cache);

  /// All KV here is gone, or its last positions no longer hold.
  void cut_kv(std::uint32_t kv_tokens_left);

  /// Takes back the tentative tokens from number `first` on. Returns how many.
  std::uint32_t drop_tentative(std::size_t first);

  /// How many of the `count` positions after kv_tokens are to be answered.
  std::uint32_t answered_in(std::uint32_t count) const;

  /// step_row::window_start_position of a row that runs the `count` positions after kv_tokens: the
  /// first one recorded, but none before that of the first output token, so that a window does not
  /// depend on what else of the prompt was answered.
  std::uint32_t window_start(std::uint32_t count) const;

 private:
  /// First position to answer, so that all from `from` on are known; `known` before kv_tokens are.
  std::uint32_t first_unknown(std::uint32_t from, std::uint32_t known) const;
  /// recorded_positions after the `count` positions after kv_tokens were run.
  std::uint32_t recorded_after(std::uint32_t count) const;
  std::uint32_t first_window_position() const;
};

} // namespace tokenrouter
