#include "runtime/methods/plain/single_token.hpp"
#include "runtime/methods/plugin.hpp"

using namespace tokenrouter;

/// A library that custom_method_test builds against the installed package: its entry starts
/// requests on the second model, and its roles do what margin's don't.
namespace {

/// R2R once more: the large model writes where the head's score reaches the threshold.
class headed_role final : public method_role {
 public:
  explicit headed_role(double threshold) : threshold_(threshold) {}
  role_needs needs() const override { return {to_set(signal::heads), {"r2r"}}; }
  route_decision route(const route_input& in, method_state&) const override {
    const bool large = !(double{in.head_score} < threshold_);
    return {large ? route_action::go_drop : route_action::stay, model_id{1}, in.head_score};
  }

 private:
  double threshold_;
};

class needy_role final : public method_role {
 public:
  explicit needy_role(role_needs needs) : needs_(std::move(needs)) {}
  role_needs needs() const override { return needs_; }
  route_decision route(const route_input&, method_state&) const override { return {}; }

 private:
  role_needs needs_;
};

role_result make_alone(model_id, const method_topology&, const method_parameters&) {
  return std::make_unique<needy_role>(role_needs{});
}

role_result make_headed(model_id, const method_topology&, const method_parameters& p) {
  return std::make_unique<headed_role>(p.threshold.value());
}

role_result make_helper(model_id, const method_topology& topology, const method_parameters&) {
  return make_single_token(topology, "headed");
}

role_result make_greedy(model_id, const method_topology&, const method_parameters&) {
  return std::make_unique<needy_role>(
      role_needs{to_set(signal::heads), {"r2r", "r2r", "r2r", "r2r", "r2r"}});
}

role_result make_deaf(model_id, const method_topology&, const method_parameters&) {
  return std::make_unique<needy_role>(role_needs{0, {"r2r"}});
}

role_result make_blind(model_id, const method_topology&, const method_parameters&) {
  return std::make_unique<needy_role>(role_needs{0, {}, 0});
}

role_result make_nothing(model_id, const method_topology&, const method_parameters&) {
  return nullptr;
}

entry_result make_entry(const method_topology& topology, const method_parameters&) {
  const bool alone = topology.roles[1] == "alone";
  return std::make_unique<fixed_entry>(model_id{static_cast<std::uint16_t>(alone ? 1 : 0)});
}

} // namespace

TOKENROUTER_METHOD({"alone", make_alone}, {"headed", make_headed}, {"helper", make_helper},
                   {"greedy", make_greedy}, {"deaf", make_deaf}, {"blind", make_blind},
                   {"nothing", make_nothing});
TOKENROUTER_METHOD_ENTRY(make_entry);
