#include "runtime/config/method_keys.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/config/config_keys.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

constexpr std::array methods = {
    method_shape{"single", {"plain", ""}},
    method_shape{"r2r", {"r2r_slm", "r2r_llm"}, 2, 2},
    method_shape{"citer", {"citer_slm", "citer_llm"}, 2, 2},
    method_shape{"co-llm", {"collm_base", "collm_assist"}, 2, 2},
    method_shape{"rstitch", {"rstitch_slm", "rstitch_llm"}, 2, 2},
    method_shape{"glimprouter", {"glimprouter_slm", "glimprouter_llm"}, 2, 2},
    method_shape{"me", {"random_routing", ""}, 2, limits::models_max},
    method_shape{"query-level", {"query_level_routing", ""}, 2, limits::models_max, true},
    method_shape{"random-token", {"random_routing", ""}, 2, 2, true},
    method_shape{"random-request", {"per_request_random_routing", ""}, 2, limits::models_max, true},
    method_shape{"speculate", {"speculate_slm", "speculate_llm"}, 2, 2},
    method_shape{"cascade", {"cascade", ""}, 2, limits::models_max, true},
    method_shape{"custom", {"", ""}, 1, limits::models_max},
};

/// `method` reads `key`; with an option, only where that has one of `values` (space-separated).
struct key_reader {
  std::string_view key;
  std::string_view method;
  std::string_view option = "";
  std::string_view values = "";
};

constexpr key_reader readers[] = {
    {"router", "r2r"},
    {"router", "citer"},
    {"router", "co-llm"},
    {"router", "rstitch"},
    {"router", "query-level", "score_source", "head"},
    {"threshold", "r2r", "switching_strategy",
     "entropy neural neural_rolling_window neural_multi_input"},
    {"threshold", "citer"},
    {"threshold", "co-llm"},
    {"threshold", "rstitch"},
    {"threshold", "glimprouter"},
    {"threshold", "query-level"},
    {"thresholds", "query-level"},
    {"thresholds", "cascade"},
    {"weights", "me"},
    {"weights", "random-request"},
    {"switching_strategy", "r2r"},
    {"aleatoric_threshold", "r2r", "switching_strategy",
     "immediate momentum single_rolling_window duo_rolling_window"},
    {"epistemic_threshold", "r2r", "switching_strategy", "immediate"},
    {"entropy_threshold", "r2r", "switching_strategy", "immediate single_rolling_window"},
    {"momentum_decay_fraction", "r2r", "switching_strategy", "momentum"},
    {"quick_to_reference_threshold", "r2r", "switching_strategy", "momentum"},
    {"reference_to_quick_threshold", "r2r", "switching_strategy", "momentum"},
    {"window_tokens", "r2r", "switching_strategy",
     "single_rolling_window duo_rolling_window neural_rolling_window neural_multi_input"},
    {"reference_share", "r2r", "switching_strategy", "random"},
    {"reference_share", "random-token", "random_mode", "r2r"},
    {"reference_share", "random-request"},
    {"head_form", "citer"},
    {"schedule", "co-llm"},
    {"schedule_start_threshold", "co-llm", "schedule", "linear exponential cosine"},
    {"warmup_tokens", "co-llm", "schedule", "linear exponential cosine"},
    {"combine", "co-llm"},
    {"defer_token", "co-llm"},
    {"entropy_unit", "rstitch"},
    {"on_return", "rstitch"},
    {"answer_by", "glimprouter"},
    {"thinking", "glimprouter"},
    {"step_tokens_max", "glimprouter"},
    {"thinking_tokens_max", "glimprouter"},
    {"first_small_steps_count", "glimprouter"},
    {"random_mode", "random-token"},
    {"small_to_large_share", "random-token", "random_mode", "markov"},
    {"large_to_small_share", "random-token", "random_mode", "markov"},
    {"score_source", "query-level"},
    {"score_tail_tokens", "query-level", "score_source", "entropy"},
    {"head_kind", "query-level", "score_source", "head"},
    {"draft_tokens", "speculate"},
    {"library", "custom"},
    {"options", "custom"},
};

std::string_view option_value(std::string_view option, const method_parameters& p) {
  if (option == "switching_strategy")
    return p.switching_strategy;
  if (option == "schedule")
    return p.schedule;
  if (option == "random_mode")
    return p.random_mode;
  return option == "score_source" ? std::string_view(p.score_source) : std::string_view();
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool contains(const std::vector<std::string_view>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

} // namespace

std::span<const method_shape> known_methods() {
  return methods;
}

const method_shape* find_method(std::string_view name) {
  const auto it = std::ranges::find(methods, name, &method_shape::name);
  return it == methods.end() ? nullptr : &*it;
}

std::span<const std::string_view> method_names() {
  static const auto names = [] {
    std::array<std::string_view, methods.size()> out;
    std::ranges::transform(methods, out.begin(), &method_shape::name);
    return out;
  }();
  return names;
}

std::span<const std::string_view> role_names() {
  static const auto names = [] {
    std::vector<std::string_view> out;
    for (const method_shape& method : methods)
      for (const std::string_view role : method.roles)
        if (!role.empty() && !contains(out, role))
          out.push_back(role);
    return out;
  }();
  return names;
}

std::string why_without_effect(std::string_view key, std::string_view method,
                               const method_parameters& parameters) {
  if (method == "custom")
    return {};
  std::vector<std::string_view> others;
  for (const key_reader& reader : readers) {
    if (reader.key != key)
      continue;
    if (reader.method != method) {
      if (!contains(others, reader.method))
        others.push_back(reader.method);
      continue;
    }
    const std::string_view value = option_value(reader.option, parameters);
    // A value that was refused is empty; that fault is enough.
    if (value.empty() || contains(words(reader.values), value))
      return {};
    const auto values = words(reader.values);
    return "method." + std::string(reader.option) + " is " + std::string(value) + ", only " +
           listed(values) + (values.size() == 1 ? " reads it" : " read it");
  }
  return "system.method is " + std::string(method) + ", only " + listed(others) +
         (others.size() == 1 ? " reads it" : " read it");
}

} // namespace tokenrouter
