#include "runtime/text/jinja/text_methods.hpp"

#include <algorithm>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/printing.hpp"

namespace tokenrouter::jinja {

namespace {

enum class side : std::uint8_t { left, right, both };

value strip(interpreter& by, const value& self, call_args& given, side which,
            std::string_view name) {
  const bound_args args(given, name, {"chars"});
  const std::string* chars = args.text(0);
  by.work().spend_text(self.str().size() * (1 + (chars ? chars->size() : 0)));
  std::string_view out = self.str();
  if (which != side::right)
    out = strip_left(out, chars);
  if (which != side::left)
    out = strip_right(out, chars);
  return out;
}

value text_strip(interpreter& by, const value& self, call_args& args) {
  return strip(by, self, args, side::both, "strip");
}

value text_lstrip(interpreter& by, const value& self, call_args& args) {
  return strip(by, self, args, side::left, "lstrip");
}

value text_rstrip(interpreter& by, const value& self, call_args& args) {
  return strip(by, self, args, side::right, "rstrip");
}

value texts(const std::vector<std::string_view>& parts, budget& work,
            sequence_form form = sequence_form::list) {
  std::vector<value> out;
  out.reserve(parts.size());
  for (const auto part : parts) {
    work.spend_text(part.size());
    out.emplace_back(part);
  }
  return make_sequence(std::move(out), form);
}

value split(interpreter& by, const value& self, call_args& given, bool from_right) {
  const bound_args args(given, from_right ? "rsplit" : "split", {"sep", "maxsplit"});
  const std::string* sep = args.text(0);
  const auto max = static_cast<std::ptrdiff_t>(args.integer(1, -1));
  if (sep && sep->empty())
    raise("empty separator");
  by.work().spend(self.str().size() / 4 + 1);
  return texts(sep ? split_by(self.str(), *sep, max, from_right)
                   : split_white(self.str(), max, from_right),
               by.work());
}

value text_split(interpreter& by, const value& self, call_args& args) {
  return split(by, self, args, false);
}

value text_rsplit(interpreter& by, const value& self, call_args& args) {
  return split(by, self, args, true);
}

value text_splitlines(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "splitlines", {"keepends"});
  by.work().spend(self.str().size() / 4 + 1);
  return texts(split_lines(self.str(), args.truth(0, false)), by.work());
}

value partition(interpreter& by, const value& self, call_args& given, bool from_right) {
  const bound_args args(given, from_right ? "rpartition" : "partition", {"sep"}, 1);
  const std::string* sep = args.text(0);
  if (!sep || sep->empty())
    raise("empty separator");
  const std::string_view s = self.str();
  const std::size_t at = from_right ? s.rfind(*sep) : s.find(*sep);
  if (at == std::string_view::npos)
    return from_right ? texts({"", "", s}, by.work(), sequence_form::tuple)
                      : texts({s, "", ""}, by.work(), sequence_form::tuple);
  return texts({s.substr(0, at), *sep, s.substr(at + sep->size())}, by.work(),
               sequence_form::tuple);
}

value text_partition(interpreter& by, const value& self, call_args& args) {
  return partition(by, self, args, false);
}

value text_rpartition(interpreter& by, const value& self, call_args& args) {
  return partition(by, self, args, true);
}

/// The part of a text between two character indices that a search is bound to, and where it begins.
struct window {
  std::string_view inside;
  std::size_t first = 0;
  bool is_within = true; ///< false: it begins past the text's end, where not even "" is found
};

window window_of(const value& self, const bound_args& args) {
  const std::string_view s = self.str();
  const auto count = static_cast<std::int64_t>(character_count(s));
  const auto clamp = [&](std::int64_t i) {
    return i < 0 ? std::max<std::int64_t>(i + count, 0) : std::min(i, count);
  };
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    return args.at(i) && args.at(i)->is_none() ? otherwise : args.integer(i, otherwise);
  };
  const std::int64_t start = bound(1, 0);
  const std::int64_t first = clamp(start);
  const std::int64_t last = clamp(bound(2, count));
  const std::size_t from = byte_offset(s, static_cast<std::size_t>(first));
  const std::size_t to = byte_offset(s, static_cast<std::size_t>(std::max(first, last)));
  return {s.substr(from, to - from), static_cast<std::size_t>(first),
          start <= count && first <= last};
}

value has_affix(interpreter& by, const value& self, call_args& given, bool front) {
  const bound_args args(given, front ? "startswith" : "endswith", {"affix", "start", "end"}, 1);
  const window part = window_of(self, args);
  const auto matches = [&](const value& affix) {
    if (!affix.is_text())
      raise(std::string(front ? "startswith" : "endswith") + " needs a text or a tuple of texts");
    by.work().spend_text(affix.str().size());
    return part.is_within &&
           (front ? part.inside.starts_with(affix.str()) : part.inside.ends_with(affix.str()));
  };
  const auto* several = args.at(0)->seq();
  if (several && several->form == sequence_form::tuple)
    return std::ranges::any_of(several->items, matches);
  return matches(*args.at(0));
}

value text_startswith(interpreter& by, const value& self, call_args& args) {
  return has_affix(by, self, args, true);
}

value text_endswith(interpreter& by, const value& self, call_args& args) {
  return has_affix(by, self, args, false);
}

value search(interpreter& by, const value& self, call_args& given, bool from_right, bool fails,
             std::string_view name) {
  const bound_args args(given, name, {"sub", "start", "end"}, 1);
  const std::string* sub = args.text(0);
  if (!sub)
    raise(std::string(name) + " needs a text");
  by.work().spend_text(self.str().size());
  const window part = window_of(self, args);
  const std::size_t at = from_right ? part.inside.rfind(*sub) : part.inside.find(*sub);
  if (at != std::string_view::npos && part.is_within)
    return static_cast<std::int64_t>(part.first + character_count(part.inside.substr(0, at)));
  if (fails)
    raise("substring not found");
  return std::int64_t{-1};
}

