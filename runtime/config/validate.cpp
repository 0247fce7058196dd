#include "runtime/config/validate.hpp"

#include <algorithm>
#include <set>

namespace tokenrouter {

namespace {

class validator {
 public:
  validator(const job_config& config, config_reading& reading)
      : config_(config), reading_(reading) {}

  void check_all() {
    check_system();
    for (const model_settings& model : config_.models)
      check_model(model);
    check_parameters();
    const std::string& method = config_.method.name;
    if (method == "single")
      check_single();
    else if (method == "r2r")
      check_r2r();
    else if (method == "cascade")
      check_cascade();
  }

 private:
  void fault(const std::string& path, const std::string& what) {
    reading_.fault(reading_.mark_of(path), path + " " + what);
  }
  bool given(const std::string& path) const { return reading_.marks.contains(path); }

  void check_system() {
    const system_settings& system = config_.system;
    if (system.peer_timeout_ms < 2 * system.heartbeat_ms)
      fault(given("system.peer_timeout_ms") ? "system.peer_timeout_ms" : "system.heartbeat_ms",
            "leaves no room for a late heartbeat: peer_timeout_ms is " +
                std::to_string(system.peer_timeout_ms) + ", heartbeat_ms " +
                std::to_string(system.heartbeat_ms) + "; make it at least twice that");
    if (system.entry_model.empty() || config_.models.empty())
      return;
    if (!find(system.entry_model))
      fault("system.entry_model",
            "names no model: '" + system.entry_model + "'; there are " + model_names());
  }

  void check_model(const model_settings& model) {
    const std::string path = "models." + model.name;
    if (!model.path.empty()) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(model.path, ignored))
        fault(path + ".path", "is not a folder: " + model.path.string());
      else if (!std::filesystem::is_regular_file(model.path / "config.json", ignored))
        fault(path + ".path",
              "is not a model folder, it has no config.json: " + model.path.string());
    }
    const std::set<std::uint32_t> different(model.ranks.begin(), model.ranks.end());
    if (different.size() != model.ranks.size())
      fault(path + ".ranks", "names a rank twice; keep one");
    else if (different.size() > 1)
      fault(path + ".ranks", "names " + std::to_string(different.size()) +
                                 " ranks, but a model runs on one; keep one");
  }

  /// Parameters that the method does not read would be ignored silently.
  void check_parameters() {
    const std::string& method = config_.method.name;
    if (method.empty())
      return;
    const auto only = [&](const char* name, const char* owner) {
      const std::string path = std::string("method.") + name;
      if (given(path) && method != owner)
        fault(path, "has no effect: system.method is " + method + ", only " + owner + " reads it");
    };
    only("router", "r2r");
    only("threshold", "r2r");
    only("switching_strategy", "r2r");
    only("thresholds", "cascade");
  }

  void check_single() {
    if (config_.models.size() > 1)
      fault("models", "has " + std::to_string(config_.models.size()) +
                          " entries, but method single runs one; set system.method to r2r or "
                          "cascade, or remove the others");
    check_roles("plain");
  }

  void check_r2r() {
    const method_settings& method = config_.method;
    if (method.switching_strategy == "neural") {
      if (method.router.empty() && !given("method.router"))
        fault("method", "needs router, the weights of the routing head, for switching_strategy "
                        "neural; or choose entropy");
      else if (std::error_code ignored;
               !method.router.empty() && !std::filesystem::is_regular_file(method.router, ignored))
        fault("method.router", "is not a file: " + method.router.string());
      if (method.threshold && *method.threshold > 1)
        fault("method.threshold", "must be a number from 0 to 1 for switching_strategy neural");
    } else if (method.switching_strategy == "entropy" && !method.threshold &&
               !given("method.threshold")) {
      fault("method", "needs threshold, in nats, for switching_strategy entropy");
    }
    check_roles("r2r_slm", "r2r_llm");
    const auto small = only_with_role("r2r_slm");
    only_with_role("r2r_llm");
    if (small != nullptr && find(config_.system.entry_model) &&
        small->name != config_.system.entry_model)
      fault("system.entry_model",
            "must be the r2r_slm, '" + small->name + "', not '" + config_.system.entry_model + "'");
  }

  void check_cascade() {
    const std::size_t models = config_.models.size();
    check_roles("cascade");
    if (models < 2)
      fault("models",
            "has " + std::to_string(models) + " entry, but method cascade needs at least two");
    else if (find(config_.system.entry_model) &&
             config_.models[0].name != config_.system.entry_model)
      fault("system.entry_model", "must be the first model of a cascade, '" +
                                      config_.models[0].name + "', not '" +
                                      config_.system.entry_model + "'");
    const bool faulty = given("method.thresholds") && config_.method.thresholds.empty();
    if (models >= 2 && !faulty && config_.method.thresholds.size() != models - 1)
      fault(given("method.thresholds") ? "method.thresholds" : "method",
            "needs thresholds with " + std::to_string(models - 1) +
                " numbers, one for each model "
                "but the last, not " +
                std::to_string(config_.method.thresholds.size()));
  }

  void check_roles(const std::string& first, const std::string& second = {}) {
    for (const model_settings& model : config_.models)
      if (!model.role.empty() && model.role != first && model.role != second)
        fault("models." + model.name + ".scheduler", "is " + model.role + ", but method " +
                                                         config_.method.name + " has " + first +
                                                         (second.empty() ? "" : " and " + second));
  }

  const model_settings* only_with_role(const std::string& role) {
    const model_settings* found = nullptr;
    std::size_t count = 0;
    for (const model_settings& model : config_.models)
      if (model.role == role) {
        found = &model;
        ++count;
      }
    if (count == 1)
      return found;
    if (!config_.models.empty())
      fault("models", "must have exactly one model with scheduler " + role + ", not " +
                          std::to_string(count));
    return nullptr;
  }

  bool find(const std::string& name) const {
    return std::ranges::any_of(config_.models,
                               [&](const model_settings& m) { return m.name == name; });
  }

  std::string model_names() const {
    std::string out;
    for (const model_settings& model : config_.models)
      out += (out.empty() ? "'" : ", '") + model.name + "'";
    return out;
  }

  const job_config& config_;
  config_reading& reading_;
};

} // namespace

void validate(const job_config& config, config_reading& reading) {
  validator(config, reading).check_all();
}

std::vector<config_fault> validate_ranks(const job_config& config, std::uint32_t rank_count) {
  std::vector<config_fault> out;
  for (const model_settings& model : config.models)
    for (const std::uint32_t rank : model.ranks)
      if (rank >= rank_count)
        out.push_back({model.mark,
                       "models." + model.name + ".ranks: configured for rank " +
                           std::to_string(rank) + ", the job has " + std::to_string(rank_count) +
                           (rank_count == 1 ? " rank" : " ranks") + "; start it with mpirun -np " +
                           std::to_string(rank + 1) + " or leave `ranks` out"});
  return out;
}

} // namespace tokenrouter
