#include <algorithm>
#include <ctime>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

namespace {

value run_range(interpreter& by, call_args& given) {
  const bound_args args(given, "range", {"start", "stop", "step"}, 1);
  const bool one = !args.at(1);
  const std::int64_t start = one ? 0 : args.integer(0, 0);
  const std::int64_t stop = args.integer(one ? 0 : 1, 0);
  const std::int64_t step = args.integer(2, 1);
  if (step == 0)
    raise("range() arg 3 must not be zero");
  std::vector<value> items;
  const auto too_many = [] {
    raise("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" +
          std::to_string(range_items_max) + ").");
  };
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= range_items_max)
      too_many();
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  by.work().spend(2 * items.size());
  return make_sequence(std::move(items), sequence_form::range);
}

/// What dict() and namespace() make their entries of: a mapping, then keywords.
std::vector<std::pair<std::string, value>> named_entries(call_args& given, const char* callee) {
  std::vector<std::pair<std::string, value>> out;
  if (given.positional.size() > 1)
    raise(std::string(callee) + " takes at most 1 positional argument");
  if (!given.positional.empty()) {
    const auto* map = given.positional[0].map();
    if (!map)
      raise(std::string(callee) + " of a " + std::string(type_name(given.positional[0])) +
            " is not supported");
    for (const auto& [key, v] : map->entries) {
      if (!key.is_text())
        raise(std::string(callee) + " of a mapping with other keys than texts is not supported");
      out.emplace_back(key.str(), v);
    }
  }
  for (auto& [name, v] : given.keywords) {
    const auto same =
        std::ranges::find_if(out, [&](const auto& entry) { return entry.first == name; });
    if (same != out.end())
      same->second = std::move(v);
    else
      out.emplace_back(name, std::move(v));
  }
  return out;
}

value run_dict(interpreter& by, call_args& given) {
  std::vector<std::pair<value, value>> entries;
  for (auto& [name, v] : named_entries(given, "dict"))
    entries.emplace_back(value(name), std::move(v));
  by.work().spend(2 * entries.size());
  return make_mapping(std::move(entries));
}

value run_namespace(interpreter& by, call_args& given) {
  auto entries = named_entries(given, "namespace");
  by.work().spend(2 * entries.size());
  return by.make_namespace(std::move(entries));
}

value run_raise_exception(interpreter& by, call_args& given) {
  const bound_args args(given, "raise_exception", {"message"}, 1);
  raise(to_str(*args.at(0), by.work()));
}

value run_strftime_now(interpreter& by, call_args& given) {
  const bound_args args(given, "strftime_now", {"format"}, 1);
  const std::string* form = args.text(0);
  if (!form)
    raise("strftime_now needs a text");
  if (form->size() > 1000)
    raise("the format of strftime_now is too long", errc::capacity);
  // strftime can't tell an empty result from a buffer that is too small.
  const std::string marked = *form + "|";
  char out[16384];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const std::size_t bytes = std::strftime(out, sizeof out, marked.c_str(), &by.now());
#pragma GCC diagnostic pop
  if (bytes == 0)
    raise("the format of strftime_now is not supported");
  by.work().spend_text(bytes);
  return std::string(out, bytes - 1);
}

value function(std::string name, value (*run)(interpreter&, call_args&)) {
  return value::any(std::make_shared<const callable>(callable{std::move(name), 0, run}));
}

} // namespace

value find_global(std::string_view name) {
  if (name == "range")
    return function("range", run_range);
  if (name == "dict")
    return function("dict", run_dict);
  if (name == "namespace")
    return function("namespace", run_namespace);
  if (name == "raise_exception")
    return function("raise_exception", run_raise_exception);
  if (name == "strftime_now")
    return function("strftime_now", run_strftime_now);
  if (name == "cycler" || name == "joiner" || name == "lipsum")
    raise("the function '" + std::string(name) + "' is not supported");
  return make_undefined("'" + std::string(name) + "' is undefined");
}

} // namespace tokenrouter::jinja
