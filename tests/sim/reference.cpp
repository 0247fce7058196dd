#include <algorithm>
#include <memory>

#include "runtime/core/check.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/policy/finish.hpp"
#include "tests/sim/scenario.hpp"

namespace tokenrouter::sim {

namespace {

/// One request, decoded by the definition of its method.
class reference_run {
 public:
  reference_run(const scenario& s, const submit& order) : s_(s), order_(order) {
    for (std::size_t i = 0; i < s.topology.roles.size(); ++i)
      roles_.push_back(
          make_role({static_cast<std::uint16_t>(i)}, s.topology, s.parameters).value());
    tokens_ = order.prompt;
    const auto entry = make_entry(s.topology, s.parameters).value();
    auto start = entry->start({order.spec.sampling.seed, order.prompt,
                               order.spec.request_score.value, order.spec.own_threshold()});
    model_ = order.only_model.value_or(start.model);
    state_ = std::move(start.state);
  }

  std::vector<expected_token> run() {
    while (!finished_) {
      if (judging_)
        judge();
      if (!finished_)
        decide();
    }
    return output_;
  }

 private:
  const method_role& role() const { return *roles_[model_.value]; }
  std::size_t committed() const { return tokens_.size() - makers_.size(); }

  step_row_output answer(std::size_t length, const scripted_mix& mix = {}) const {
    const auto needs = role().needs();
    return scripted_answer(s_.backends[model_.value], std::span(tokens_).first(length),
                           needs.signals, order_.spec.sampling,
                           sample_stream(needs.shares_sampling_stream ? 0 : model_.value), mix);
  }

  bool finishes(token_id token, std::size_t length) const {
    const finish_limits limits{static_cast<std::uint32_t>(order_.prompt.size()),
                               order_.spec.max_new_tokens, context_tokens_max,
                               order_.spec.ignore_eos};
    return check_finish(token, static_cast<std::uint32_t>(length), limits, {&eos, 1}) !=
           finish_reason::none;
  }

  void commit(std::size_t count) {
    for (; count > 0 && !finished_; --count) {
      const token_id token = tokens_[committed()];
      output_.push_back({token, makers_.front()});
      finished_ = finishes(token, committed() + 1);
      makers_.erase(makers_.begin());
    }
  }

  void judge() {
    judging_ = false;
    std::vector<token_id> own;
    for (std::size_t n = committed(); n <= tokens_.size(); ++n)
      own.push_back(answer(n).token);
    const std::uint32_t accepted = role().receive(
        {static_cast<std::uint32_t>(committed()), std::span(tokens_).subspan(committed()), own},
        state_);
    const auto dropped = static_cast<std::uint32_t>(makers_.size() - accepted);
    tokens_.resize(tokens_.size() - dropped);
    makers_.resize(accepted);
    if (dropped > 0)
      role().rollback(dropped, state_);
    commit(accepted);
  }

  void decide() {
    const auto proposal = answer(tokens_.size(), {mix_weight_, mix_});
    mix_weight_ = 0;
    const auto needs = role().needs();
    std::vector<float> tail;
    const std::size_t first =
        tokens_.size() - std::min<std::size_t>(tokens_.size(), needs.tail_positions);
    for (std::size_t n = first + 1; needs.tail_positions > 1 && n <= tokens_.size(); ++n)
      tail.push_back(answer(n).entropy_normalised);
    route_input in;
    in.seed = order_.spec.sampling.seed;
    in.position = static_cast<std::uint32_t>(tokens_.size());
    in.prompt_tokens = static_cast<std::uint32_t>(order_.prompt.size());
    in.tentative_tokens = static_cast<std::uint32_t>(makers_.size());
    in.proposed = proposal.token;
    in.would_finish = finishes(proposal.token, tokens_.size() + 1);
    in.request_score = order_.spec.request_score.value;
    in.threshold = order_.spec.own_threshold();
    in.entropy_nats = proposal.entropy_nats;
    in.entropy_normalised = proposal.entropy_normalised;
    in.entropy_top20_nats = proposal.entropy_top20_nats;
    in.aleatoric = proposal.aleatoric;
    in.epistemic = proposal.epistemic;
    in.head_score = proposal.head_scores[0];
    in.tail_entropies = tail;
    act(order_.only_model ? route_decision{} : role().route(in, state_), proposal.token);
  }

  void act(const route_decision& decision, token_id proposed) {
    const auto keep = [&](token_id token) {
      tokens_.push_back(token);
      makers_.push_back(model_);
    };
    switch (decision.action) {
    case route_action::stay:
    case route_action::go_keep:
      if (decision.forced.empty())
        keep(proposed);
      for (const token_id token : decision.forced)
        keep(token);
      commit(makers_.size());
      break;
    case route_action::stay_tentative:
    case route_action::go_tentative:
      keep(proposed);
      break;
    case route_action::go_drop:
      if (decision.mix_weight > 0) {
        mix_weight_ = decision.mix_weight;
        mix_ = scripted_distribution(s_.backends[model_.value], tokens_);
      }
      break;
    }
    if (decision.action == route_action::stay || decision.action == route_action::stay_tentative)
      return;
    check(decision.target != model_, "a method sends a request to another model");
    model_ = decision.target;
    judging_ = !makers_.empty();
  }

  const scenario& s_;
  const submit& order_;
  std::vector<std::unique_ptr<method_role>> roles_;
  std::vector<token_id> tokens_;
  std::vector<model_id> makers_; ///< of the last tokens_: tentative
  std::vector<float> mix_;
  float mix_weight_ = 0;
  model_id model_;
  method_state state_;
  bool judging_ = false;
  bool finished_ = false;
  std::vector<expected_token> output_;
};

} // namespace

std::vector<expected_token> expected_output(const scenario& s, const submit& order) {
  return reference_run(s, order).run();
}

std::vector<token_id> plain_output(const scenario& s, const submit& order, model_id model) {
  scenario alone = s;
  alone.topology = {{"plain"}, {0}};
  alone.backends = {s.backends[model.value]};
  std::vector<token_id> tokens;
  submit alike = order;
  alike.only_model.reset();
  for (const auto& x : expected_output(alone, alike))
    tokens.push_back(x.token);
  return tokens;
}

std::vector<float> prompt_logprobs(const scenario& s, const submit& order) {
  const auto entry = make_entry(s.topology, s.parameters).value();
  const auto start = entry->start({order.spec.sampling.seed, order.prompt,
                                   order.spec.request_score.value, order.spec.own_threshold()});
  const auto& backend = s.backends[order.only_model.value_or(start.model).value];
  std::vector<float> out;
  for (std::size_t i = 1; i < order.prompt.size(); ++i)
    out.push_back(scripted_logprob(backend, std::span(order.prompt).first(i), order.prompt[i]));
  return out;
}

bool is_identity(const scenario& s, const submit& order) {
  const bool own_words =
      s.topology.roles.front() == "glimprouter_slm" ||
      (s.topology.roles.front() == "collm_base" && s.parameters.combine == "compose");
  return s.same_weights && !own_words && order.spec.sampling.temperature == 0;
}

} // namespace tokenrouter::sim
