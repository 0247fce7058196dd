#include "launch/results.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tokenrouter {

namespace {

using json = nlohmann::ordered_json;

json usage_of(const request_done& done, const std::vector<std::string>& names,
              std::uint32_t prompt_tokens) {
  json usage;
  usage["prompt_tokens"] = prompt_tokens;
  usage["completion_tokens"] = done.output.size();
  usage["total_tokens"] = prompt_tokens + done.output.size();
  usage["handoffs"] = done.handoffs;
  json models = json::object();
  for (std::size_t i = 0; i < done.usage.size() && i < names.size(); ++i) {
    const auto& u = done.usage[i];
    models[names[i]] = {
        {"generated_tokens", u.generated_tokens}, {"computed_tokens", u.computed_tokens},
        {"cached_tokens", u.cached_tokens},       {"fetched_tokens", u.fetched_tokens},
        {"lacked_tokens", u.kv_tokens},           {"recomputed_tokens", u.recomputed_tokens}};
  }
  usage["models"] = std::move(models);
  return usage;
}

} // namespace

std::string_view to_string(finish_reason reason) {
  switch (reason) {
  case finish_reason::none:
    return "none";
  case finish_reason::stop:
    return "stop";
  case finish_reason::length:
    return "length";
  case finish_reason::cancelled:
    return "cancelled";
  case finish_reason::failed:
    return "error";
  }
  return "unknown";
}

std::string result_line(const std::string& id, const request_done& done,
                        const std::vector<std::string>& model_names, std::uint32_t prompt_tokens) {
  json line;
  line["id"] = id;
  line["text"] = done.text;
  json tokens = json::array(), models = json::array(), scores = json::array();
  for (const auto& x : done.output) {
    tokens.push_back(x.token);
    models.push_back(model_names.at(x.model.value));
    scores.push_back(std::isnan(x.score.value) ? json(nullptr) : json(x.score.value));
  }
  line["token_ids"] = std::move(tokens);
  line["models"] = std::move(models);
  line["scores"] = std::move(scores);
  line["finish_reason"] = to_string(done.finish);
  line["usage"] = usage_of(done, model_names, prompt_tokens);
  line["timing_ms"] = {{"ttft", static_cast<double>(done.ttft_us) / 1000.0},
                       {"total", static_cast<double>(done.total_us) / 1000.0}};
  if (done.finish == finish_reason::failed)
    line["error"] = done.failure.message;
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace tokenrouter
