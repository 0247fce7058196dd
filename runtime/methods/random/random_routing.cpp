#include "runtime/methods/random/random_routing.hpp"

#include "runtime/methods/plain/single_token.hpp"
#include "runtime/methods/random/route_draw.hpp"

namespace tokenrouter {

namespace {

model_id chosen(const weighted_choice& choice, float drawn) {
  return {static_cast<std::uint16_t>(choice.at(double{drawn}))};
}

tl::unexpected<error> unknown_mode(const method_parameters& p) {
  return fail(errc::invalid_argument,
              "method.random_mode: must be r2r, markov or ensemble, not '" + p.random_mode + "'");
}

} // namespace

route_decision random_small::route(const route_input& in, method_state&) const {
  const float drawn = route_draw(in.seed, in.position);
  return {double{drawn} < reference_share_ ? route_action::go_drop : route_action::stay, large_,
          drawn};
}

route_decision markov_member::route(const route_input& in, method_state&) const {
  const float drawn = route_draw(in.seed, in.position + 1);
  return {double{drawn} < leave_share_ ? route_action::go_keep : route_action::stay, peer_, drawn};
}

route_decision ensemble_member::route(const route_input& in, method_state&) const {
  const float drawn = route_draw(in.seed, in.position + 1);
  const model_id next = chosen(choice_, drawn);
  return {next == self_ ? route_action::stay : route_action::go_keep, next, drawn};
}

request_start ensemble_entry::start(const start_input& in) const {
  const auto first = static_cast<std::uint32_t>(in.prompt.size());
  return {chosen(choice_, route_draw(in.seed, first)), {}};
}

role_result make_random_routing(model_id self, const method_topology& topology,
                                const method_parameters& p) {
  if (p.random_mode == "ensemble") {
    auto choice = weighted_choice::make(p.weights, topology.roles.size());
    if (!choice)
      return tl::unexpected(choice.error());
    return std::make_unique<ensemble_member>(self, std::move(*choice));
  }
  if (p.random_mode != "r2r" && p.random_mode != "markov")
    return unknown_mode(p);
  const auto large = other_than_entry(topology);
  if (!large)
    return tl::unexpected(large.error());
  const bool is_large = self == *large;
  const model_id peer = is_large ? topology.entry : *large;
  if (p.random_mode == "markov")
    return std::make_unique<markov_member>(peer, is_large ? p.large_to_small_share
                                                          : p.small_to_large_share);
  if (is_large)
    return std::make_unique<single_token_role>(peer);
  return std::make_unique<random_small>(peer, p.reference_share);
}

entry_result make_random_entry(const method_topology& topology, const method_parameters& p) {
  if (p.random_mode != "ensemble")
    return std::make_unique<fixed_entry>(topology.entry);
  auto choice = weighted_choice::make(p.weights, topology.roles.size());
  if (!choice)
    return tl::unexpected(choice.error());
  return std::make_unique<ensemble_entry>(std::move(*choice));
}

} // namespace tokenrouter
