#include "runtime/methods/glimprouter/glimprouter.hpp"

#include <string>

namespace tokenrouter {

namespace {

constexpr double default_threshold = 0.9;

glimpse_mode mode_of(const glimpse_state& s) {
  return static_cast<glimpse_mode>(s.mode);
}

/// Writes the end mark in place of the proposed token; the answer follows at the same model.
route_decision end_thinking(const glimpse_rules& rules, model_id peer, glimpse_state s,
                            method_state& state) {
  s.mode = static_cast<std::uint32_t>(glimpse_mode::answer);
  state.set(s);
  route_decision out{route_action::stay, peer, no_score};
  out.forced = rules.end_of_thinking;
  return out;
}

/// The proposed token is committed by the large (`is_large`) or small model: who is next?
route_decision keep(const glimpse_rules& rules, const route_input& in, bool is_large, model_id peer,
                    float score, glimpse_state s, method_state& state) {
  using answerer = glimpse_rules::answerer;
  const glimpse_event event = rules.steps.advance(in.proposed, s);
  if (mode_of(s) == glimpse_mode::ending && rules.end_of_thinking.empty())
    s.mode = static_cast<std::uint32_t>(glimpse_mode::answer);
  state.set(s);
  bool goes = false;
  if (event == glimpse_event::step_ended)
    goes = is_large;
  else if (event != glimpse_event::none)
    goes = rules.answer_by == (is_large ? answerer::small : answerer::large);
  return {goes ? route_action::go_keep : route_action::stay, peer, score};
}

result<glimpse_rules> rules_of(const method_parameters& p) {
  if (!p.token_bytes)
    return fail(errc::invalid_argument,
                "glimprouter cuts steps by their text, and the text of tokens is not known here");
  if (p.step_tokens_max < 1 || p.thinking_tokens_max < 1)
    return fail(errc::invalid_argument,
                "method.step_tokens_max and method.thinking_tokens_max must be at least 1");
  glimpse_rules::answerer by;
  if (p.answer_by == "large")
    by = glimpse_rules::answerer::large;
  else if (p.answer_by == "small")
    by = glimpse_rules::answerer::small;
  else if (p.answer_by == "same")
    by = glimpse_rules::answerer::same;
  else
    return fail(errc::invalid_argument,
                "method.answer_by: must be large, small or same, not '" + p.answer_by + "'");
  return glimpse_rules{step_tracker(p.token_bytes, p.step_tokens_max, p.thinking_tokens_max), by,
                       p.end_of_thinking};
}

} // namespace

role_needs glimprouter_small::needs() const {
  role_needs out{to_set(signal::top_entropy), {}};
  out.request_threshold_max = 3.0; // ln 20 at most
  return out;
}

route_decision glimprouter_small::route(const route_input& in, method_state& state) const {
  const auto s = state.get<glimpse_state>();
  if (mode_of(s) == glimpse_mode::answer)
    return {route_action::stay, large_, no_score};
  if (mode_of(s) == glimpse_mode::ending)
    return end_thinking(rules_, large_, s, state);
  float score = no_score;
  if (s.step_tokens == 0 && s.steps_count >= first_small_steps_count_) {
    score = in.entropy_top20_nats;
    // Written so that NaN goes to the large model.
    if (!(double{score} < in.threshold.value_or(threshold_)))
      return {route_action::go_drop, large_, score};
  }
  return keep(rules_, in, false, large_, score, s, state);
}

route_decision glimprouter_large::route(const route_input& in, method_state& state) const {
  const auto s = state.get<glimpse_state>();
  if (mode_of(s) == glimpse_mode::answer)
    return {route_action::stay, small_, no_score};
  if (mode_of(s) == glimpse_mode::ending)
    return end_thinking(rules_, small_, s, state);
  return keep(rules_, in, true, small_, no_score, s, state);
}

request_start glimprouter_entry::start(const start_input& in) const {
  bool thinks = when_ == thinking::output_start;
  if (when_ == thinking::prompt) {
    std::string text;
    for (const token_id token : in.prompt)
      text += rules_.steps.text_of(token);
    thinks = step_tracker::is_thinking_open(text);
  }
  if (thinks)
    return {small_, {}};
  glimpse_state s;
  s.mode = static_cast<std::uint32_t>(glimpse_mode::answer);
  request_start out{rules_.answer_by == glimpse_rules::answerer::large ? large_ : small_, {}};
  out.state.set(s);
  return out;
}

role_result make_glimprouter_small(model_id, const method_topology& topology,
                                   const method_parameters& parameters) {
  const auto large = only_model_with(topology, "glimprouter_llm");
  if (!large)
    return tl::unexpected(large.error());
  auto rules = rules_of(parameters);
  if (!rules)
    return tl::unexpected(rules.error());
  return std::make_unique<glimprouter_small>(*large, std::move(*rules),
                                             parameters.threshold.value_or(default_threshold),
                                             parameters.first_small_steps_count);
}

role_result make_glimprouter_large(model_id, const method_topology& topology,
                                   const method_parameters& parameters) {
  const auto small = only_model_with(topology, "glimprouter_slm");
  if (!small)
    return tl::unexpected(small.error());
  auto rules = rules_of(parameters);
  if (!rules)
    return tl::unexpected(rules.error());
  return std::make_unique<glimprouter_large>(*small, std::move(*rules));
}

entry_result make_glimprouter_entry(const method_topology& topology,
                                    const method_parameters& parameters) {
  using thinking = glimprouter_entry::thinking;
  const auto small = only_model_with(topology, "glimprouter_slm");
  if (!small)
    return tl::unexpected(small.error());
  const auto large = only_model_with(topology, "glimprouter_llm");
  if (!large)
    return tl::unexpected(large.error());
  auto rules = rules_of(parameters);
  if (!rules)
    return tl::unexpected(rules.error());
  thinking when;
  if (parameters.thinking == "output_start")
    when = thinking::output_start;
  else if (parameters.thinking == "prompt")
    when = thinking::prompt;
  else if (parameters.thinking == "never")
    when = thinking::never;
  else
    return fail(errc::invalid_argument,
                "method.thinking: must be output_start, prompt or never, not '" +
                    parameters.thinking + "'");
  return std::make_unique<glimprouter_entry>(*small, *large, std::move(*rules), when);
}

} // namespace tokenrouter
