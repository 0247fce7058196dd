#include "runtime/planning/routing_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace tokenrouter {

namespace {

constexpr double row_sum_tolerance = 1e-6;
constexpr double latency_ticks_max = 1e6;

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.'))
    text.pop_back();
  return text;
}

bool is_share(double value) {
  return value >= 0 && value <= 1;
}

result<void> check_shape(const matrix_rows& rows, std::size_t models, const std::string& name) {
  if (rows.size() != models)
    return fail(errc::invalid_argument,
                "the " + name + " matrix has " + std::to_string(rows.size()) + " rows for " +
                    std::to_string(models) + " latencies; give one a model");
  for (std::size_t i = 0; i < models; ++i)
    if (rows[i].size() != models)
      return fail(errc::invalid_argument, "row " + std::to_string(i) + " of the " + name +
                                              " matrix has " + std::to_string(rows[i].size()) +
                                              " values; give one for each of the " +
                                              std::to_string(models) + " models");
  return {};
}

result<void> check_latencies(const routing_model& model) {
  const std::size_t models = model.latencies_ms.size();
  if (models < 1 || models > chain_models_max)
    return fail(errc::invalid_argument, std::to_string(models) + " latencies; give 1 to " +
                                            std::to_string(chain_models_max) + ", one a model");
  if (!(model.grid_ms > 0) || !std::isfinite(model.grid_ms))
    return fail(errc::invalid_argument,
                "the grid of " + text_of(model.grid_ms) + " ms is not a positive time");
  for (double latency_ms : model.latencies_ms) {
    if (!(latency_ms > 0) || !std::isfinite(latency_ms))
      return fail(errc::invalid_argument,
                  "the latency of " + text_of(latency_ms) + " ms is not a positive time");
    if (latency_ms / model.grid_ms > latency_ticks_max)
      return fail(errc::invalid_argument,
                  "the latency of " + text_of(latency_ms) + " ms is over a million steps of the " +
                      text_of(model.grid_ms) + " ms grid; use a coarser grid");
  }
  if (!model.row_latencies_ms.empty() && model.row_latencies_ms.size() != models)
    return fail(errc::invalid_argument, std::to_string(model.row_latencies_ms.size()) +
                                            " row latencies for " + std::to_string(models) +
                                            " models; give one a model or none");
  for (double row_ms : model.row_latencies_ms)
    if (!(row_ms >= 0) || row_ms * chain_live_max / model.grid_ms > latency_ticks_max)
      return fail(errc::invalid_argument,
                  "the row latency of " + text_of(row_ms) + " ms is negative or far over the grid");
  if (model.entry >= models)
    return fail(errc::invalid_argument, "entry model " + std::to_string(model.entry) +
                                            " is none of the " + std::to_string(models) +
                                            " models, which count from 0");
  return {};
}

} // namespace

result<void> check_routing_model(const routing_model& model) {
  if (auto ok = check_latencies(model); !ok)
    return ok;
  const std::size_t models = model.latencies_ms.size();
  if (auto ok = check_shape(model.routing, models, "routing"); !ok)
    return ok;
  if (auto ok = check_shape(model.committed_tokens, models, "committed-tokens"); !ok)
    return ok;
  for (std::size_t i = 0; i < models; ++i) {
    double sum = 0;
    for (double chance : model.routing[i]) {
      if (!is_share(chance))
        return fail(errc::invalid_argument, "row " + std::to_string(i) +
                                                " of the routing matrix "
                                                "has a chance of " +
                                                text_of(chance) + "; chances lie between 0 and 1");
      sum += chance;
    }
    if (std::abs(sum - 1) > row_sum_tolerance)
      return fail(errc::invalid_argument, "row " + std::to_string(i) +
                                              " of the routing matrix adds up to " + text_of(sum) +
                                              "; the chances of a row add up to 1");
    for (double tokens : model.committed_tokens[i])
      if (!(tokens >= 0) || !std::isfinite(tokens))
        return fail(errc::invalid_argument, "row " + std::to_string(i) +
                                                " of the committed-tokens matrix has " +
                                                text_of(tokens) + "; a step commits 0 or more");
  }
  return {};
}

std::uint32_t step_ticks(const routing_model& model, std::size_t i, std::uint32_t rows) {
  double latency_ms = model.latencies_ms[i];
  if (!model.row_latencies_ms.empty() && rows > 1)
    latency_ms += model.row_latencies_ms[i] * (rows - 1);
  return std::max(1u, static_cast<std::uint32_t>(std::lround(latency_ms / model.grid_ms)));
}

result<void> apply_preset(routing_model& model, std::string_view preset,
                          const preset_parameters& parameters) {
  const std::size_t models = model.latencies_ms.size();
  const double p = parameters.share, q = parameters.return_share;
  const std::string name(preset);
  if (preset == "ensemble") {
    if (parameters.weights.size() != models)
      return fail(errc::invalid_argument,
                  "preset 'ensemble' has " + std::to_string(parameters.weights.size()) +
                      " weights for " + std::to_string(models) + " latencies; give one a model");
    model.routing.assign(models, parameters.weights);
    model.committed_tokens.assign(models, std::vector<double>(models, 1.0));
    return {};
  }
  const bool returns_at_once = preset == "r2r" || preset == "citer" || preset == "co-llm";
  if (!returns_at_once && preset != "rstitch")
    return fail(errc::invalid_argument,
                "no preset '" + name + "'; there are r2r, citer, co-llm, rstitch, ensemble");
  if (models != 2)
    return fail(errc::invalid_argument,
                "preset '" + name + "' is for 2 models, " + std::to_string(models) +
                    " latencies are given; write the matrices out for more");
  if (!is_share(p) || !is_share(q))
    return fail(errc::invalid_argument, "shares of " + text_of(p) + " and " + text_of(q) +
                                            ": a share lies between 0 and 1");
  model.routing = {{1 - p, p}, returns_at_once ? std::vector{1.0, 0.0} : std::vector{q, 1 - q}};
  model.committed_tokens = {{1, 0},
                            returns_at_once ? std::vector{1.0, 0.0} : std::vector{1.0, 1.0}};
  return {};
}

} // namespace tokenrouter
