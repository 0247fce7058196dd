#include "runtime/config/validate.hpp"

#include <algorithm>

#include "runtime/config/validate_method.hpp"

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
    validate_method(config_, reading_);
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
