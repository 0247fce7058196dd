#include <algorithm>
#include <span>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/operators.hpp"
#include "runtime/text/jinja/registry.hpp"
#include "runtime/text/jinja/text_methods.hpp"

namespace tokenrouter::jinja {

namespace {

value map_items(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "items", {});
  by.work().spend(2 * self.map()->entries.size());
  std::vector<value> out;
  for (const auto& [key, held] : self.map()->entries)
    out.push_back(make_sequence({key, held}, sequence_form::tuple));
  return make_sequence(std::move(out), sequence_form::view);
}

value map_keys(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "keys", {});
  return make_sequence(iterate(self, by.work()), sequence_form::view);
}

value map_values(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "values", {});
  by.work().spend(self.map()->entries.size());
  std::vector<value> out;
  for (const auto& entry : self.map()->entries)
    out.push_back(entry.second);
  return make_sequence(std::move(out), sequence_form::view);
}

value map_get(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "get", {"key", "default"}, 1);
  const value* held = find(*self.map(), *args.at(0), by.work());
  return held ? *held : args.at(1) ? *args.at(1) : value(none{});
}

value copy_of(interpreter&, const value& self, call_args& given) {
  const bound_args args(given, "copy", {});
  return self;
}

value list_index(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "index", {"value"}, 1);
  const auto& items = self.seq()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], *args.at(0), by.work()))
      return static_cast<std::int64_t>(i);
  raise("the value is not in the list");
}

value list_count(interpreter& by, const value& self, call_args& given) {
  const bound_args args(given, "count", {"value"}, 1);
  return static_cast<std::int64_t>(std::ranges::count_if(
      self.seq()->items, [&](const value& item) { return equal(item, *args.at(0), by.work()); }));
}

value loop_cycle(interpreter&, const value& self, call_args& given) {
  if (given.positional.empty())
    raise("no items for cycling given");
  const auto& loop = **self.get<std::shared_ptr<loop_state>>();
  return given.positional[loop.index0 % given.positional.size()];
}

value loop_changed(interpreter& by, const value& self, call_args& given) {
  auto& loop = **self.get<std::shared_ptr<loop_state>>();
  const auto same = [&](const value& a, const value& b) { return equal(a, b, by.work()); };
  const bool changed =
      !loop.changed_called || !std::ranges::equal(loop.changed_last, given.positional, same);
  loop.changed_called = true;
  if (changed)
    loop.changed_last = given.positional;
  return changed;
}

constexpr method map_methods[] = {{"items", map_items},
                                  {"keys", map_keys},
                                  {"values", map_values},
                                  {"get", map_get},
                                  {"copy", copy_of}};
constexpr method list_methods[] = {{"index", list_index}, {"count", list_count}, {"copy", copy_of}};
constexpr method loop_methods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

constexpr std::string_view map_changers[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view list_changers[] = {"append", "clear",  "extend",  "insert",
                                              "pop",    "remove", "reverse", "sort"};
constexpr std::string_view other_text_methods[] = {
    "casefold",  "center",       "encode",    "expandtabs",  "format_map", "isascii",
    "isdecimal", "isidentifier", "isnumeric", "isprintable", "istitle",    "ljust",
    "maketrans", "rjust",        "swapcase",  "translate"};

value bound(const value& self, const std::string& name, filter_function run) {
  return value::any(std::make_shared<const callable>(
      callable{name, one_deeper(depth_of(self)),
               [self, run](interpreter& by, call_args& args) { return run(by, self, args); }}));
}

/// What the sandbox keeps templates from: it is undefined, and says so when it is called.
value unsafe(const value& self, const std::string& name) {
  return make_undefined("access to attribute '" + name + "' of '" + std::string(type_name(self)) +
                        "' object is unsafe.");
}

bool holds(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

} // namespace

value find_method(const value& self, const std::string& name) {
  std::span<const method> methods;
  std::span<const std::string_view> changers;
  const auto* list = self.seq();
  if (self.is_text()) {
    methods = text_methods();
  } else if (self.map()) {
    methods = map_methods;
    changers = map_changers;
  } else if (list && list->form == sequence_form::list) {
    methods = list_methods;
    changers = list_changers;
  } else if (list && (list->form == sequence_form::tuple || list->form == sequence_form::range)) {
    methods = std::span(list_methods).first(2); // they have no copy()
  } else if (self.is<std::shared_ptr<loop_state>>()) {
    methods = loop_methods;
  }
  for (const auto& [known, run] : methods)
    if (known == name)
      return bound(self, name, run);
  if (holds(changers, name) || (name.starts_with("__") && name.ends_with("__")))
    return unsafe(self, name);
  const bool refused = (self.is_text() && holds(other_text_methods, name)) ||
                       (self.map() && name == "fromkeys") ||
                       self.is<std::shared_ptr<const callable>>();
  if (refused)
    raise("'" + name + "' of a " + std::string(type_name(self)) + " is not supported");
  const std::string type = self.is_none() ? "None" : std::string(type_name(self)) + " object";
  return make_undefined("'" + type + "' has no attribute '" + name + "'");
}

} // namespace tokenrouter::jinja
