#include <algorithm>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/filters.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/operators.hpp"
#include "runtime/text/jinja/printing.hpp"

namespace tokenrouter::jinja {

namespace {

value trim(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "trim", {"chars"});
  const std::string s = to_str(v, by.work());
  const std::string* chars = args.text(0);
  by.work().spend_text(s.size() * (1 + (chars ? chars->size() : 0)));
  return strip_left(strip_right(s, chars), chars);
}

template <std::string (*change)(std::string_view)>
value changed(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "this filter", {});
  const std::string s = to_str(v, by.work());
  by.work().spend(s.size() / 4 + 1);
  return change(s);
}

/// Jinja's own: a word begins behind blanks, dashes and opening brackets.
std::string title_words(std::string_view s) {
  std::string out;
  std::string_view rest = s;
  const auto splits = [](std::string_view one) {
    return is_white(one) || one == "-" || one == "(" || one == "{" || one == "[" || one == "<";
  };
  while (!rest.empty()) {
    std::size_t bytes = 0;
    const bool gap = splits(rest.substr(0, byte_offset(rest, 1)));
    while (bytes < rest.size()) {
      const std::size_t one = byte_offset(rest.substr(bytes), 1);
      if (splits(rest.substr(bytes, one)) != gap)
        break;
      bytes += one;
    }
    const std::string_view part = rest.substr(0, bytes);
    const std::size_t first = byte_offset(part, 1);
    out += to_upper(part.substr(0, first)) + to_lower(part.substr(first));
    rest.remove_prefix(bytes);
  }
  return out;
}

value replace(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "replace", {"old", "new", "count"}, 2);
  const bool all = !args.at(2) || args.at(2)->is_none();
  return replaced(to_str(v, by.work()), to_str(*args.at(0), by.work()),
                  to_str(*args.at(1), by.work()), all ? -1 : args.integer(2, -1), by.work());
}

value tojson(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  json_style style;
  style.ascii = args.truth(0, false);
  style.sort_keys = args.truth(3, false);
  if (const value* indent = args.at(1); indent && !indent->is_none()) {
    style.has_indent = true;
    style.item_separator = ",";
    if (indent->is_text())
      style.indent = indent->str();
    else
      style.indent.assign(
          static_cast<std::size_t>(std::clamp<std::int64_t>(args.integer(1, 0), 0, 1000)), ' ');
  }
  if (const value* separators = args.at(2); separators && !separators->is_none()) {
    const auto* pair = separators->seq();
    if (!pair || pair->items.size() != 2 || !pair->items[0].is_text() || !pair->items[1].is_text())
      raise("tojson needs two texts as separators");
    style.item_separator = pair->items[0].str();
    style.key_separator = pair->items[1].str();
  }
  text_builder out(by.work());
  append_json(out, v, style);
  return out.take();
}

value indent(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "indent", {"width", "first", "blank"});
  std::string by_what(4, ' ');
  if (args.at(0) && args.at(0)->is_text()) {
    by_what = args.at(0)->str();
  } else {
    const std::int64_t width = args.integer(0, 4);
    if (width > 10'000)
      raise("indent: the width is too large", errc::capacity);
    by_what.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  if (v.is_undefined())
    raise(*v.get<undefined>()->why);
  if (!v.is_text())
    raise("indent needs a text, not '" + std::string(type_name(v)) + "'");
  const std::string s = v.str() + "\n";
  const bool blank = args.truth(2, false);
  text_builder out(by.work());
  if (args.truth(1, false))
    out.append(by_what);
  bool first = true;
  for (const std::string_view line : split_lines(s)) {
    if (!first)
      out.append("\n");
    if (!first && (blank || !line.empty()))
      out.append(by_what);
    first = false;
    out.append(line);
  }
  return out.take();
}

value format(interpreter& by, const value& v, call_args& given) {
  if (!given.positional.empty() && !given.keywords.empty())
    raise("format can't take positional and keyword arguments at the same time");
  std::vector<std::pair<value, value>> named;
  for (auto& [name, held] : given.keywords)
    named.emplace_back(value(name), held);
  const value values = named.empty() ? make_sequence(given.positional, sequence_form::tuple)
                                     : make_mapping(std::move(named));
  return percent_format(to_str(v, by.work()), values, by.work());
}

value truncate(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "truncate", {"length", "killwords", "end", "leeway"});
  const std::string end = args.text(2) ? *args.text(2) : "...";
  const std::int64_t length = args.integer(0, 255);
  const std::int64_t kept = length - static_cast<std::int64_t>(character_count(end));
  const std::int64_t leeway = args.integer(3, 5);
  if (kept < 0 || leeway < 0)
    raise("truncate: the length is too small");
  if (length_of(v, by.work()) <= length + leeway)
    return v;
  if (!v.is_text())
    raise("truncate needs a text, not '" + std::string(type_name(v)) + "'");
  const std::string& s = v.str();
  std::string_view head(s.data(), byte_offset(s, static_cast<std::size_t>(kept)));
  if (!args.truth(1, false))
    head = split_by(head, " ", 1, true).front();
  return std::string(head) + end;
}

value escape(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "escape", {});
  if (v.is_text() && v.get<text>()->safe)
    return v;
  const std::string s = to_str(v, by.work());
  by.work().spend_text(6 * s.size());
  return make_safe(escape_html(s));
}

value safe(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "safe", {});
  return make_safe(to_str(v, by.work()));
}

value string(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "string", {});
  return v.is_text() ? v : value(to_str(v, by.work()));
}

constexpr named_filter filters[] = {
    {"trim", trim},
    {"upper", changed<to_upper>},
    {"lower", changed<to_lower>},
    {"capitalize", changed<capitalize>},
    {"title", changed<title_words>},
    {"replace", replace},
    {"tojson", tojson},
    {"indent", indent},
    {"format", format},
    {"truncate", truncate},
    {"escape", escape},
    {"e", escape},
    {"safe", safe},
    {"string", string},
};

} // namespace

std::span<const named_filter> text_filters() {
  return filters;
}

} // namespace tokenrouter::jinja
