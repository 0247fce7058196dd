#include "runtime/ingress/field_reader.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

constexpr int depth_max = 64;

std::string range_text(double low, double high) {
  const auto text = [](double x) { return json(x).dump(); };
  return "must be from " + text(low) + " to " + text(high);
}

bool members_fit(const json& x) {
  if (!x.is_structured())
    return true;
  if (x.is_object() && x.size() > limits::json_members_max)
    return false;
  return std::ranges::all_of(x, members_fit);
}

} // namespace

field_reader::field_reader(const json& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const json* field_reader::take(const char* field) {
  seen_.emplace(field);
  const auto found = object_.find(field);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> field_reader::number(const char* field, double low, double high) {
  const json* x = take(field);
  if (x == nullptr)
    return std::nullopt;
  if (!x->is_number()) {
    fault(name_of(field), "must be a number");
    return std::nullopt;
  }
  const double value = x->get<double>();
  if (!(value >= low && value <= high)) {
    fault(name_of(field), range_text(low, high));
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> field_reader::whole(const char* field, std::int64_t low,
                                                std::int64_t high) {
  const json* x = take(field);
  if (x == nullptr)
    return std::nullopt;
  if (!x->is_number_integer()) {
    fault(name_of(field), "must be a whole number");
    return std::nullopt;
  }
  const bool beyond =
      x->is_number_unsigned() && x->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const auto value = beyond ? INT64_MAX : x->get<std::int64_t>();
  if (beyond || value < low || value > high) {
    fault(name_of(field), "must be from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> field_reader::flag(const char* field) {
  const json* x = take(field);
  if (x == nullptr)
    return std::nullopt;
  if (!x->is_boolean()) {
    fault(name_of(field), "must be true or false");
    return std::nullopt;
  }
  return x->get<bool>();
}

std::optional<std::string> field_reader::text(const char* field) {
  const json* x = take(field);
  if (x == nullptr)
    return std::nullopt;
  if (!x->is_string()) {
    fault(name_of(field), "must be text");
    return std::nullopt;
  }
  return x->get<std::string>();
}

void field_reader::accept_only(const char* field, const json& neutral) {
  const json* x = take(field);
  if (x != nullptr && *x != neutral)
    fault({400,
           "'" + name_of(field) + "' is not supported (but for the value " + neutral.dump() + ")",
           name_of(field), "unsupported_parameter", 0});
}

void field_reader::fault(const std::string& field, const std::string& what) {
  fault(bad_field(field, what).value());
}

void field_reader::fault(api_error x) {
  if (!fault_)
    fault_ = std::move(x);
}

void field_reader::refuse_others() {
  std::string names, first;
  for (const auto& [name, value] : object_.items()) {
    if (seen_.contains(name) || value.is_null())
      continue;
    if (first.empty())
      first = name_of(name);
    names += (names.empty() ? "'" : ", '") + name_of(name) + "'";
  }
  if (!first.empty())
    fault({400, "not supported: " + names, first, "unsupported_parameter", 0});
}

api_result<json> parse_object(const std::string& body) {
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > depth_max;
    return depth <= depth_max;
  };
  json object = json::parse(body, watch, false);
  if (too_deep)
    return tl::unexpected(api_error{
        400, "the body is nested more than " + std::to_string(depth_max) + " deep", "", "", 0});
  if (object.is_discarded())
    return tl::unexpected(
        api_error{400, "the body is not valid JSON (or not valid UTF-8)", "", "", 0});
  if (!object.is_object())
    return tl::unexpected(api_error{400, "the body must be a JSON object", "", "", 0});
  return object;
}

api_result<nlohmann::ordered_json> parse_ordered(const json& parsed, std::string_view body) {
  if (!members_fit(parsed))
    return tl::unexpected(api_error{400,
                                    "the body holds an object of more than " +
                                        std::to_string(limits::json_members_max) + " members",
                                    "", "", 0});
  return nlohmann::ordered_json::parse(body);
}

} // namespace tokenrouter
