#include <utility>

#include "actors/scheduler_state.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/policy/prefix_offers.hpp"

/// KV that is not computed here: what the own cache or a sibling's has of a request's start.
namespace tokenrouter {

void scheduler_state::query_prefix(sequence& s, scheduler_effects& fx) const {
  if (!config_.keep_prefixes || s.matching || s.kv_tokens > 0 ||
      s.answer_from < limits::block_tokens)
    return;
  s.matching = true;
  fx.queries.push_back({s.request, s.age, s.tokens, s.answer_from});
}

void scheduler_state::on_prefix(const prefix_hit& x, scheduler_effects& fx) {
  const auto found = sequences_.find(x.request);
  if (found == sequences_.end())
    return;
  auto& s = found->second;
  s.matching = false;
  if (std::exchange(s.drop_match, false))
    return;
  check(s.kv_tokens == 0 && x.tokens <= s.answer_from, "cached KV ends before what is answered");
  s.advance(x.tokens, true);
  const std::uint32_t usable = s.answer_from - s.answer_from % limits::block_tokens;
  if (!worth_asking({s.kv_tokens, usable, config_.fetch_min_tokens}))
    return;
  s.matching = s.fetching = true;
  ++fetches_;
  fx.fetches.push_back({s.request,
                        s.age,
                        {s.tokens.begin(), s.tokens.begin() + usable},
                        s.kv_tokens,
                        prefill_cost_.us_per_token()});
}

/// Comes once for each fetch; until then the sequence stays, even if its request is over. What was
/// fetched for a void turn stays in the cache, but its tokens may not be those of the next turn.
void scheduler_state::on_fetched(const prefix_fetched& x, scheduler_effects& fx) {
  --fetches_;
  if (retired_) { // it was forgotten meanwhile
    fx.give_back.push_back(x.request);
    return;
  }
  auto& s = sequences_.at(x.request);
  s.matching = s.fetching = false;
  const bool dropped = std::exchange(s.drop_match, false);
  if (!dropped && x.tokens > 0) {
    check(s.kv_tokens + x.tokens <= s.answer_from, "fetched KV ends before what is answered");
    s.advance(x.tokens, true);
    s.fetched_tokens += x.tokens;
  }
  if (s.doomed)
    end_doomed(s, fx);
  else if (dropped)
    fx.park.push_back({s.request, s.kv_tokens});
}

} // namespace tokenrouter
