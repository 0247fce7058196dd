#include "actors/messages.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

bool valid_model(model_id x) {
  return x.value < limits::models_max;
}

bool valid_finish(finish_reason x) {
  return x <= finish_reason::failed;
}

bool valid_biases(const std::vector<logit_bias>& x) {
  const bool ordered = std::is_sorted(x.begin(), x.end(), [](const auto& a, const auto& b) {
    return a.token <= b.token; // none twice
  });
  return x.size() <= limits::logit_biases_max && ordered &&
         std::all_of(x.begin(), x.end(), [](const auto& one) {
           return one.token >= 0 && std::abs(one.bias) <= limits::logit_bias_largest;
         });
}

bool valid_sampling(const sampling_params& x) {
  return std::isfinite(x.temperature) && x.temperature >= 0 && x.top_p > 0 && x.top_p <= 1 &&
         x.min_p >= 0 && x.min_p <= 1 && valid_biases(x.biases);
}

} // namespace

bool valid(const announce& x) {
  return valid_model(x.to.model);
}

bool valid(const handoff& x) {
  const std::uint64_t end = std::uint64_t{x.offset} + x.tokens.size();
  const bool tokens_ok =
      !x.tokens.empty() && end <= limits::context_tokens_max &&
      std::all_of(x.tokens.begin(), x.tokens.end(), [](token_id t) { return t >= 0; });
  const bool spec_ok = x.spec.prompt_tokens >= 1 && x.spec.prompt_tokens <= end &&
                       x.spec.max_new_tokens >= 1 && valid_sampling(x.spec.sampling) &&
                       std::isfinite(x.spec.threshold) &&
                       x.spec.replicas.size() <= limits::models_max &&
                       x.spec.top_logprobs <= limits::top_logprobs_max;
  const bool tentative_ok = x.tentative.size() <= x.tokens.size() &&
                            x.tentative.size() + x.spec.prompt_tokens <= end &&
                            std::all_of(x.tentative.begin(), x.tentative.end(),
                                        [](const auto& t) { return valid_model(t.maker); });
  const float weight = x.mix.weight.value;
  const bool mix_ok = weight == 0 ? x.mix.distribution.empty()
                                  : weight > 0 && weight <= 1 && !x.mix.distribution.empty();
  const bool kv_ok = x.kv_tokens.size() <= limits::models_max &&
                     std::all_of(x.kv_tokens.begin(), x.kv_tokens.end(),
                                 [&](std::uint32_t n) { return n <= end; });
  return x.turn >= 1 && valid_model(x.from.model) && valid_model(x.to.model) && tokens_ok &&
         spec_ok && tentative_ok && mix_ok && kv_ok &&
         x.state.size_bytes() <= limits::method_state_bytes_max;
}

bool valid(const handoff_gap& x) {
  return x.turn >= 1 && valid_model(x.from.model) && valid_model(x.to.model) &&
         x.have_tokens <= limits::context_tokens_max;
}

bool valid(const commit_batch& x) {
  const bool commits_ok = std::all_of(x.commits.begin(), x.commits.end(), [&](const auto& c) {
    return home_of(c.request) == x.home && c.turn >= 1 && c.token >= 0 &&
           c.position < limits::context_tokens_max && valid_model(c.model) &&
           valid_finish(c.finish) && c.top.size() <= limits::top_logprobs_max;
  });
  const bool prompts_ok = std::all_of(x.prompts.begin(), x.prompts.end(), [&](const auto& p) {
    return home_of(p.request) == x.home && p.tokens.size() <= limits::context_tokens_max;
  });
  const bool resumes_ok = std::all_of(x.resumes.begin(), x.resumes.end(), [&](const auto& r) {
    return home_of(r.request) == x.home && r.turn >= 1 &&
           r.position <= limits::context_tokens_max && valid_model(r.next) &&
           r.state.size_bytes() <= limits::method_state_bytes_max;
  });
  return !(x.commits.empty() && x.prompts.empty()) && commits_ok && prompts_ok && resumes_ok;
}

bool valid(const request_failed& x) {
  return x.code <= errc::internal;
}

bool valid(const recall& x) {
  return x.turn >= 1 && valid_model(x.to.model);
}

bool valid(const release& x) {
  return valid_model(x.to.model);
}

bool valid(const released& x) {
  return valid_model(x.from.model) && x.fetched_tokens <= x.cached_tokens &&
         x.recomputed_tokens <= x.computed_tokens + x.cached_tokens;
}

bool valid(const replica_report& x) {
  return valid_model(x.from.model) && x.steps.size() <= limits::reported_rows_max &&
         x.moves.size() <= limits::models_max && x.moves.size() == x.committed_tokens.size();
}

bool valid(const batching_update& x) {
  return valid_model(x.to.model) && x.thresholds.size() <= limits::models_max;
}

bool valid(const status_query& x) {
  return valid_model(x.to.model);
}

bool valid(const replica_status& x) {
  return valid_model(x.from.model) && x.used_blocks <= x.total_blocks;
}

bool valid(const rank_ready& x) {
  return std::all_of(x.replicas.begin(), x.replicas.end(),
                     [](const auto& r) { return valid_model(r.replica.model); });
}

bool valid(const peer_lost& x) {
  return x.peer != rank_id{0};
}

bool valid(const rank_lost& x) {
  return x.lost != rank_id{0} && x.lost != x.to;
}

bool valid(const end_job&) {
  return true;
}

bool valid(const shard_invite& x) {
  return valid_model(x.to.replica.model) && x.to.index >= 1 &&
         x.group.size() <= limits::shard_group_id_bytes_max;
}

bool valid(const shard_awake& x) {
  return valid_model(x.to.replica.model) && x.to.index >= 1;
}

bool valid(const shard_step& x) {
  const auto& step = x.step;
  const auto row_ok = [&](const step_row& r) {
    const std::uint64_t end = std::uint64_t{r.start_position} + r.token_count;
    return r.token_count >= 1 &&
           std::uint64_t{r.token_offset} + r.token_count <= step.tokens.size() &&
           std::uint64_t{r.block_offset} + r.block_count <= step.block_tables.size() &&
           std::uint64_t{r.block_count} * limits::block_tokens >= end &&
           end <= limits::context_tokens_max && r.answered_positions <= r.token_count &&
           r.likeliest_count <= limits::top_logprobs_max && valid_sampling(r.sampling) &&
           std::uint64_t{r.scored_offset} + r.scored_positions <= step.scored_tokens.size();
  };
  return valid_model(x.to.replica.model) && x.to.index >= 1 && !step.rows.empty() &&
         step.rows.size() <= limits::batch_rows_max &&
         std::all_of(step.rows.begin(), step.rows.end(), row_ok);
}

} // namespace tokenrouter
