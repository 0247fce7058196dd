#pragma once

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/random/weighted_choice.hpp"
#include "runtime/methods/topology.hpp"

namespace tokenrouter {

/// Role `per_request_random_routing` (plain_role in effect): one draw at admission, from (seed of
/// the request, stream route, position 0), says which model writes the whole request. By `weights`;
/// without them, of two models, the one that is not the entry with reference_share.
class per_request_random_entry final : public method_entry {
 public:
  explicit per_request_random_entry(weighted_choice choice) : choice_(std::move(choice)) {}
  request_start start(const start_input& in) const override;

 private:
  weighted_choice choice_;
};

/// Errors: invalid_argument (faulty weights; none, and the models are not two).
role_result make_per_request_random(model_id self, const method_topology& topology,
                                    const method_parameters& parameters);
entry_result make_per_request_random_entry(const method_topology& topology,
                                           const method_parameters& parameters);

} // namespace tokenrouter
