// The small model writes a token if it is sure, else the large one does: see README.md.
#include "runtime/methods/options.hpp"
#include "runtime/methods/plain/single_token.hpp"
#include "runtime/methods/plugin.hpp"

using namespace tokenrouter;

namespace {

struct streak { // remembered of each request; travels with its handoffs
  unsigned handoffs = 0;
};

class margin_small final : public method_role {
 public:
  margin_small(const method_topology& topology, const method_parameters& p)
      : large_(only_model_with(topology, "margin_large").value()),
        margin_nats_(number_option(p, "margin_nats", 0, 3, 0.2).value()),
        rise_nats_(number_option(p, "rise_nats", 0, 3, 0).value()) {}

  role_needs needs() const override { return {to_set(signal::top_entropy), {}}; }

  route_decision route(const route_input& in, method_state& state) const override {
    const unsigned handoffs = state.get<streak>().handoffs;
    const bool sure = in.entropy_top20_nats < margin_nats_ + rise_nats_ * handoffs;
    state.set(streak{sure ? 0 : handoffs + 1});
    return {sure ? route_action::stay : route_action::go_drop, large_, in.entropy_top20_nats};
  }

 private:
  model_id large_;
  double margin_nats_, rise_nats_;
};

role_result make_small(model_id, const method_topology& topology, const method_parameters& p) {
  if (const auto ok = check_options(p, {"margin_nats", "rise_nats"}); !ok)
    return tl::unexpected(ok.error());
  return std::make_unique<margin_small>(topology, p);
}

role_result make_large(model_id, const method_topology& topology, const method_parameters&) {
  return make_single_token(topology, "margin_small");
}

} // namespace

TOKENROUTER_METHOD({"margin_small", make_small}, {"margin_large", make_large});
