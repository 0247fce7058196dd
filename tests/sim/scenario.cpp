#include "tests/sim/scenario.hpp"

#include <algorithm>
#include <random>

#include "runtime/core/philox.hpp"
#include "runtime/policy/block_ledger.hpp"
#include "runtime/policy/finish.hpp"

namespace tokenrouter::sim {

namespace {

constexpr token_id eos = 0;
constexpr std::uint32_t context_tokens_max = 256;

class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(engine_() % (high - low + 1));
  }
  bool one_in(std::uint32_t n) { return engine_() % n == 0; }
  float share() { return static_cast<float>(engine_() % 1000) / 1000.0f; }

 private:
  std::mt19937_64 engine_;
};

void draw_method(dice& d, scenario& s) {
  switch (d.between(0, 3)) {
  case 0:
    s.topology.roles = {"plain"};
    break;
  case 1:
    s.topology.roles = {"r2r_slm", "r2r_llm"};
    s.parameters = {"neural", d.share(), {}};
    break;
  case 2:
    s.topology.roles = {"r2r_slm", "r2r_llm"};
    s.parameters = {"entropy", 3.0 * d.share(), {}};
    break;
  default:
    for (std::uint32_t i = d.between(2, 5); i > 0; --i) {
      s.topology.roles.push_back("cascade");
      s.parameters.thresholds.push_back(3.0 * d.share());
    }
    s.parameters.thresholds.pop_back();
  }
  s.topology.entry = {0};
}

void draw_requests(dice& d, scenario& s) {
  const bool sampled = d.one_in(2);
  const std::uint32_t count = d.between(1, 24);
  const bool cancels = d.one_in(2);
  for (std::uint32_t i = 0; i < count; ++i) {
    submit order;
    order.client_tag = i;
    for (std::uint32_t n = d.between(1, 60); n > 0; --n)
      order.prompt.push_back(static_cast<token_id>(d.between(0, 63)));
    order.spec.prompt_tokens = static_cast<std::uint32_t>(order.prompt.size());
    order.spec.max_new_tokens = d.between(1, 40);
    order.spec.ignore_eos = d.one_in(4);
    order.spec.sampling.temperature = sampled ? 1.0f : 0.0f;
    order.spec.sampling.seed = d.between(0, 1000000);
    s.requests.push_back(std::move(order));
    s.submit_us.push_back(d.between(0, 3000));
    s.cancel_us.push_back(cancels && d.one_in(3) ? std::optional<std::uint64_t>(d.between(0, 9000))
                                                 : std::nullopt);
  }
}

} // namespace

scenario make_scenario(std::uint64_t seed) {
  dice d(seed);
  scenario s;
  s.seed = seed;
  s.ranks = d.between(1, 4);
  draw_method(d, s);
  const bool tiny_pools = d.one_in(2);
  for (std::size_t i = 0; i < s.topology.roles.size(); ++i) {
    s.placement.push_back({d.between(0, s.ranks - 1)});
    s.pool_blocks.push_back(tiny_pools ? blocks_for(100) + d.between(0, 3) : 400);
    scripted_options backend;
    backend.seed = seed;
    backend.weights_id = i;
    backend.vocab_tokens = 64;
    backend.context_tokens_max = context_tokens_max;
    backend.eos_token = eos;
    backend.eos_odds = 0.03;
    backend.heads = 1;
    backend.step_base_us = d.between(1, 200);
    backend.step_row_us = d.between(0, 5);
    backend.step_token_us = d.between(0, 3);
    s.backends.push_back(backend);
    s.max_batch_rows.push_back(d.one_in(3) ? d.between(1, 3) : 64);
    s.prefill_chunk_tokens.push_back(d.one_in(3) ? d.between(1, 16) : 512);
  }
  s.network.delay_min_us = 1;
  s.network.delay_max_us = d.one_in(2) ? 3 : d.between(10, 2000);
  draw_requests(d, s);
  if (s.ranks > 1 && d.one_in(8)) {
    s.dies = rank_id{d.between(0, s.ranks - 1)};
    s.dies_us = d.between(1, 20000);
  }
  return s;
}

std::vector<expected_token> expected_output(const scenario& s, const submit& order) {
  std::vector<std::unique_ptr<method_role>> roles;
  for (std::size_t i = 0; i < s.topology.roles.size(); ++i)
    roles.push_back(make_role({static_cast<std::uint16_t>(i)}, s.topology, s.parameters).value());
  std::vector<token_id> tokens = order.prompt;
  std::vector<expected_token> output;
  method_state state;
  model_id model = s.topology.entry;
  for (;;) {
    const auto needs = roles[model.value]->needs();
    const auto answer = scripted_answer(s.backends[model.value], tokens, needs.signals,
                                        order.spec.sampling, sample_stream(model.value));
    route_input in;
    in.seed = order.spec.sampling.seed;
    in.position = static_cast<std::uint32_t>(tokens.size());
    in.prompt_tokens = order.spec.prompt_tokens;
    in.proposed = answer.token;
    in.entropy_nats = answer.entropy_nats;
    in.head_score = answer.head_scores[0];
    const auto decision = roles[model.value]->route(in, state);
    if (decision.action != route_action::go_drop) {
      tokens.push_back(answer.token);
      output.push_back({answer.token, model});
      const finish_limits limits{order.spec.prompt_tokens, order.spec.max_new_tokens,
                                 context_tokens_max, order.spec.ignore_eos};
      if (check_finish(answer.token, static_cast<std::uint32_t>(tokens.size()), limits,
                       {&eos, 1}) != finish_reason::none)
        return output;
    }
    if (decision.action != route_action::stay)
      model = decision.target;
  }
}

} // namespace tokenrouter::sim
