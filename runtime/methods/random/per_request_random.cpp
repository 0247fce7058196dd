#include "runtime/methods/random/per_request_random.hpp"

#include "runtime/methods/plain/plain.hpp"
#include "runtime/methods/random/route_draw.hpp"

namespace tokenrouter {

namespace {

result<weighted_choice> choice_of(const method_topology& topology, const method_parameters& p) {
  if (!p.weights.empty())
    return weighted_choice::make(p.weights, topology.roles.size());
  const auto large = other_than_entry(topology);
  if (!large)
    return fail(errc::invalid_argument,
                "method.weights: needs one for each model where there are not two");
  std::vector<double> weights(2, 1 - p.reference_share);
  weights[large->value] = p.reference_share;
  return weighted_choice::make(weights, 2);
}

} // namespace

request_start per_request_random_entry::start(const start_input& in) const {
  const std::size_t chosen = choice_.at(double{route_draw(in.seed, 0)});
  return {{static_cast<std::uint16_t>(chosen)}, {}};
}

role_result make_per_request_random(model_id, const method_topology& topology,
                                    const method_parameters& parameters) {
  if (auto choice = choice_of(topology, parameters); !choice)
    return tl::unexpected(choice.error());
  return std::make_unique<plain_role>();
}

entry_result make_per_request_random_entry(const method_topology& topology,
                                           const method_parameters& parameters) {
  auto choice = choice_of(topology, parameters);
  if (!choice)
    return tl::unexpected(choice.error());
  return std::make_unique<per_request_random_entry>(std::move(*choice));
}

} // namespace tokenrouter
