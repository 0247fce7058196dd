#include <algorithm>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/filters.hpp"
#include "runtime/text/jinja/interpreter.hpp"

namespace tokenrouter::jinja {

namespace {

struct keyed {
  value key;
  value item;
};

value sort_key(interpreter& by, value v, bool case_sensitive) {
  if (case_sensitive || !v.is_text())
    return v;
  by.work().spend(v.str().size() / 4 + 1);
  return to_lower(v.str());
}

void sort_keyed(std::vector<keyed>& all, bool reverse, budget& work) {
  const auto before = [&](const keyed& a, const keyed& b) { return less(a.key, b.key, work); };
  // Reversed, equal items keep their order too.
  if (reverse)
    std::ranges::stable_sort(all, [&](const keyed& a, const keyed& b) { return before(b, a); });
  else
    std::ranges::stable_sort(all, before);
}

value sorted_items(std::vector<keyed> all, bool reverse, budget& work) {
  sort_keyed(all, reverse, work);
  std::vector<value> out;
  for (keyed& one : all)
    out.push_back(std::move(one.item));
  return make_sequence(std::move(out));
}

value sort(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "sort", {"reverse", "case_sensitive", "attribute"});
  if (args.at(2) && args.at(2)->is_text() && args.at(2)->str().find(',') != std::string::npos)
    raise("sort by several attributes is not supported");
  const attribute_path path(args.at(2));
  std::vector<keyed> all;
  for (const value& item : iterate(v, by.work()))
    all.push_back({sort_key(by, path.of(by, item), args.truth(1, false)), item});
  return sorted_items(std::move(all), args.truth(0, false), by.work());
}

value dictsort(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "dictsort", {"case_sensitive", "by", "reverse"});
  const std::string by_what = args.text(1) ? *args.text(1) : "key";
  if (by_what != "key" && by_what != "value")
    raise("dictsort can only sort by key or value");
  if (!v.map())
    raise("dictsort needs a mapping, not '" + std::string(type_name(v)) + "'");
  std::vector<keyed> all;
  for (const auto& [key, held] : v.map()->entries)
    all.push_back({sort_key(by, by_what == "key" ? key : held, args.truth(0, false)),
                   make_sequence({key, held}, sequence_form::tuple)});
  return sorted_items(std::move(all), args.truth(2, false), by.work());
}

value extreme(interpreter& by, const value& v, const call_args& given, bool largest) {
  const bound_args args(given, largest ? "max" : "min", {"case_sensitive", "attribute"});
  const attribute_path path(args.at(1));
  const std::vector<value> items = iterate(v, by.work());
  if (items.empty())
    return make_undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const value& item) {
    return sort_key(by, path.of(by, item), args.truth(0, false));
  };
  const value* best = &items.front();
  value best_key = key_of(*best);
  for (std::size_t i = 1; i < items.size(); ++i) {
    value key = key_of(items[i]);
    if (largest ? less(best_key, key, by.work()) : less(key, best_key, by.work())) {
      best = &items[i];
      best_key = std::move(key);
    }
  }
  return *best;
}

value min(interpreter& by, const value& v, call_args& given) {
  return extreme(by, v, given, false);
}

value max(interpreter& by, const value& v, call_args& given) {
  return extreme(by, v, given, true);
}

value unique(interpreter& by, const value& v, call_args& given) {
  const bound_args args(given, "unique", {"case_sensitive", "attribute"});
  const attribute_path path(args.at(1));
  mapping seen;
  std::vector<value> out;
  for (const value& item : iterate(v, by.work())) {
    value key = sort_key(by, path.of(by, item), args.truth(0, false));
    if (find(seen, key, by.work()))
      continue;
    seen.entries.emplace_back(std::move(key), none{});
    out.push_back(item);
  }
  return make_sequence(std::move(out), sequence_form::iterator);
}

constexpr named_filter filters[] = {
    {"sort", sort}, {"dictsort", dictsort}, {"min", min}, {"max", max}, {"unique", unique},
};

} // namespace

std::span<const named_filter> order_filters() {
  return filters;
}

} // namespace tokenrouter::jinja
