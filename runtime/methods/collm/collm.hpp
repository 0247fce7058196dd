#pragma once

#include <string>

#include "runtime/methods/collm/threshold_schedule.hpp"
#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

/// Co-LLM (arXiv 2403.03870): the base model's deferral head says with which probability d the
/// assistant should write the position; it does where d > η_t, strictly. The proposal is dropped,
/// the assistant makes one token and hands back.
namespace tokenrouter {

/// Role `collm_base`.
class collm_base final : public method_role {
 public:
  /// `head`: "collm" (a head of its own) or "collm_row" (a row of the model's LM head). `composes`:
  /// the assistant's token maximises (1 − d)·P_base + d·P_assistant rather than P_assistant.
  collm_base(model_id assistant, std::string head, threshold_schedule schedule, bool composes)
      : assistant_(assistant), head_(std::move(head)), schedule_(schedule), composes_(composes) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id assistant_;
  std::string head_;
  threshold_schedule schedule_;
  bool composes_;
};

/// Errors: invalid_argument (no single assistant; those of threshold_schedule; unknown `combine`).
role_result make_collm_base(model_id self, const method_topology& topology,
                            const method_parameters& parameters);

/// Role `collm_assist`: single_token_role.
role_result make_collm_assist(model_id self, const method_topology& topology,
                              const method_parameters& parameters);

} // namespace tokenrouter
