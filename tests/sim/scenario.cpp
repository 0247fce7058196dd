#include "tests/sim/scenario.hpp"

#include <algorithm>
#include <random>

#include "runtime/core/philox.hpp"
#include "runtime/policy/block_ledger.hpp"
#include "runtime/policy/finish.hpp"

namespace tokenrouter::sim {

namespace {

class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(engine_() % (high - low + 1));
  }
  bool one_in(std::uint32_t n) { return engine_() % n == 0; }
  float share() { return static_cast<float>(engine_() % 1000) / 1000.0f; }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

/// Lists that break the progress rule as often as not: the runtime must tame them.
void draw_batching(dice& d, scenario& s) {
  const bool delayed = d.one_in(2);
  for (std::size_t i = 0; i < s.topology.roles.size(); ++i) {
    s.thresholds.emplace_back();
    for (std::uint32_t n = d.between(0, 12); delayed && n > 0; --n)
      s.thresholds.back().push_back(d.between(1, 12));
  }
}

/// A prompt of its own, the start of an earlier one with another end, or an earlier dialogue with a
/// further turn: what a prefix cache sees.
std::vector<token_id> draw_prompt(dice& d, const scenario& s, std::uint64_t& after_us) {
  std::vector<token_id> prompt;
  std::uint32_t fresh = d.between(1, 60);
  if (!s.requests.empty() && d.one_in(2)) {
    const std::size_t i = d.between(0, static_cast<std::uint32_t>(s.requests.size()) - 1);
    const auto& earlier = s.requests[i];
    prompt = earlier.prompt;
    if (d.one_in(2)) {
      for (const auto& x : expected_output(s, earlier))
        prompt.push_back(x.token);
      after_us = s.submit_us[i] + d.between(0, 20000);
    }
    prompt.resize(std::min<std::size_t>(prompt.size(), d.between(1, 59)));
    fresh = d.between(1, 60 - static_cast<std::uint32_t>(prompt.size()));
  }
  for (; fresh > 0; --fresh)
    prompt.push_back(static_cast<token_id>(d.between(0, vocab_tokens - 1)));
  return prompt;
}

void draw_requests(dice& d, scenario& s) {
  const bool sampled = d.one_in(2);
  const std::uint32_t count = d.between(1, 24);
  const bool cancels = d.one_in(2);
  for (std::uint32_t i = 0; i < count; ++i) {
    submit order;
    order.client_tag = i;
    std::uint64_t after_us = d.between(0, 3000);
    order.prompt = draw_prompt(d, s, after_us);
    order.spec.prompt_tokens = static_cast<std::uint32_t>(order.prompt.size());
    order.spec.max_new_tokens = d.between(1, 40);
    order.spec.ignore_eos = d.one_in(4);
    order.spec.sampling.temperature = sampled ? 1.0f : 0.0f;
    order.spec.sampling.seed = d.between(0, 1000000);
    if (!d.one_in(4))
      order.spec.request_score.value = d.share();
    s.requests.push_back(std::move(order));
    s.submit_us.push_back(after_us);
    s.cancel_us.push_back(cancels && d.one_in(3) ? std::optional<std::uint64_t>(d.between(0, 9000))
                                                 : std::nullopt);
  }
}

bool takes_threshold(const scenario& s) {
  for (std::uint16_t i = 0; i < s.topology.roles.size(); ++i)
    if (make_role({i}, s.topology, s.parameters).value()->needs().request_threshold_max > 0)
      return true;
  return false;
}

/// What some clients wish beside tokens. Draws from a stream of its own, as draw_network.
void draw_wishes(scenario& s) {
  dice d(s.seed ^ 0x7769736865730000);
  if (!d.one_in(3))
    return;
  const float threshold_max = takes_threshold(s) ? 1.0f : 0.0f;
  for (auto& order : s.requests) {
    order.spec.prompt_logprobs = d.one_in(3);
    order.spec.top_logprobs = d.one_in(3) ? d.between(1, 3) : 0;
    if (d.one_in(5))
      order.only_model = model_id{static_cast<std::uint16_t>(
          d.between(0, static_cast<std::uint32_t>(s.backends.size()) - 1))};
    for (token_id token = 0; d.one_in(3) && token < 3; ++token)
      order.spec.sampling.biases.push_back({token, 200 * d.share() - 100});
    if (threshold_max > 0 && d.one_in(3))
      order.spec.threshold = double{threshold_max * d.share()};
  }
}

std::uint32_t head_window_positions(const scenario& s, std::size_t model) {
  const model_id self{static_cast<std::uint16_t>(model)};
  return make_role(self, s.topology, s.parameters).value()->needs().head_window_positions;
}

/// In every second seed the wire loses, repeats, reorders and damages frames. Draws from a stream
/// of its own, so that faults do not change the rest of a seed.
void draw_network(scenario& s) {
  dice d(s.seed ^ 0x6e6574776f726b00);
  s.network.delay_min_us = 1;
  s.network.delay_max_us = d.one_in(2) ? 3 : d.between(10, 2000);
  if (d.one_in(2))
    return;
  s.network.drop_share = 0.1f * d.share();
  s.network.duplicate_share = 0.1f * d.share();
  s.network.reorder_share = d.share();
  s.network.corrupt_share = 0.1f * d.share();
}

/// In one of three seeds models are split over shards. A stream of its own, as above.
void draw_shards(scenario& s) {
  dice d(s.seed ^ 0x73686172647300);
  const bool any = d.one_in(3);
  for (const auto& replicas : s.placement) {
    auto& model = s.followers.emplace_back(replicas.size());
    const std::uint32_t shards = any ? d.between(1, 3) : 1;
    for (auto& ranks : model)
      for (std::uint32_t i = 1; i < shards; ++i)
        ranks.push_back({d.between(0, s.ranks - 1)});
  }
}

/// In three of four seeds replicas fetch KV from one another, in half of these by reading in place
/// where they can; bulk transfers may fail or be damaged. A stream of its own, as above.
void draw_fetch(scenario& s) {
  dice d(s.seed ^ 0x6665746368000000);
  if (!s.keep_prefixes || d.one_in(4))
    return;
  s.fetch_min_tokens = d.between(1, 40);
  const std::size_t block_bytes = scripted_backend(s.backends.front()).facts().kv_bytes_per_block;
  s.fetch_piece_bytes = block_bytes * d.between(1, 3);
  s.bulk_bytes_max = block_bytes * d.between(1, 12);
  const bool in_place = d.one_in(2);
  for (auto& backend : s.backends)
    backend.reachable_kv = in_place;
  if (d.one_in(2))
    return;
  s.network.bulk_fail_share = 0.2f * d.share();
  s.network.bulk_corrupt_share = 0.2f * d.share();
}

/// Losses that the job may survive, early, or when others are just being found out. A stream of its
/// own, as above.
void draw_mishaps(scenario& s) {
  dice d(s.seed ^ 0x6d69736861700000);
  if (s.ranks == 1 || s.dies || !d.one_in(3))
    return;
  s.degrade = true;
  for (std::uint32_t n = d.one_in(2) ? 1 : d.between(1, s.ranks); n > 0; --n) {
    mishap x;
    x.rank = {d.one_in(20) ? 0 : d.between(1, s.ranks - 1)};
    x.us = d.one_in(3) ? d.between(480'000, 560'000) : d.between(1, 12'000);
    if (d.one_in(4))
      x.lasts_us = d.between(100'000, 1'200'000);
    else if (const auto other = d.between(1, s.ranks - 1); d.one_in(6) && other != x.rank.value)
      x.cut_off = rank_id{other};
    s.mishaps.push_back(x);
  }
  if (d.one_in(4))
    return;
  // Requests are under way everywhere when the first loss is found out, half a second later.
  const std::uint64_t base_us = s.mishaps.front().us + d.between(380'000, 500'000);
  const std::uint64_t stretch = d.between(1, 40);
  for (std::size_t i = 0; i < s.requests.size(); ++i) {
    s.submit_us[i] = base_us + s.submit_us[i] * stretch;
    if (s.cancel_us[i])
      *s.cancel_us[i] = base_us + *s.cancel_us[i] * stretch;
  }
}

} // namespace

scenario make_scenario(std::uint64_t seed) {
  dice d(seed);
  scenario s;
  s.seed = seed;
  s.ranks = d.between(1, 4);
  draw_method(d.engine(), s);
  draw_batching(d, s);
  s.keep_prefixes = !d.one_in(4);
  s.same_weights = d.one_in(4);
  const bool tiny_pools = d.one_in(2);
  for (std::size_t i = 0; i < s.topology.roles.size(); ++i) {
    s.placement.emplace_back();
    for (std::uint32_t n = d.one_in(2) ? 1 : d.between(1, 4); n > 0; --n)
      s.placement.back().push_back({d.between(0, s.ranks - 1)});
    s.pool_blocks.push_back(tiny_pools ? blocks_for(100) + d.between(0, 3) : 400);
    scripted_options backend;
    backend.seed = seed;
    backend.weights_id = s.same_weights ? 0 : i;
    backend.vocab_tokens = vocab_tokens;
    backend.context_tokens_max = context_tokens_max;
    backend.eos_token = eos;
    backend.eos_odds = 0.03;
    backend.heads = 1;
    backend.head_window_positions = head_window_positions(s, i);
    backend.step_base_us = d.between(1, 200);
    backend.step_row_us = d.between(0, 5);
    backend.step_token_us = d.between(0, 3);
    s.backends.push_back(backend);
    s.max_batch_rows.push_back(d.one_in(3) ? d.between(1, 3) : 64);
    s.prefill_chunk_tokens.push_back(d.one_in(3) ? d.between(1, 16) : 512);
  }
  draw_network(s);
  draw_shards(s);
  draw_fetch(s);
  draw_requests(d, s);
  draw_wishes(s);
  if (s.ranks > 1 && d.one_in(8)) {
    s.dies = rank_id{d.between(0, s.ranks - 1)};
    s.dies_us = d.between(1, 20000);
  }
  draw_mishaps(s);
  return s;
}

} // namespace tokenrouter::sim
