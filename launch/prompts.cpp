#include "launch/prompts.hpp"

#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

namespace tokenrouter {

namespace {

using json = nlohmann::json;

error wrong(std::string_view field, const std::string& what) {
  return {errc::invalid_argument, "field '" + std::string(field) + "' " + what};
}

/// Reads an optional number in [low, high] into `out`.
template <class T>
result<void> read_number(const json& line, const char* field, double low, double high, T& out) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null())
    return {};
  const bool whole = std::is_integral_v<T>;
  if (!found->is_number() || (whole && !found->is_number_integer()))
    return tl::unexpected(
        wrong(field, std::string("must be ") + (whole ? "a whole number" : "a number")));
  const double value = found->get<double>();
  if (!(value >= low && value <= high))
    return tl::unexpected(wrong(field, "is out of its range"));
  out = found->get<T>();
  return {};
}

result<void> read_flag(const json& line, const char* field, bool& out) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null())
    return {};
  if (!found->is_boolean())
    return tl::unexpected(wrong(field, "must be true or false"));
  out = found->get<bool>();
  return {};
}

result<std::vector<chat_message>> read_messages(const json& list) {
  if (!list.is_array() || list.empty())
    return tl::unexpected(wrong("messages", "must be a list of at least one message"));
  std::vector<chat_message> messages;
  for (const auto& one : list) {
    if (!one.is_object() || !one.contains("role") || !one["role"].is_string() ||
        !one.contains("content") || !one["content"].is_string())
      return tl::unexpected(
          wrong("messages", "holds a message without a text `role` and `content`"));
    messages.push_back({one["role"].get<std::string>(), one["content"].get<std::string>()});
  }
  return messages;
}

result<std::vector<token_id>> read_token_ids(const json& list) {
  if (!list.is_array())
    return tl::unexpected(wrong("prompt_token_ids", "must be a list of token ids"));
  std::vector<token_id> tokens;
  for (const auto& one : list) {
    if (!one.is_number_integer() || one.get<std::int64_t>() < 0 ||
        one.get<std::int64_t>() > std::numeric_limits<token_id>::max())
      return tl::unexpected(wrong("prompt_token_ids", "must be a list of token ids"));
    tokens.push_back(one.get<token_id>());
  }
  return tokens;
}

result<std::vector<token_id>> read_input(const json& line, const prompt_tools& tools) {
  const int given = static_cast<int>(line.contains("messages")) +
                    static_cast<int>(line.contains("prompt")) +
                    static_cast<int>(line.contains("prompt_token_ids"));
  if (given != 1)
    return fail(errc::invalid_argument,
                "give exactly one of 'messages', 'prompt' and 'prompt_token_ids'");
  if (line.contains("prompt_token_ids"))
    return read_token_ids(line["prompt_token_ids"]);
  if (line.contains("prompt")) {
    if (!line["prompt"].is_string())
      return tl::unexpected(wrong("prompt", "must be text"));
    return tools.encode(line["prompt"].get<std::string>());
  }
  auto messages = read_messages(line["messages"]);
  if (!messages)
    return tl::unexpected(messages.error());
  bool enable_thinking = true;
  if (auto ok = read_flag(line, "enable_thinking", enable_thinking); !ok)
    return tl::unexpected(ok.error());
  auto text = tools.render(*messages, enable_thinking);
  if (!text)
    return tl::unexpected(text.error());
  return tools.encode(*text);
}

result<void> read_spec(const json& line, request_spec& spec) {
  constexpr double top = 4294967295.0;
  if (auto ok = read_number(line, "max_new_tokens", 1, top, spec.max_new_tokens); !ok)
    return ok;
  auto& sampling = spec.sampling;
  if (auto ok = read_number(line, "temperature", 0, 100, sampling.temperature); !ok)
    return ok;
  if (auto ok = read_number(line, "top_k", 0, top, sampling.top_k); !ok)
    return ok;
  if (auto ok = read_number(line, "top_p", 1e-9, 1, sampling.top_p); !ok)
    return ok;
  if (auto ok = read_number(line, "min_p", 0, 1, sampling.min_p); !ok)
    return ok;
  if (auto ok = read_number(line, "seed", 0, 1.8446744073709552e19, sampling.seed); !ok)
    return ok;
  if (auto ok = read_number(line, "request_score", 0, 1, spec.request_score.value); !ok)
    return ok;
  return read_flag(line, "ignore_eos", spec.ignore_eos);
}

} // namespace

result<submit> parse_prompt(const std::string& text, const prompt_defaults& defaults,
                            const prompt_tools& tools, std::string& id) {
  const json line = json::parse(text, nullptr, false);
  if (line.is_discarded())
    return fail(errc::malformed, "not valid JSON (or not valid UTF-8)");
  if (!line.is_object())
    return fail(errc::malformed, "not a JSON object");
  if (const auto found = line.find("id"); found != line.end())
    id = found->is_string() ? found->get<std::string>() : found->dump();
  submit order;
  order.spec.max_new_tokens = defaults.max_new_tokens;
  order.spec.sampling = defaults.sampling;
  if (auto ok = read_spec(line, order.spec); !ok)
    return tl::unexpected(ok.error());
  auto tokens = read_input(line, tools);
  if (!tokens)
    return tl::unexpected(tokens.error());
  order.prompt = std::move(*tokens);
  return order;
}

result<std::vector<prompt_entry>> read_prompts(const std::filesystem::path& file,
                                               const prompt_defaults& defaults,
                                               const prompt_tools& tools) {
  std::ifstream in(file);
  if (!in)
    return fail(errc::not_found, "can't read the prompts file " + file.string());
  std::vector<prompt_entry> entries;
  std::string line;
  for (std::uint32_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    prompt_entry entry;
    entry.id = std::to_string(number);
    // Requests of one seed would all draw the same: each line has its own.
    prompt_defaults own = defaults;
    own.sampling.seed += entries.size();
    auto order = parse_prompt(line, own, tools, entry.id);
    if (order)
      entry.order = std::move(*order);
    else
      entry.failure = {order.error().code,
                       file.string() + ":" + std::to_string(number) + ": " + order.error().message};
    entry.order.client_tag = entries.size();
    entries.push_back(std::move(entry));
  }
  if (entries.empty())
    return fail(errc::invalid_argument, "the prompts file " + file.string() + " holds no prompt");
  return entries;
}

} // namespace tokenrouter
