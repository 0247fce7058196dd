#include "runtime/methods/speculate/speculate.hpp"

namespace tokenrouter {

namespace {

role_needs shared_stream() {
  role_needs out;
  out.shares_sampling_stream = true;
  return out;
}

} // namespace

role_needs speculate_small::needs() const {
  return shared_stream();
}

route_decision speculate_small::route(const route_input& in, method_state&) const {
  const bool whole = in.would_finish || in.tentative_tokens + 1 >= draft_tokens_;
  return {whole ? route_action::go_tentative : route_action::stay_tentative, large_, no_score};
}

role_needs speculate_large::needs() const {
  return shared_stream();
}

route_decision speculate_large::route(const route_input&, method_state&) const {
  return {route_action::go_keep, small_, no_score};
}

std::uint32_t speculate_large::receive(const receive_input& in, method_state&) const {
  std::uint32_t accepted_tokens = 0;
  while (accepted_tokens < in.tentative.size() &&
         in.own[accepted_tokens] == in.tentative[accepted_tokens])
    ++accepted_tokens;
  return accepted_tokens;
}

role_result make_speculate_small(model_id, const method_topology& topology,
                                 const method_parameters& parameters) {
  const auto large = only_model_with(topology, "speculate_llm");
  if (!large)
    return tl::unexpected(large.error());
  if (parameters.draft_tokens < 1)
    return fail(errc::invalid_argument, "method.draft_tokens: must be at least 1");
  return std::make_unique<speculate_small>(*large, parameters.draft_tokens);
}

role_result make_speculate_large(model_id, const method_topology& topology,
                                 const method_parameters&) {
  const auto small = only_model_with(topology, "speculate_slm");
  if (!small)
    return tl::unexpected(small.error());
  return std::make_unique<speculate_large>(*small);
}

} // namespace tokenrouter
