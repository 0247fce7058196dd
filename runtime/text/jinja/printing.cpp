#include "runtime/text/jinja/printing.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter::jinja {

namespace {

void append_escaped(text_builder& out, std::string_view character, char quote) {
  const auto byte = static_cast<unsigned char>(character.front());
  if (character.size() == 1 && (character.front() == quote || character.front() == '\\')) {
    out.append("\\");
    out.append(character);
  } else if (character == "\n") {
    out.append("\\n");
  } else if (character == "\r") {
    out.append("\\r");
  } else if (character == "\t") {
    out.append("\\t");
  } else if (is_printable(character)) {
    out.append(character);
  } else {
    const bool valid = utf8::front_unit(character).kind == utf8::unit_kind::character;
    const auto code = valid ? static_cast<std::uint32_t>(utf8::front_code_point(character)) : byte;
    char spelt[16];
    const char* form = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
    std::snprintf(spelt, sizeof spelt, form, code);
    out.append(spelt);
  }
}

void append_text_repr(text_builder& out, const std::string& s) {
  const bool has_single = s.find('\'') != std::string::npos;
  const char quote = has_single && s.find('"') == std::string::npos ? '"' : '\'';
  out.append(std::string_view(&quote, 1));
  for (const auto one : characters(s))
    append_escaped(out, one, quote);
  out.append(std::string_view(&quote, 1));
}

void append_sequence_repr(text_builder& out, const sequence& list) {
  if (list.form == sequence_form::view || list.form == sequence_form::iterator ||
      list.form == sequence_form::range)
    raise("this " +
          std::string(list.form == sequence_form::range  ? "range"
                      : list.form == sequence_form::view ? "view of a mapping"
                                                         : "iterator") +
          " can't be written as text; put it through the filter 'list' first");
  const bool tuple = list.form == sequence_form::tuple;
  out.append(tuple ? "(" : "[");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0)
      out.append(", ");
    append_repr(out, list.items[i]);
  }
  if (tuple && list.items.size() == 1)
    out.append(",");
  out.append(tuple ? ")" : "]");
}

void append_mapping_repr(text_builder& out, const mapping& map) {
  out.append("{");
  for (std::size_t i = 0; i < map.entries.size(); ++i) {
    if (i > 0)
      out.append(", ");
    append_repr(out, map.entries[i].first);
    out.append(": ");
    append_repr(out, map.entries[i].second);
  }
  out.append("}");
}

} // namespace

void text_builder::append(std::size_t count, char c) {
  work_.spend_text(count);
  out_.append(count, c);
}

std::string float_repr(double d) {
  if (std::isnan(d))
    return "nan";
  if (std::isinf(d))
    return d < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  const std::string_view spelt(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t e = spelt.find('e');
  int exponent = 0;
  const char* digits_of = spelt.data() + e + (spelt[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of, spelt.data() + spelt.size(), exponent);
  if (exponent < -4 || exponent >= 16)
    return std::string(spelt);
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos)
    out += ".0";
  return out;
}

void append_repr(text_builder& out, const value& v) {
  out.work().spend(1);
  if (v.is_text()) {
    const bool safe = v.get<text>()->safe;
    out.append(safe ? "Markup(" : "");
    append_text_repr(out, v.str());
    out.append(safe ? ")" : "");
  } else if (v.is_undefined())
    out.append("Undefined");
  else if (v.is_none())
    out.append("None");
  else if (const bool* b = v.get<bool>())
    out.append(*b ? "True" : "False");
  else if (const auto* i = v.get<std::int64_t>())
    out.append(std::to_string(*i));
  else if (const double* d = v.get<double>())
    out.append(float_repr(*d));
  else if (const auto* list = v.seq())
    append_sequence_repr(out, *list);
  else if (const auto* map = v.map())
    append_mapping_repr(out, *map);
  else
    raise("a " + std::string(type_name(v)) + " can't be written as text");
}

void append_str(text_builder& out, const value& v) {
  if (v.is_text())
    out.append(v.str());
  else if (!v.is_undefined())
    append_repr(out, v);
}

std::string to_str(const value& v, budget& work) {
  text_builder out(work);
  append_str(out, v);
  return out.take();
}

std::string replaced(std::string_view s, std::string_view old, std::string_view with,
                     std::int64_t count, budget& work) {
  text_builder out(work);
  work.spend_text(s.size());
  const auto left = [&] { return count < 0 || count-- > 0; };
  while (old.empty() ? left() : true) {
    if (old.empty()) {
      out.append(with);
      if (s.empty())
        return out.take();
      const std::size_t bytes = byte_offset(s, 1);
      out.append(s.substr(0, bytes));
      s.remove_prefix(bytes);
      continue;
    }
    const std::size_t at = s.find(old);
    if (at == std::string_view::npos || !left())
      break;
    out.append(s.substr(0, at));
    out.append(with);
    s.remove_prefix(at + old.size());
  }
  out.append(s);
  return out.take();
}

} // namespace tokenrouter::jinja
