#include "runtime/config/validate_method.hpp"

#include <algorithm>

#include "runtime/config/config_keys.hpp"
#include "runtime/config/method_keys.hpp"

namespace tokenrouter {

namespace {

class method_validator {
 public:
  method_validator(const job_config& config, const method_shape& shape, config_reading& reading)
      : config_(config), shape_(shape), parameters_(config.method.parameters), reading_(reading) {}

  void check_all() {
    for (const std::string_view name : config_names_under("method"))
      check_effect(name);
    if (shape_.is_custom())
      check_custom();
    else
      check_models();
    check_head();
    check_thresholds();
    check_weights();
  }

 private:
  void fault(const std::string& path, const std::string& what) {
    reading_.fault(reading_.mark_of(path), path + " " + what);
  }
  bool given(const std::string& path) const { return reading_.marks.contains(path); }
  bool is(std::string_view method) const { return shape_.name == method; }
  std::size_t models() const { return config_.models.size(); }

  /// Parameters that the method does not read would be ignored silently.
  void check_effect(std::string_view name) {
    const std::string path = "method." + std::string(name);
    if (!given(path))
      return;
    if (const std::string why = why_without_effect(name, shape_.name, parameters_); !why.empty())
      fault(path, "has no effect: " + why);
  }

  void check_custom() {
    std::error_code ignored;
    const auto& library = config_.method.library;
    if (library.empty())
      fault("method", "needs library, the shared library with its roles, for method custom");
    else if (!std::filesystem::is_regular_file(library, ignored))
      fault("method.library", "is not a file: " + library.string());
  }

  void check_models() {
    if (models() == 0)
      return;
    if (!shape_.is_pair() && models() > shape_.models_max)
      fault("models", "has " + std::to_string(models()) + " entries, but method " +
                          std::string(shape_.name) + " runs " +
                          (shape_.models_max == 1
                               ? "one; set system.method to one that routes, or remove the others"
                               : std::to_string(shape_.models_max)));
    if (!shape_.is_pair() && models() < shape_.models_min)
      fault("models", "has " + std::to_string(models()) + " entry, but method " +
                          std::string(shape_.name) + " needs at least " +
                          std::to_string(shape_.models_min));
    for (const model_settings& model : config_.models)
      if (!model.role.empty() && model.role != shape_.roles[0] &&
          (!shape_.is_pair() || model.role != shape_.roles[1]))
        fault("models." + model.name + ".scheduler",
              "is " + model.role + ", but method " + std::string(shape_.name) + " has " +
                  std::string(shape_.roles[0]) +
                  (shape_.is_pair() ? " and " + std::string(shape_.roles[1]) : ""));
    if (shape_.is_pair()) {
      check_entry_is(only_with_role(shape_.roles[0]), "the " + std::string(shape_.roles[0]));
      only_with_role(shape_.roles[1]);
    } else if (shape_.entry_is_first && models() >= shape_.models_min) {
      check_entry_is(&config_.models[0], "the first model with method " + std::string(shape_.name));
    }
  }

  void check_entry_is(const model_settings* wanted, const std::string& what) {
    const std::string& entry = config_.system.entry_model;
    const bool exists = std::ranges::any_of(
        config_.models, [&](const model_settings& m) { return m.name == entry; });
    if (wanted != nullptr && exists && wanted->name != entry)
      fault("system.entry_model",
            "must be " + what + ", '" + wanted->name + "', not '" + entry + "'");
  }

  const model_settings* only_with_role(std::string_view role) {
    const auto has_role = [&](const model_settings& m) { return m.role == role; };
    const auto count = std::ranges::count_if(config_.models, has_role);
    if (count == 1)
      return &*std::ranges::find_if(config_.models, has_role);
    fault("models", "must have exactly one model with scheduler " + std::string(role) + ", not " +
                        std::to_string(count));
    return nullptr;
  }

