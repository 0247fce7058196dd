#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/printing.hpp"

namespace tokenrouter::jinja {

namespace {

constexpr std::size_t width_max = 10'000;

std::size_t take_number(std::string_view& rest) {
  std::size_t number = 0;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    number = number * 10 + static_cast<std::size_t>(rest.front() - '0');
    rest.remove_prefix(1);
    if (number > width_max)
      raise("a width or precision in a format is too large", errc::capacity);
  }
  return number;
}

/// One conversion of a % format.
struct conversion {
  std::string flags;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char kind = 's';
};

conversion take_conversion(std::string_view& rest) {
  conversion out;
  while (!rest.empty() && std::string_view("-+ 0#").find(rest.front()) != std::string_view::npos) {
    out.flags += rest.front();
    rest.remove_prefix(1);
  }
  out.width = take_number(rest);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    out.precision = take_number(rest);
  }
  if (rest.empty())
    raise("incomplete format");
  out.kind = rest.front();
  rest.remove_prefix(1);
  return out;
}

void append_padded(text_builder& out, const conversion& how, std::string_view body) {
  const std::size_t have = character_count(body);
  const std::size_t pad = have < how.width ? how.width - have : 0;
  const bool left = how.flags.find('-') != std::string::npos;
  if (!left)
    out.append(pad, ' ');
  out.append(body);
  if (left)
    out.append(pad, ' ');
}

/// A number by way of printf, whose conversions Python's are modelled on.
template <class Number>
void append_number(text_builder& out, const conversion& how, const char* length, char kind,
                   Number number) {
  std::string form = "%" + how.flags;
  if (how.width > 0)
    form += std::to_string(how.width);
  if (how.precision)
    form += "." + std::to_string(*how.precision);
  form += length;
  form += kind;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int bytes = std::snprintf(nullptr, 0, form.c_str(), number);
  std::string body(static_cast<std::size_t>(bytes) + 1, '\0');
  std::snprintf(body.data(), body.size(), form.c_str(), number);
#pragma GCC diagnostic pop
  body.pop_back();
  out.append(body);
}

void append_integer(text_builder& out, const conversion& how, const value& v) {
  const auto whole = v.integer();
  const auto real = v.number();
  const bool takes_real = how.kind == 'd' || how.kind == 'i';
  if (!whole && !(real && takes_real))
    raise(std::string("%") + how.kind + " format: a number is required, not " +
          std::string(type_name(v)));
  if (!whole && !(std::abs(*real) < 9.2e18))
    raise("a number in a format is beyond 64 bits");
  const std::int64_t number = whole ? *whole : static_cast<std::int64_t>(*real);
  if (how.kind == 'd' || how.kind == 'i')
    return append_number(out, how, "l", 'd', static_cast<long>(number));
  if (number < 0 || how.flags.find('#') != std::string::npos)
    raise(std::string("%") + how.kind + " of this number is not supported");
  append_number(out, how, "l", how.kind, static_cast<unsigned long>(number));
}

void append_conversion(text_builder& out, const conversion& how, const value& v) {
  switch (how.kind) {
  case 's':
  case 'r': {
    text_builder body(out.work());
    how.kind == 's' ? append_str(body, v) : append_repr(body, v);
    std::string_view shown = body.text();
    if (how.precision)
      shown = shown.substr(0, byte_offset(shown, *how.precision));
    return append_padded(out, how, shown);
  }
  case 'd':
  case 'i':
  case 'x':
  case 'X':
  case 'o':
    return append_integer(out, how, v);
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G': {
    const auto number = v.number();
    if (!number)
      raise("a format needs a number, not " + std::string(type_name(v)));
    return append_number(out, how, "", how.kind, *number);
  }
  default:
    raise(std::string("the format %") + how.kind + " is not supported");
  }
}

} // namespace

std::string percent_format(std::string_view form, const value& values, budget& work) {
  text_builder out(work);
  const auto* list = values.seq();
  const bool tuple = list && list->form == sequence_form::tuple;
  std::size_t used = 0;
  const auto next = [&]() -> const value& {
    const std::size_t have = tuple ? list->items.size() : 1;
    if (used >= have)
      raise("not enough arguments for format string");
    ++used;
    return tuple ? list->items[used - 1] : values;
  };
  while (!form.empty()) {
    const std::size_t at = form.find('%');
    out.append(form.substr(0, at));
    if (at == std::string_view::npos)
      break;
    form.remove_prefix(at + 1);
    if (form.starts_with('%')) {
      out.append("%");
      form.remove_prefix(1);
      continue;
    }
    value by_name;
    const value* given = nullptr;
    if (form.starts_with('(')) {
      const std::size_t close = form.find(')');
      if (close == std::string_view::npos || !values.map())
        raise("format requires a mapping");
      by_name = value(form.substr(1, close - 1));
      given = find(*values.map(), by_name, work);
      if (!given)
        raise("the format's key '" + by_name.str() + "' is missing");
      form.remove_prefix(close + 1);
    }
    const conversion how = take_conversion(form);
    append_conversion(out, how, given ? *given : next());
  }
  const bool all_used = tuple ? used == list->items.size() : used == 1 || values.map() || list;
  if (!all_used)
    raise("not all arguments converted during string formatting");
  return out.take();
}

std::string brace_format(std::string_view form, const call_args& args, budget& work) {
  text_builder out(work);
  std::size_t automatic = 0;
  while (!form.empty()) {
    const std::size_t at = form.find_first_of("{}");
    out.append(form.substr(0, at));
    if (at == std::string_view::npos)
      break;
    const char c = form[at];
    form.remove_prefix(at + 1);
    if (form.starts_with(c)) {
      out.append(std::string_view(&c, 1));
      form.remove_prefix(1);
      continue;
    }
    const std::size_t close = form.find('}');
    if (c == '}' || close == std::string_view::npos)
      raise("a single '{' or '}' in a format string");
    std::string_view field = form.substr(0, close);
    form.remove_prefix(close + 1);
    const bool as_repr = field.ends_with("!r");
    if (as_repr || field.ends_with("!s"))
      field.remove_suffix(2);
    if (field.find_first_of(":.[!{") != std::string_view::npos)
      raise("the format field '" + std::string(field) + "' is not supported");
    const value* given = nullptr;
    std::string_view digits = field;
    const std::size_t index = field.empty() ? automatic++ : take_number(digits);
    if (digits.empty()) {
      given = index < args.positional.size() ? &args.positional[index] : nullptr;
    } else {
      for (const auto& [name, v] : args.keywords)
        given = name == field ? &v : given;
    }
    if (!given)
      raise("the format field '" + std::string(field) + "' has no value");
    as_repr ? append_repr(out, *given) : append_str(out, *given);
  }
  return out.take();
}

} // namespace tokenrouter::jinja