value text_find(interpreter& by, const value& self, call_args& args) {
  return search(by, self, args, false, false, "find");
}

value text_rfind(interpreter& by, const value& self, call_args& args) {
  return search(by, self, args, true, false, "rfind");
}

value text_index(interpreter& by, const value& self, call_args& args) {
  return search(by, self, args, false, true, "index");
}

value text_rindex(interpreter& by, const value& self, call_args& args) {
  return search(by, self, args, true, true, "rindex");
}

value text_count(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "count", {"sub", "start", "end"}, 1);
  const std::string* sub = args.text(0);
  if (!sub)
    raise("count needs a text");
  by.work().spend_text(self.str().size());
  const window part = window_of(self, args);
  if (!part.is_within)
    return std::int64_t{0};
  if (sub->empty())
    return static_cast<std::int64_t>(character_count(part.inside) + 1);
  return static_cast<std::int64_t>(split_by(part.inside, *sub, -1, false).size() - 1);
}

value text_replace(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "replace", {"old", "new", "count"}, 2);
  const std::string *old = args.text(0), *with = args.text(1);
  if (!old || !with)
    raise("replace needs two texts");
  return replaced(self.str(), *old, *with, args.integer(2, -1), by.work());
}

value text_upper(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "upper", {});
  by.work().spend(self.str().size() / 4 + 1);
  return to_upper(self.str());
}

value text_lower(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "lower", {});
  by.work().spend(self.str().size() / 4 + 1);
  return to_lower(self.str());
}

value text_title(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "title", {});
  by.work().spend(self.str().size() / 4 + 1);
  return title_case(self.str());
}

value text_capitalize(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "capitalize", {});
  by.work().spend(self.str().size() / 4 + 1);
  return capitalize(self.str());
}

value text_join(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "join", {"iterable"}, 1);
  text_builder out(by.work());
  bool first = true;
  for (const value& item : iterate(*args.at(0), by.work())) {
    if (!item.is_text())
      raise("join needs texts, not '" + std::string(type_name(item)) + "'");
    if (!first)
      out.append(self.str());
    first = false;
    out.append(item.str());
  }
  return out.take();
}

value text_format(interpreter& by, const value& self, call_args& args) {
  return brace_format(self.str(), args, by.work());
}

value text_removeprefix(interpreter&, const value& self, call_args& given) {
  const bound_args args(given, "removeprefix", {"prefix"}, 1);
  const std::string* prefix = args.text(0);
  std::string_view s = self.str();
  if (prefix && s.starts_with(*prefix))
    s.remove_prefix(prefix->size());
  return s;
}

value text_removesuffix(interpreter&, const value& self, call_args& given) {
  const bound_args args(given, "removesuffix", {"suffix"}, 1);
  const std::string* suffix = args.text(0);
  std::string_view s = self.str();
  if (suffix && s.ends_with(*suffix))
    s.remove_suffix(suffix->size());
  return s;
}

value text_zfill(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "zfill", {"width"}, 1);
  const std::string& s = self.str();
  const std::int64_t pad = args.integer(0, 0) - static_cast<std::int64_t>(character_count(s));
  text_builder out(by.work());
  const bool is_signed = s.starts_with('-') || s.starts_with('+');
  out.append(s.substr(0, is_signed ? 1 : 0));
  out.append(static_cast<std::size_t>(std::max<std::int64_t>(pad, 0)), '0');
  out.append(s.substr(is_signed ? 1 : 0));
  return out.take();
}

template <bool (*is_one)(std::string_view)>
value all_are(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "the method", {});
  by.work().spend(self.str().size());
  return !self.str().empty() && std::ranges::all_of(characters(self.str()), is_one);
}

bool is_alnum(std::string_view character) {
  return is_alpha(character) || is_digit(character);
}

value text_isupper(interpreter& by, const value& self, call_args&) {
  by.work().spend(self.str().size());
  return is_cased_as(self.str(), true);
}

value text_islower(interpreter& by, const value& self, call_args&) {
  by.work().spend(self.str().size());
  return is_cased_as(self.str(), false);
}

constexpr method methods[] = {
    {"strip", text_strip},
    {"lstrip", text_lstrip},
    {"rstrip", text_rstrip},
    {"split", text_split},
    {"rsplit", text_rsplit},
    {"splitlines", text_splitlines},
    {"partition", text_partition},
    {"rpartition", text_rpartition},
    {"startswith", text_startswith},
    {"endswith", text_endswith},
    {"find", text_find},
    {"rfind", text_rfind},
    {"index", text_index},
    {"rindex", text_rindex},
    {"count", text_count},
    {"replace", text_replace},
    {"upper", text_upper},
    {"lower", text_lower},
    {"title", text_title},
    {"capitalize", text_capitalize},
    {"join", text_join},
    {"format", text_format},
    {"removeprefix", text_removeprefix},
    {"removesuffix", text_removesuffix},
    {"zfill", text_zfill},
    {"isalpha", all_are<is_alpha>},
    {"isdigit", all_are<is_digit>},
    {"isalnum", all_are<is_alnum>},
    {"isspace", all_are<is_white>},
    {"isupper", text_isupper},
    {"islower", text_islower},
};

} // namespace

std::span<const method> text_methods() {
  return methods;
}

} // namespace tokenrouter::jinja