  /// What makes the method need a routing head; empty if it needs none.
  std::string head_reason() const {
    const std::string& strategy = parameters_.switching_strategy;
    if (is("r2r") && strategy.starts_with("neural"))
      return "switching_strategy " + strategy;
    if (is("citer") || (is("co-llm") && parameters_.defer_token.empty()))
      return "method " + std::string(shape_.name);
    if (is("query-level") && parameters_.score_source == "head")
      return "score_source head";
    return {};
  }

  void check_head() {
    const auto& router = config_.method.router;
    if (std::error_code ignored;
        !router.empty() && !std::filesystem::is_regular_file(router, ignored))
      fault("method.router", "is not a file: " + router.string());
    if (const std::string reason = head_reason();
        !reason.empty() && router.empty() && !given("method.router"))
      fault("method", "needs router, the weights of the routing head, for " + reason);
    if (is("co-llm") && !parameters_.defer_token.empty() && given("method.router"))
      fault("method.router", "and defer_token both name a deferral head; keep one");
  }

  /// What the threshold is compared with where that lies between 0 and 1; empty elsewhere.
  std::string share_reason() const {
    if (const std::string reason = head_reason(); !reason.empty())
      return reason;
    if (is("co-llm") || (is("rstitch") && parameters_.entropy_unit == "normalised"))
      return "method " + std::string(shape_.name);
    return {};
  }

  void check_thresholds() {
    const auto& threshold = parameters_.threshold;
    const bool named = given("method.threshold");
    if (const std::string reason = share_reason(); !reason.empty() && threshold && *threshold > 1)
      fault("method.threshold", "must be a number from 0 to 1 for " + reason);
    if (is("rstitch") && parameters_.entropy_unit == "nats" && !named)
      fault("method", "needs threshold, in nats, for entropy_unit nats");
    if (is("co-llm") && !parameters_.defer_token.empty() && !named)
      fault("method", "needs threshold: a row of the model's own LM head brings none");
    if (is("cascade") || is("query-level"))
      check_steps();
  }

  /// One threshold fewer than models.
  void check_steps() {
    const auto& steps = parameters_.thresholds;
    const bool named = given("method.thresholds");
    if (models() < 2 || (named && steps.empty()))
      return;
    if (is("query-level") && given("method.threshold")) {
      if (named)
        fault("method.threshold", "and thresholds say the same; keep one");
      if (models() > 2)
        fault("method.threshold", "is for two models; give thresholds, one for each model but the "
                                  "last");
      return;
    }
    if (steps.size() != models() - 1)
      fault(named ? "method.thresholds" : "method",
            "needs thresholds with " + std::to_string(models() - 1) +
                " numbers, one for each model but the last, not " + std::to_string(steps.size()));
    if (is("query-level") && !std::ranges::is_sorted(steps))
      fault("method.thresholds", "must ascend: a higher score goes to a larger model");
  }

  void check_weights() {
    const auto& weights = parameters_.weights;
    const bool named = given("method.weights");
    const bool needed = is("me") || (is("random-request") && models() > 2);
    if ((!needed && !named) || (named && weights.empty()) || models() < 2)
      return;
    if (weights.size() != models())
      fault(named ? "method.weights" : "method", "needs weights with " + std::to_string(models()) +
                                                     " numbers, one for each model, not " +
                                                     std::to_string(weights.size()));
    else if (std::ranges::all_of(weights, [](double x) { return x == 0; }))
      fault("method.weights", "are all 0; at least one model must be drawn");
    if (is("random-request") && named && given("method.reference_share"))
      fault("method.reference_share", "and weights say the same; keep one");
  }

  const job_config& config_;
  const method_shape& shape_;
  const method_parameters& parameters_;
  config_reading& reading_;
};

} // namespace

void validate_method(const job_config& config, config_reading& reading) {
  if (const method_shape* shape = find_method(config.method.name))
    method_validator(config, *shape, reading).check_all();
}

} // namespace tokenrouter
