#include "runtime/text/jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/text/jinja/characters.hpp"

namespace tokenrouter::jinja {

namespace {

bool equal_items(const std::vector<value>& a, const std::vector<value>& b, budget& work) {
  return std::ranges::equal(a, b,
                            [&](const value& x, const value& y) { return equal(x, y, work); });
}

bool equal_maps(const mapping& a, const mapping& b, budget& work) {
  return a.entries.size() == b.entries.size() &&
         std::ranges::all_of(a.entries, [&](const auto& entry) {
           const value* other = find(b, entry.first, work);
           return other && equal(entry.second, *other, work);
         });
}

bool is_hashable(const value& v) {
  if (v.map())
    return false;
  const auto* list = v.seq();
  if (!list)
    return true;
  return list->form == sequence_form::tuple ? std::ranges::all_of(list->items, is_hashable)
                                            : list->form != sequence_form::list;
}

value whole_number(const nlohmann::ordered_json& json) {
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    raise("the number " + json.dump() + " is beyond 64 bits");
  return json.get<std::int64_t>();
}

value from_json_at(const nlohmann::ordered_json& json, std::uint32_t depth) {
  if (json.is_null())
    return none{};
  if (json.is_boolean())
    return json.get<bool>();
  if (json.is_number_integer())
    return whole_number(json);
  if (json.is_number_float())
    return json.get<double>();
  if (json.is_string())
    return json.get<std::string>();
  const std::uint32_t inner = one_deeper(depth);
  if (json.is_array()) {
    std::vector<value> items;
    items.reserve(json.size());
    for (const auto& item : json)
      items.push_back(from_json_at(item, inner));
    return make_sequence(std::move(items));
  }
  if (!json.is_object())
    raise("a value of the message is not JSON");
  std::vector<std::pair<value, value>> entries;
  entries.reserve(json.size());
  for (const auto& [key, item] : json.items())
    entries.emplace_back(value(key), from_json_at(item, inner));
  return make_mapping(std::move(entries));
}

} // namespace

sequence* value::seq() const {
  const auto* held = get<std::shared_ptr<sequence>>();
  return held ? held->get() : nullptr;
}

const mapping* value::map() const {
  const auto* held = get<std::shared_ptr<const mapping>>();
  return held ? held->get() : nullptr;
}

std::optional<std::int64_t> value::integer() const {
  if (const bool* b = get<bool>())
    return *b ? 1 : 0;
  if (const auto* i = get<std::int64_t>())
    return *i;
  return std::nullopt;
}

std::optional<double> value::number() const {
  if (const double* d = get<double>())
    return *d;
  if (const auto i = integer())
    return static_cast<double>(*i);
  return std::nullopt;
}

bool value::truth() const {
  if (is_undefined() || is_none())
    return false;
  if (const auto n = number())
    return *n != 0.0;
  if (is_text())
    return !str().empty();
  if (const auto* list = seq())
    return list->form == sequence_form::iterator || !list->items.empty();
  if (const auto* held = map())
    return !held->entries.empty();
  return true;
}

std::uint32_t depth_of(const value& v) {
  if (const auto* list = v.seq())
    return list->depth;
  if (const auto* map = v.map())
    return map->depth;
  if (const auto* loop = v.get<std::shared_ptr<loop_state>>())
    return (*loop)->depth;
  if (const auto* function = v.get<std::shared_ptr<const callable>>())
    return (*function)->depth;
  return 0;
}

std::uint32_t one_deeper(std::uint32_t depth) {
  if (depth >= value_depth_max)
    raise("a list or mapping is nested too deeply", errc::capacity);
  return depth + 1;
}

value make_undefined(std::string why) {
  return undefined{std::make_shared<const std::string>(std::move(why))};
}

value make_sequence(std::vector<value> items, sequence_form form) {
  std::uint32_t depth = 0;
  for (const value& item : items)
    depth = std::max(depth, depth_of(item));
  return std::make_shared<sequence>(sequence{form, one_deeper(depth), std::move(items)});
}

value make_mapping(std::vector<std::pair<value, value>> entries) {
  std::uint32_t depth = 0;
  for (const auto& [key, held] : entries)
    depth = std::max({depth, depth_of(key), depth_of(held)});
  return value::any(
      std::make_shared<const mapping>(mapping{one_deeper(depth), std::move(entries)}));
}

value make_safe(std::string s) {
  return text{std::make_shared<const std::string>(std::move(s)), true};
}

value from_json(const nlohmann::ordered_json& json) {
  return from_json_at(json, 0);
}

std::string_view type_name(const value& v) {
  if (v.is_undefined())
    return "Undefined";
  if (v.is_none())
    return "NoneType";
  if (v.is<bool>())
    return "bool";
  if (v.is<std::int64_t>())
    return "int";
  if (v.is<double>())
    return "float";
  if (v.is_text())
    return "str";
  if (v.map())
    return "dict";
  if (const auto* list = v.seq()) {
    switch (list->form) {
    case sequence_form::list:
      return "list";
    case sequence_form::tuple:
      return "tuple";
    case sequence_form::range:
      return "range";
    case sequence_form::view:
      return "dict view";
    case sequence_form::iterator:
      return "iterator";
    }
  }
  if (v.is<std::shared_ptr<name_space>>())
    return "Namespace";
  if (v.is<std::shared_ptr<loop_state>>())
    return "LoopContext";
  return "function";
}

bool equal(const value& a, const value& b, budget& work) {
  work.spend(1);
  if (a.integer() && b.integer())
    return *a.integer() == *b.integer();
  if (const auto x = a.number(), y = b.number(); x || y)
    return x && y && *x == *y;
  if (a.is_text() && b.is_text()) {
    work.spend_text(std::min(a.str().size(), b.str().size()));
    return a.str() == b.str();
  }
  if (const auto* x = a.seq(), *y = b.seq(); x && y) {
    if (x->form == sequence_form::iterator || x->form == sequence_form::view)
      return x == y;
    return x->form == y->form && equal_items(x->items, y->items, work);
  }
  if (a.map() && b.map())
    return equal_maps(*a.map(), *b.map(), work);
  if (a.is_undefined() || a.is_none())
    return a.is_undefined() == b.is_undefined() && a.is_none() == b.is_none();
  if (const auto* x = a.get<std::shared_ptr<name_space>>(),
      *y = b.get<std::shared_ptr<name_space>>();
      x && y)
    return *x == *y;
  if (const auto* x = a.get<std::shared_ptr<loop_state>>(),
      *y = b.get<std::shared_ptr<loop_state>>();
      x && y)
    return *x == *y;
  if (const auto* x = a.get<std::shared_ptr<const callable>>(),
      *y = b.get<std::shared_ptr<const callable>>();
      x && y)
    return *x == *y;
  return false;
}

bool less(const value& a, const value& b, budget& work) {
  work.spend(1);
  if (a.integer() && b.integer())
    return *a.integer() < *b.integer();
  if (const auto x = a.number(), y = b.number(); x && y)
    return *x < *y;
  if (a.is_text() && b.is_text())
    return a.str() < b.str();
  const auto *x = a.seq(), *y = b.seq();
  const bool ordered = x && y && x->form == y->form &&
                       (x->form == sequence_form::list || x->form == sequence_form::tuple);
  if (!ordered) {
    for (const value* v : {&a, &b})
      if (const auto* u = v->get<undefined>())
        raise(*u->why);
    raise("no order between '" + std::string(type_name(a)) + "' and '" + std::string(type_name(b)) +
          "'");
  }
  for (std::size_t i = 0; i < x->items.size() && i < y->items.size(); ++i)
    if (!equal(x->items[i], y->items[i], work))
      return less(x->items[i], y->items[i], work);
  return x->items.size() < y->items.size();
}

const value* find(const mapping& map, const value& key, budget& work) {
  if (!is_hashable(key))
    raise("unhashable type: '" + std::string(type_name(key)) + "'");
  if (key.is_text()) {
    work.spend(1 + map.entries.size() / 8);
    const std::string& wanted = key.str();
    for (const auto& [k, held] : map.entries)
      if (k.is_text() && k.str() == wanted)
        return &held;
    return nullptr;
  }
  for (const auto& [k, held] : map.entries)
    if (equal(k, key, work))
      return &held;
  return nullptr;
}

std::vector<value> iterate(const value& v, budget& work) {
  if (auto* list = v.seq()) {
    work.spend(list->items.size());
    return list->form == sequence_form::iterator ? std::exchange(list->items, {}) : list->items;
  }
  std::vector<value> out;
  if (const auto* map = v.map()) {
    work.spend(map->entries.size());
    for (const auto& entry : map->entries)
      out.push_back(entry.first);
  } else if (v.is_text()) {
    work.spend(v.str().size());
    for (const std::string_view one : characters(v.str()))
      out.emplace_back(one);
  } else if (!v.is_undefined()) {
    raise("'" + std::string(type_name(v)) + "' object is not iterable");
  }
  return out;
}

} // namespace tokenrouter::jinja
