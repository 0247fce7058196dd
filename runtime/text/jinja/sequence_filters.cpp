#include <algorithm>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/filters.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/operators.hpp"

namespace tokenrouter::jinja {

namespace {

value length(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "length", {});
  if (const auto* loop = v.get<std::shared_ptr<loop_state>>())
    return static_cast<std::int64_t>((*loop)->items.size());
  return length_of(v, by.work());
}

value default_of(interpreter&, const value& v, call_args& given) {
  const bound_args args(given, "default", {"default_value", "boolean"});
  const bool use = v.is_undefined() || (args.truth(1, false) && !v.truth());
  if (!use)
    return v;
  return args.at(0) ? *args.at(0) : value("");
}

value join(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "join", {"d", "attribute"});
  const std::string between = args.at(0) ? to_str(*args.at(0), by.work()) : "";
  const attribute_path path(args.at(1));
  text_builder out(by.work());
  bool first = true;
  for (const value& item : iterate(v, by.work())) {
    if (!first)
      out.append(between);
    first = false;
    append_str(out, path.of(by, item));
  }
  return out.take();
}

value first(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "first", {});
  if (auto* list = v.seq(); list && list->form == sequence_form::iterator && !list->items.empty()) {
    value out = list->items.front();
    by.work().spend(list->items.size());
    list->items.erase(list->items.begin());
    return out;
  }
  const auto items = iterate(v, by.work());
  return items.empty() ? make_undefined("No first item, sequence was empty.") : items.front();
}

/// The items in reverse. Fault: what has no order to reverse.
std::vector<value> reversed(interpreter& by, const value& v) {
  const auto* list = v.seq();
  if (list && list->form == sequence_form::iterator)
    raise("'" + std::string(type_name(v)) + "' object is not reversible");
  auto items = iterate(v, by.work());
  std::ranges::reverse(items);
  return items;
}

value last(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "last", {});
  const auto items = reversed(by, v);
  return items.empty() ? make_undefined("No last item, sequence was empty.") : items.front();
}

value reverse(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "reverse", {});
  if (v.is_text()) {
    const value back(std::int64_t{-1});
    return sliced(v, nullptr, nullptr, &back, by.work());
  }
  const auto* list = v.seq();
  if (list && list->form == sequence_form::iterator) {
    auto items = iterate(v, by.work());
    std::ranges::reverse(items);
    return make_sequence(std::move(items));
  }
  return make_sequence(reversed(by, v), sequence_form::iterator);
}

value list(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "list", {});
  return make_sequence(iterate(v, by.work()));
}

value items(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "items", {});
  if (v.is_undefined())
    return make_sequence({}, sequence_form::iterator);
  if (!v.map())
    raise("Can only get item pairs from a mapping.");
  by.work().spend(2 * v.map()->entries.size());
  std::vector<value> out;
  for (const auto& [key, held] : v.map()->entries)
    out.push_back(make_sequence({key, held}, sequence_form::tuple));
  return make_sequence(std::move(out), sequence_form::iterator);
}

/// The name and arguments that map, select and their kin pass on: those behind the first `skip`.
call_args passed_on(const call_args& given, std::size_t skip) {
  call_args out;
  out.keywords = given.keywords;
  if (given.positional.size() > skip)
    out.positional.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(skip),
                          given.positional.end());
  return out;
}

value map(interpreter& by, const value& v, call_args& given) {
  std::vector<value> out;
  if (!v.truth())
    return make_sequence({}, sequence_form::iterator);
  const bool by_attribute = given.positional.empty() && !given.keywords.empty();
  if (by_attribute) {
    const bound_args args(given, "map", {"attribute", "default"}, 1);
    const attribute_path path(args.at(0));
    for (const value& item : iterate(v, by.work())) {
      value found = path.of(by, item);
      const bool use_default = found.is_undefined() && args.at(1) && !args.at(1)->is_none();
      out.push_back(use_default ? *args.at(1) : std::move(found));
    }
    return make_sequence(std::move(out), sequence_form::iterator);
  }
  if (given.positional.empty() || !given.positional[0].is_text())
    raise("map needs an attribute or a filter's name");
  const call_args rest = passed_on(given, 1);
  for (const value& item : iterate(v, by.work())) {
    call_args args = rest;
    by.work().spend(1);
    out.push_back(by.filtered(given.positional[0].str(), item, args));
  }
  return make_sequence(std::move(out), sequence_form::iterator);
}

value chosen(interpreter& by, const value& v, const call_args& given, bool keep,
             bool by_attribute) {
  if (!v.truth())
    return make_sequence({}, sequence_form::iterator);
  const std::size_t skip = by_attribute ? 1 : 0;
  if (given.positional.size() < skip)
    raise("this filter lacks the attribute's name");
  const attribute_path path(by_attribute ? &given.positional[0] : nullptr);
  const bool has_test = given.positional.size() > skip;
  if (has_test && !given.positional[skip].is_text())
    raise("this filter needs a test's name");
  const call_args rest = passed_on(given, skip + 1);
  std::vector<value> out;
  for (const value& item : iterate(v, by.work())) {
    by.work().spend(1);
    const value seen = path.of(by, item);
    call_args args = rest;
    const bool passes =
        has_test ? by.tested(given.positional[skip].str(), seen, args) : seen.truth();
    if (passes == keep)
      out.push_back(item);
  }
  return make_sequence(std::move(out), sequence_form::iterator);
}

value select(interpreter& by, const value& v, call_args& given) {
  return chosen(by, v, given, true, false);
}

value reject(interpreter& by, const value& v, call_args& given) {
  return chosen(by, v, given, false, false);
}

value selectattr(interpreter& by, const value& v, call_args& given) {
  return chosen(by, v, given, true, true);
}

value rejectattr(interpreter& by, const value& v, call_args& given) {
  return chosen(by, v, given, false, true);
}

constexpr named_filter filters[] = {
    {"length", length},
    {"count", length},
    {"default", default_of},
    {"d", default_of},
    {"join", join},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"list", list},
    {"items", items},
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
};

} // namespace

std::span<const named_filter> sequence_filters() {
  return filters;
}

} // namespace tokenrouter::jinja
