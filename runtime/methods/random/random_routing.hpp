#pragma once

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/random/weighted_choice.hpp"
#include "runtime/methods/topology.hpp"

/// Role `random_routing`: no model signal is read. The draw for position n is a function of (seed
/// of the request, stream route, n) alone, so the whole schedule of a request is fixed at
/// admission.
///   r2r       two models: the small one forwards every position; with reference_share its token is
///             dropped and the large one makes that position
///   markov    two models: every token is kept, then the turn changes with small_to_large_share or
///             large_to_small_share
///   ensemble  ME (arXiv 2605.00419), any number of models: each position is made by a model drawn
///             by `weights`, the first one too
namespace tokenrouter {

/// Mode r2r, the small side; the large one is single_token_role.
class random_small final : public method_role {
 public:
  random_small(model_id large, double reference_share)
      : large_(large), reference_share_(reference_share) {}

  role_needs needs() const override { return {}; }
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  double reference_share_;
};

/// Mode markov, either side: after each token it hands to `peer` with `leave_share`, by the draw of
/// the next position.
class markov_member final : public method_role {
 public:
  markov_member(model_id peer, double leave_share) : peer_(peer), leave_share_(leave_share) {}

  role_needs needs() const override { return {}; }
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id peer_;
  double leave_share_;
};

/// Mode ensemble.
class ensemble_member final : public method_role {
 public:
  ensemble_member(model_id self, weighted_choice choice)
      : self_(self), choice_(std::move(choice)) {}

  role_needs needs() const override { return {}; }
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id self_;
  weighted_choice choice_;
};

/// Mode ensemble: draws the model of the first position.
class ensemble_entry final : public method_entry {
 public:
  explicit ensemble_entry(weighted_choice choice) : choice_(std::move(choice)) {}
  request_start start(const start_input& in) const override;

 private:
  weighted_choice choice_;
};

/// Errors: invalid_argument (unknown mode, r2r or markov without exactly two models, faulty
/// weights).
role_result make_random_routing(model_id self, const method_topology& topology,
                                const method_parameters& parameters);
entry_result make_random_entry(const method_topology& topology,
                               const method_parameters& parameters);

} // namespace tokenrouter
