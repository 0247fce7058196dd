#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/printing.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter::jinja {

namespace {

void append_code_unit(text_builder& out, std::uint32_t unit) {
  char spelt[16];
  std::snprintf(spelt, sizeof spelt, "\\u%04x", unit);
  out.append(spelt);
}

void append_ascii(text_builder& out, std::string_view character) {
  if (utf8::front_unit(character).kind != utf8::unit_kind::character)
    return append_code_unit(out, 0xFFFD);
  const auto code = static_cast<std::uint32_t>(utf8::front_code_point(character));
  if (code < 0x10000)
    return append_code_unit(out, code);
  append_code_unit(out, 0xD800 + ((code - 0x10000) >> 10));
  append_code_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

void append_json_text(text_builder& out, std::string_view s, bool ascii) {
  out.append("\"");
  for (std::size_t at = 0; at < s.size();) {
    const char c = s[at];
    const auto byte = static_cast<unsigned char>(c);
    constexpr std::string_view plain = "\"\\\n\r\t\b\f";
    constexpr std::string_view names = "\"\\nrtbf";
    if (const std::size_t found = plain.find(c); found != std::string_view::npos) {
      out.append("\\");
      out.append(names.substr(found, 1));
    } else if (byte < 0x20) {
      append_code_unit(out, byte);
    } else if (byte >= 0x7F && ascii) {
      const auto unit = utf8::front_unit(s.substr(at));
      append_ascii(out, s.substr(at, unit.bytes));
      at += unit.bytes - 1;
    } else {
      out.append(s.substr(at, 1));
    }
    ++at;
  }
  out.append("\"");
}

std::string json_number(double d) {
  if (std::isnan(d))
    return "NaN";
  if (std::isinf(d))
    return d < 0 ? "-Infinity" : "Infinity";
  return float_repr(d);
}

std::string key_text(const value& key) {
  if (key.is_text())
    return key.str();
  if (key.is_none())
    return "null";
  if (const bool* b = key.get<bool>())
    return *b ? "true" : "false";
  if (const auto* i = key.get<std::int64_t>())
    return std::to_string(*i);
  if (const double* d = key.get<double>())
    return json_number(*d);
  raise("tojson: a key of type " + std::string(type_name(key)) + " is not JSON");
}

class json_writer {
 public:
  json_writer(text_builder& out, const json_style& style) : out_(out), style_(style) {}

  void write(const value& v) {
    out_.work().spend(1);
    if (v.is_text()) {
      append_json_text(out_, v.str(), style_.ascii);
    } else if (v.is_none()) {
      out_.append("null");
    } else if (const bool* b = v.get<bool>()) {
      out_.append(*b ? "true" : "false");
    } else if (const auto* i = v.get<std::int64_t>()) {
      out_.append(std::to_string(*i));
    } else if (const double* d = v.get<double>()) {
      out_.append(json_number(*d));
    } else if (const auto* list = v.seq();
               list && (list->form == sequence_form::list || list->form == sequence_form::tuple)) {
      write_items(*list);
    } else if (const auto* map = v.map()) {
      write_entries(*map);
    } else {
      raise("tojson: an object of type " + std::string(type_name(v)) + " is not JSON" +
            (v.is_undefined() ? " (" + *v.get<undefined>()->why + ")" : ""));
    }
  }

 private:
  void line_break() {
    if (!style_.has_indent)
      return;
    out_.append("\n");
    for (std::uint32_t i = 0; i < level_; ++i)
      out_.append(style_.indent);
  }

  void write_items(const sequence& list) {
    if (list.items.empty())
      return out_.append("[]");
    out_.append("[");
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0)
        out_.append(style_.item_separator);
      line_break();
      write(list.items[i]);
    }
    --level_;
    line_break();
    out_.append("]");
  }

  void write_entries(const mapping& map) {
    if (map.entries.empty())
      return out_.append("{}");
    std::vector<const std::pair<value, value>*> order;
    for (const auto& entry : map.entries)
      order.push_back(&entry);
    if (style_.sort_keys)
      std::ranges::stable_sort(order, [&](const auto* a, const auto* b) {
        return less(a->first, b->first, out_.work());
      });
    out_.append("{");
    ++level_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0)
        out_.append(style_.item_separator);
      line_break();
      append_json_text(out_, key_text(order[i]->first), style_.ascii);
      out_.append(style_.key_separator);
      write(order[i]->second);
    }
    --level_;
    line_break();
    out_.append("}");
  }

  text_builder& out_;
  const json_style& style_;
  std::uint32_t level_ = 0;
};

} // namespace

void append_json(text_builder& out, const value& v, const json_style& style) {
  json_writer(out, style).write(v);
}

} // namespace tokenrouter::jinja
