#include "runtime/config/overrides.hpp"

#include <algorithm>

#include "runtime/config/config_keys.hpp"

namespace tokenrouter {

namespace {

using names = std::vector<std::string>;

/// The map of models; an empty one if the config has none.
YAML::Node models_of(const YAML::Node& root) {
  for (const auto& entry : root)
    if (entry.first.IsScalar() && entry.first.Scalar() == "models" && entry.second.IsMap())
      return entry.second;
  return YAML::Node(YAML::NodeType::Map);
}

/// Cuts a dotted path; the name of a model, which may hold dots itself, stays whole.
names path_names(std::string path, const YAML::Node& root) {
  names out;
  if (path.starts_with("models.")) {
    std::string model;
    for (const auto& entry : models_of(root))
      if (entry.first.IsScalar() && path.substr(7).starts_with(entry.first.Scalar() + ".") &&
          entry.first.Scalar().size() > model.size())
        model = entry.first.Scalar();
    if (!model.empty()) {
      out = {"models", model};
      path.erase(0, 7 + model.size() + 1);
    }
  }
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
    out.push_back(path.substr(0, dot));
    path.erase(0, dot + 1);
  }
  out.push_back(path);
  return out;
}

void set_value(YAML::Node& root, const names& path, const YAML::Node& value) {
  YAML::Node at = root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (!at[path[i]].IsMap())
      at[path[i]] = YAML::Node(YAML::NodeType::Map);
    at.reset(at[path[i]]);
  }
  at[path.back()] = value;
}

/// A job-wide value of the command line stands for every model.
void clear_models(YAML::Node& root, const std::string& name, config_reading& reading) {
  for (auto entry : models_of(root))
    if (entry.second.IsMap())
      entry.second.remove(name);
  std::erase_if(reading.overrides, [&](const auto& entry) {
    return entry.first.starts_with("models.") &&
           (entry.first.ends_with("." + name) ||
            entry.first.find("." + name + ".") != std::string::npos);
  });
}

void apply_one(YAML::Node& root, const std::string& text, config_reading& reading) {
  const source_mark where{"--set " + text, 0};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    reading.fault(where, "an override must be key=value, e.g. max_batch_rows=8");
    return;
  }
  YAML::Node value;
  try {
    value = YAML::Load(text.substr(equals + 1));
  } catch (const YAML::Exception& problem) {
    reading.fault(where, "the value is not YAML: " + problem.msg);
    return;
  }
  const std::string key = text.substr(0, equals);
  const names path = path_names(key, root);
  if (std::ranges::any_of(path, &std::string::empty)) {
    reading.fault(where, "a key must be names with single dots between them");
    return;
  }
  if (std::ranges::find(job_wide_names(), path[0]) != job_wide_names().end())
    clear_models(root, path[0], reading);
  if (path.size() > 1 && path[path.size() - 2] == "kv_cache") {
    // The two ways to size the cache exclude each other; the override's replaces the file's.
    names cache(path.begin(), path.end() - 1);
    set_value(root, cache, YAML::Node(YAML::NodeType::Map));
  }
  set_value(root, path, value);
  reading.overrides[key] = text;
}

} // namespace

void apply_overrides(YAML::Node& root, const std::vector<std::string>& overrides,
                     config_reading& reading) {
  for (const std::string& text : overrides)
    apply_one(root, text, reading);
}

} // namespace tokenrouter
