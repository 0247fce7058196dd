#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/filters.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/operators.hpp"

namespace tokenrouter::jinja {

namespace {

/// Digits with single underscores between them, as Python reads numbers; empty if it is not so.
std::string without_underscores(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool between = i > 0 && i + 1 < digits.size() && digits[i - 1] != '_';
    if (digits[i] == '_' && !between)
      return {};
    if (digits[i] != '_')
      out += digits[i];
  }
  return out;
}

std::optional<std::int64_t> parse_integer(std::string_view s, int base) {
  s = strip_left(strip_right(s));
  const bool negative = s.starts_with('-');
  if (negative || s.starts_with('+'))
    s.remove_prefix(1);
  const std::string digits = without_underscores(s);
  std::int64_t out = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, ec] = std::from_chars(digits.data(), end, out, base);
  if (ec == std::errc::result_out_of_range)
    raise("a whole number beyond 64 bits");
  if (digits.empty() || digits[0] == '-' || ec != std::errc{} || at != end)
    return std::nullopt;
  return negative ? -out : out;
}

std::optional<double> parse_float(std::string_view s) {
  s = strip_left(strip_right(s));
  const bool negative = s.starts_with('-');
  if (negative || s.starts_with('+'))
    s.remove_prefix(1);
  const std::string digits = without_underscores(s);
  const bool begins_well = !digits.empty() && digits[0] != '-' && digits[0] != '+';
  double out = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, ec] = std::from_chars(digits.data(), end, out);
  if (!begins_well || ec == std::errc::invalid_argument || at != end)
    return std::nullopt;
  if (ec == std::errc::result_out_of_range)
    out = digits.find("e-") != std::string::npos ? 0.0 : std::numeric_limits<double>::infinity();
  return negative ? -out : out;
}

std::optional<std::int64_t> truncated(std::optional<double> d) {
  if (!d || std::isnan(*d) || std::isinf(*d))
    return std::nullopt;
  if (std::abs(*d) >= 9.2e18)
    raise("a whole number beyond 64 bits");
  return static_cast<std::int64_t>(*d);
}

value to_int(interpreter&, const value& v, call_args& given) {
  const bound_args args(given, "int", {"default", "base"});
  const value otherwise = args.at(0) ? *args.at(0) : value(std::int64_t{0});
  if (const auto* u = v.get<undefined>())
    raise(*u->why);
  if (v.integer())
    return *v.integer();
  const std::int64_t base = args.integer(1, 10);
  if (base < 2 || base > 36)
    raise("int: this base is not supported");
  std::optional<std::int64_t> out;
  if (v.is_text())
    out = parse_integer(v.str(), static_cast<int>(base));
  if (!out)
    out = truncated(v.is_text() ? parse_float(v.str()) : v.number());
  return out ? value(*out) : otherwise;
}

value to_float(interpreter&, const value& v, call_args& given) {
  const bound_args args(given, "float", {"default"});
  if (const auto* u = v.get<undefined>())
    raise(*u->why);
  const auto out = v.is_text() ? parse_float(v.str()) : v.number();
  return out ? value(*out) : args.at(0) ? *args.at(0) : value(0.0);
}

value absolute(interpreter&, const value& v, call_args& given) {
  const bound_args args(given, "abs", {});
  if (v.integer())
    return *v.integer() < 0 ? negated(v) : value(*v.integer());
  if (v.number())
    return std::abs(*v.number());
  if (const auto* u = v.get<undefined>())
    raise(*u->why);
  raise("abs needs a number, not '" + std::string(type_name(v)) + "'");
}

/// round() half to even on the decimal that is exactly the float, as Python's.
double rounded(double d, std::int64_t digits) {
  if (!std::isfinite(d) || digits > 300)
    return d;
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(std::min<std::int64_t>(-digits, 308)));
    return std::nearbyint(d / scale) * scale;
  }
  char buffer[700];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed,
                                 static_cast<int>(digits));
  double out = d;
  if (end.ec == std::errc{})
    std::from_chars(buffer, end.ptr, out);
  return out;
}

value round(interpreter&, const value& v, call_args& given) {
  const bound_args args(given, "round", {"precision", "method"});
  const std::int64_t digits = args.integer(0, 0);
  const std::string method = args.text(1) ? *args.text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    raise("round: the method must be common, ceil or floor");
  if (const auto* u = v.get<undefined>())
    raise(*u->why);
  if (!v.number())
    raise("round needs a number, not '" + std::string(type_name(v)) + "'");
  if (method == "common") {
    if (!v.integer())
      return rounded(*v.number(), digits);
    if (digits < 0)
      raise("round of a whole number to tens is not supported");
    return *v.integer();
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *v.number() * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

value sum(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "sum", {"attribute", "start"});
  const attribute_path path(args.at(0));
  value total = args.at(1) ? *args.at(1) : value(std::int64_t{0});
  if (total.is_text())
    raise("sum can't sum texts");
  for (const value& item : iterate(v, by.work()))
    total = arithmetic(operation::add, total, path.of(by, item), by.work());
  return total;
}

constexpr named_filter filters[] = {
    {"int", to_int}, {"float", to_float}, {"abs", absolute}, {"round", round}, {"sum", sum},
};

} // namespace

std::span<const named_filter> number_filters() {
  return filters;
}

} // namespace tokenrouter::jinja
