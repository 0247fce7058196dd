#include "runtime/ingress/sampling_fields.hpp"

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

} // namespace

void read_sampling(field_reader& in, float temperature, generation_order& out) {
  auto& sampling = out.sampling;
  sampling.temperature = temperature;
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
