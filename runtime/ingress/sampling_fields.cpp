#include "runtime/ingress/sampling_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

std::uint64_t random_seed() {
  thread_local std::mt19937_64 numbers{std::random_device{}()};
  return numbers();
}

void read_stop(field_reader& in, generation_order& out) {
  const json* stop = in.take("stop");
  if (stop == nullptr)
    return;
  const json list = stop->is_array() ? *stop : json::array({*stop});
  if (list.size() > limits::stop_strings_max)
    in.fault(in.name_of("stop"),
             "has more than " + std::to_string(limits::stop_strings_max) + " entries");
  for (const auto& one : list) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      return in.fault(in.name_of("stop"), "must be text or a list of texts, none of them empty");
    if (one.get_ref<const std::string&>().size() > limits::stop_string_bytes_max)
      return in.fault(in.name_of("stop"), "has an entry of more than " +
                                              std::to_string(limits::stop_string_bytes_max) +
                                              " bytes");
    out.stop.push_back(one.get<std::string>());
  }
}

std::optional<token_id> token_of(const std::string& name, const tokenizer& words) {
  token_id token = -1;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), token);
  if (fault != std::errc() || end != name.data() + name.size() || token < 0 ||
      static_cast<std::uint32_t>(token) >= words.vocab_tokens())
    return std::nullopt;
  return token;
}

void read_biases(field_reader& in, const call_tools& tools, sampling_params& out) {
  const std::string field = in.name_of("logit_bias");
  const json* given = in.take("logit_bias");
  if (given == nullptr)
    return;
  if (!given->is_object() || given->size() > limits::logit_biases_max)
    return in.fault(field, "must be an object of at most " +
                               std::to_string(limits::logit_biases_max) + " token ids");
  for (const auto& [name, value] : given->items()) {
    const auto token = token_of(name, *tools.words);
    if (!token)
      return in.fault(field, "holds '" + name + "', which is no token id of this model");
    if (!value.is_number() ||
        !(std::abs(value.get<double>()) <= double{limits::logit_bias_largest}))
      return in.fault(field, "must be from -100 to 100 for each token");
    out.biases.push_back({*token, value.get<float>()});
  }
  std::ranges::sort(out.biases, {}, &logit_bias::token);
  if (std::ranges::adjacent_find(out.biases, {}, &logit_bias::token) != out.biases.end())
    in.fault(field, "names a token twice");
}

} // namespace

void read_sampling(field_reader& in, const call_tools& tools, generation_order& out) {
  auto& sampling = out.sampling;
  sampling.temperature = 1.0f;
  read_biases(in, tools, sampling);
  if (const auto x = in.number("temperature", 0, 100))
    sampling.temperature = static_cast<float>(*x);
  if (const auto x = in.number("top_p", 1e-9, 1))
    sampling.top_p = static_cast<float>(*x);
  if (const auto x = in.number("min_p", 0, 1))
    sampling.min_p = static_cast<float>(*x);
  if (const auto x = in.whole("top_k", -1, UINT32_MAX))
    sampling.top_k = *x == -1 ? 0 : static_cast<std::uint32_t>(*x);
  if (const auto x = in.flag("ignore_eos"))
    out.ignore_eos = *x;
  read_stop(in, out);
}

void read_seed(field_reader& in, const char* field, generation_order& out) {
  const auto seed = in.whole(field, INT64_MIN, INT64_MAX);
  out.sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
}

void accept_neutral_sampling(field_reader& in) {
  in.accept_only("presence_penalty", 0);
  in.accept_only("frequency_penalty", 0);
  in.accept_only("repetition_penalty", 1);
  in.accept_only("min_tokens", 0);
  in.accept_only("skip_special_tokens", true);
  in.accept_only("spaces_between_special_tokens", true);
  in.accept_only("stop_token_ids", json::array());
}

} // namespace tokenrouter
