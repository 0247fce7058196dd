#include "runtime/methods/rstitch/rstitch.hpp"

#include <cmath>

namespace tokenrouter {

namespace {

constexpr double default_threshold = 0.03; ///< of normalised entropy
constexpr double head_threshold = 0.5;

struct rstitch_state {
  /// 1 + the position at which the small model commits its own token; 0: none.
  std::uint32_t own_position_end = 0;
};

float entropy_of(const route_input& in, entropy_unit unit) {
  return unit == entropy_unit::nats ? in.entropy_nats : in.entropy_normalised;
}

struct rstitch_options {
  double threshold;
  entropy_unit unit;
  bool keeps_token;
};

result<rstitch_options> options_of(const method_parameters& p) {
  if (p.entropy_unit != "normalised" && p.entropy_unit != "nats")
    return fail(errc::invalid_argument,
                "method.entropy_unit: must be normalised or nats, not '" + p.entropy_unit + "'");
  if (p.on_return != "keep_llm" && p.on_return != "keep_own")
    return fail(errc::invalid_argument,
                "method.on_return: must be keep_llm or keep_own, not '" + p.on_return + "'");
  const bool nats = p.entropy_unit == "nats";
  if (nats && !p.threshold)
    return fail(errc::invalid_argument, "method.threshold: rstitch needs one in nats");
  return rstitch_options{p.threshold.value_or(default_threshold),
                         nats ? entropy_unit::nats : entropy_unit::normalised,
                         p.on_return == "keep_llm"};
}

role_needs needs_of(entropy_unit unit) {
  role_needs out{to_set(signal::entropy), {}};
  out.request_threshold_max = unit == entropy_unit::nats ? nats_max : 1;
  return out;
}

} // namespace

role_needs rstitch_small::needs() const {
  role_needs out = needs_of(unit_);
  if (asks_head_) {
    out.signals = out.signals | signal::heads;
    out.heads = {"rstitch"};
  }
  return out;
}

role_needs rstitch_large::needs() const {
  return needs_of(unit_);
}

route_decision rstitch_small::route(const route_input& in, method_state& state) const {
  const float entropy = entropy_of(in, unit_);
  if (state.get<rstitch_state>().own_position_end == in.position + 1)
    return {route_action::stay, large_, entropy};
  // Both written so that NaN goes to the large model.
  const bool simple = double{entropy} <= in.threshold.value_or(threshold_);
  const bool waved_through =
      asks_head_ && !std::isnan(entropy) && double{in.head_score} < head_threshold;
  return {simple || waved_through ? route_action::stay : route_action::go_drop, large_, entropy};
}

route_decision rstitch_large::route(const route_input& in, method_state& state) const {
  const float entropy = entropy_of(in, unit_);
  if (!(double{entropy} <= in.threshold.value_or(threshold_)))
    return {route_action::stay, small_, entropy};
  if (keeps_token_)
    return {route_action::go_keep, small_, entropy};
  state.set(rstitch_state{in.position + 1});
  return {route_action::go_drop, small_, entropy};
}

role_result make_rstitch_small(model_id, const method_topology& topology,
                               const method_parameters& parameters) {
  const auto large = only_model_with(topology, "rstitch_llm");
  if (!large)
    return tl::unexpected(large.error());
  const auto options = options_of(parameters);
  if (!options)
    return tl::unexpected(options.error());
  return std::make_unique<rstitch_small>(*large, options->threshold, options->unit,
                                         parameters.has_router);
}

role_result make_rstitch_large(model_id, const method_topology& topology,
                               const method_parameters& parameters) {
  const auto small = only_model_with(topology, "rstitch_slm");
  if (!small)
    return tl::unexpected(small.error());
  const auto options = options_of(parameters);
  if (!options)
    return tl::unexpected(options.error());
  return std::make_unique<rstitch_large>(*small, options->threshold, options->unit,
                                         options->keeps_token);
}

} // namespace tokenrouter
