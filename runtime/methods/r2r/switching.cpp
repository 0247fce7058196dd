#include "runtime/methods/r2r/switching.hpp"

#include <array>
#include <string_view>

#include "runtime/methods/r2r/defaults.hpp"
#include "runtime/methods/r2r/immediate_switching.hpp"
#include "runtime/methods/r2r/momentum_switching.hpp"
#include "runtime/methods/r2r/multi_input_switching.hpp"
#include "runtime/methods/r2r/random_switching.hpp"
#include "runtime/methods/r2r/threshold_switching.hpp"
#include "runtime/methods/r2r/window_switching.hpp"

namespace tokenrouter {

namespace {

using strategy_result = result<std::unique_ptr<switching_strategy>>;

double aleatoric_of(const method_parameters& p) {
  return p.aleatoric_threshold.value_or(r2r_defaults::aleatoric_threshold);
}

result<void> check_window(const method_parameters& p) {
  if (p.window_tokens < 1 || p.window_tokens > r2r_defaults::window_tokens_max)
    return fail(errc::invalid_argument, "method.window_tokens: must be 1 to " +
                                            std::to_string(r2r_defaults::window_tokens_max) +
                                            ", not " + std::to_string(p.window_tokens));
  return {};
}

result<double> head_threshold_of(const method_parameters& p) {
  if (!p.threshold)
    return fail(errc::invalid_argument, "method.threshold: r2r needs one, and neither the config "
                                        "nor the router's JSON gives it");
  return *p.threshold;
}

strategy_result make_immediate(const method_parameters& p) {
  return std::make_unique<immediate_switching>(p.aleatoric_threshold, p.epistemic_threshold,
                                               p.entropy_threshold);
}

strategy_result make_entropy(const method_parameters& p) {
  return std::make_unique<threshold_switching>(
      threshold_switching::source::entropy, p.threshold.value_or(r2r_defaults::entropy_threshold));
}

strategy_result make_momentum(const method_parameters& p) {
  return std::make_unique<momentum_switching>(
      momentum_switching::options{aleatoric_of(p), p.momentum_decay_fraction,
                                  p.quick_to_reference_threshold, p.reference_to_quick_threshold});
}

strategy_result make_single_window(const method_parameters& p) {
  if (auto ok = check_window(p); !ok)
    return tl::unexpected(ok.error());
  return std::make_unique<window_switching>(window_switching::options{
      window_switching::source::aleatoric, aleatoric_of(p), p.window_tokens, true,
      p.entropy_threshold.value_or(r2r_defaults::window_entropy_threshold)});
}

strategy_result make_duo_window(const method_parameters& p) {
  if (auto ok = check_window(p); !ok)
    return tl::unexpected(ok.error());
  return std::make_unique<window_switching>(window_switching::options{
      window_switching::source::aleatoric, aleatoric_of(p), p.window_tokens, false, std::nullopt});
}

strategy_result make_neural(const method_parameters& p) {
  const auto threshold = head_threshold_of(p);
  if (!threshold)
    return tl::unexpected(threshold.error());
  return std::make_unique<threshold_switching>(threshold_switching::source::head, *threshold);
}

strategy_result make_neural_window(const method_parameters& p) {
  const auto threshold = head_threshold_of(p);
  if (!threshold)
    return tl::unexpected(threshold.error());
  if (auto ok = check_window(p); !ok)
    return tl::unexpected(ok.error());
  return std::make_unique<window_switching>(window_switching::options{
      window_switching::source::head, *threshold, p.window_tokens, true, std::nullopt});
}

strategy_result make_multi_input(const method_parameters& p) {
  if (auto ok = check_window(p); !ok)
    return tl::unexpected(ok.error());
  return std::make_unique<multi_input_switching>(
      p.window_tokens, p.threshold.value_or(r2r_defaults::multi_input_threshold));
}

strategy_result make_random(const method_parameters& p) {
  return std::make_unique<random_switching>(p.reference_share);
}

struct strategy_entry {
  std::string_view name;
  strategy_result (*make)(const method_parameters&);
};

constexpr std::array strategies{
    strategy_entry{"immediate", make_immediate},
    strategy_entry{"entropy", make_entropy},
    strategy_entry{"momentum", make_momentum},
    strategy_entry{"single_rolling_window", make_single_window},
    strategy_entry{"duo_rolling_window", make_duo_window},
    strategy_entry{"neural", make_neural},
    strategy_entry{"neural_rolling_window", make_neural_window},
    strategy_entry{"neural_multi_input", make_multi_input},
    strategy_entry{"random", make_random},
};

} // namespace

strategy_result make_switching_strategy(const method_parameters& parameters) {
  std::string known;
  for (const auto& entry : strategies) {
    if (entry.name == parameters.switching_strategy)
      return entry.make(parameters);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return fail(errc::invalid_argument, "method.switching_strategy: unknown strategy '" +
                                          parameters.switching_strategy + "'; known: " + known);
}

} // namespace tokenrouter
