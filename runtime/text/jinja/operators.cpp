#include "runtime/text/jinja/operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/printing.hpp"

namespace tokenrouter::jinja {

namespace {

[[noreturn]] void refuse(std::string_view sign, const value& a, const value& b) {
  for (const value* v : {&a, &b})
    if (const auto* u = v->get<undefined>())
      raise(*u->why);
  raise("unsupported operand types for " + std::string(sign) + ": '" + std::string(type_name(a)) +
        "' and '" + std::string(type_name(b)) + "'");
}

std::int64_t checked(bool overflows, std::int64_t out) {
  if (overflows)
    raise("a whole number beyond 64 bits");
  return out;
}

value add_texts(const value& a, const value& b, budget& work) {
  work.spend_text(a.str().size() + b.str().size());
  const bool safe_a = a.get<text>()->safe;
  const bool safe_b = b.get<text>()->safe;
  if (!safe_a && !safe_b)
    return a.str() + b.str();
  work.spend_text(8 * (a.str().size() + b.str().size()));
  return make_safe((safe_a ? a.str() : escape_html(a.str())) +
                   (safe_b ? b.str() : escape_html(b.str())));
}

value add(const value& a, const value& b, budget& work) {
  if (a.integer() && b.integer()) {
    std::int64_t sum = 0;
    const bool overflows = __builtin_add_overflow(*a.integer(), *b.integer(), &sum);
    return checked(overflows, sum);
  }
  if (const auto x = a.number(), y = b.number(); x && y)
    return *x + *y;
  if (a.is_text() && b.is_text())
    return add_texts(a, b, work);
  const auto *x = a.seq(), *y = b.seq();
  if (x && y && x->form == y->form &&
      (x->form == sequence_form::list || x->form == sequence_form::tuple)) {
    work.spend(2 * (x->items.size() + y->items.size()));
    std::vector<value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    return make_sequence(std::move(items), x->form);
  }
  refuse("+", a, b);
}

value subtract(const value& a, const value& b) {
  if (a.integer() && b.integer()) {
    std::int64_t out = 0;
    const bool overflows = __builtin_sub_overflow(*a.integer(), *b.integer(), &out);
    return checked(overflows, out);
  }
  if (const auto x = a.number(), y = b.number(); x && y)
    return *x - *y;
  refuse("-", a, b);
}

value repeat(const value& what, std::int64_t times, budget& work) {
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(times, 0));
  const std::uint64_t each = what.is_text() ? what.str().size() : what.seq()->items.size();
  if (count > work_units_max || each * count > work_units_max * bytes_per_unit)
    raise("a repeated text or list is too long", errc::capacity);
  if (what.is_text()) {
    text_builder out(work);
    for (std::uint64_t i = 0; i < count; ++i)
      out.append(what.str());
    return what.get<text>()->safe ? make_safe(out.take()) : value(out.take());
  }
  work.spend(2 * each * count);
  std::vector<value> items;
  for (std::uint64_t i = 0; i < count; ++i)
    items.insert(items.end(), what.seq()->items.begin(), what.seq()->items.end());
  return make_sequence(std::move(items), what.seq()->form);
}

bool is_repeatable(const value& v) {
  return v.is_text() || (v.seq() && (v.seq()->form == sequence_form::list ||
                                     v.seq()->form == sequence_form::tuple));
}

value multiply(const value& a, const value& b, budget& work) {
  if (a.integer() && b.integer()) {
    std::int64_t out = 0;
    const bool overflows = __builtin_mul_overflow(*a.integer(), *b.integer(), &out);
    return checked(overflows, out);
  }
  if (const auto x = a.number(), y = b.number(); x && y)
    return *x * *y;
  if (is_repeatable(a) && b.integer())
    return repeat(a, *b.integer(), work);
  if (is_repeatable(b) && a.integer())
    return repeat(b, *a.integer(), work);
  refuse("*", a, b);
}

double floor_modulo(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest == 0.0)
    return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

/// As CPython computes it, the sign of a zero included.
double floor_quotient(double x, double y) {
  const double quotient = (x - floor_modulo(x, y)) / y;
  if (quotient == 0.0)
    return std::copysign(0.0, x / y);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

value divide(operation op, const value& a, const value& b, budget& work) {
  if (op == operation::modulo && a.is_text())
    return percent_format(a.str(), b, work);
  const auto x = a.number(), y = b.number();
  if (!x || !y)
    refuse(op == operation::modulo ? "%" : op == operation::divide ? "/" : "//", a, b);
  if (*y == 0.0)
    raise("division by zero");
  if (op == operation::divide)
    return *x / *y;
  if (!a.integer() || !b.integer())
    return op == operation::modulo ? floor_modulo(*x, *y) : floor_quotient(*x, *y);
  const std::int64_t n = *a.integer(), d = *b.integer();
  if (d == -1)
    return op == operation::modulo ? value(std::int64_t{0}) : negated(a);
  const std::int64_t rest = n % d;
  const bool adjust = rest != 0 && (rest < 0) != (d < 0);
  return op == operation::modulo ? rest + (adjust ? d : 0) : n / d - (adjust ? 1 : 0);
}

value power(const value& a, const value& b) {
  const auto x = a.number(), y = b.number();
  if (!x || !y)
    refuse("**", a, b);
  if (!a.integer() || !b.integer() || *b.integer() < 0) {
    if (*x == 0.0 && *y < 0.0)
      raise("0.0 cannot be raised to a negative power");
    if (*x < 0.0 && *y != std::floor(*y))
      raise("a complex number is not supported");
    const double out = std::pow(*x, *y);
    if (std::isinf(out) && !std::isinf(*x) && !std::isinf(*y))
      raise("a number is beyond a float");
    return out;
  }
  std::int64_t out = 1, base = *a.integer();
  for (std::int64_t left = *b.integer(); left > 0; left /= 2) {
    const bool overflows = (left % 2 == 1 && __builtin_mul_overflow(out, base, &out)) ||
                           (left > 1 && __builtin_mul_overflow(base, base, &base));
    if (overflows)
      raise("a whole number beyond 64 bits");
  }
  return out;
}

/// Python's slice.indices().
struct slice_bounds {
  std::int64_t first = 0, last = 0, step = 1;
};

slice_bounds bounds_of(std::int64_t length, const value* first, const value* last,
                       const value* step) {
  const auto read = [](const value* v, std::int64_t fallback) {
    if (!v || v->is_none())
      return fallback;
    if (!v->integer())
      raise("slice indices must be whole numbers or none");
    return *v->integer();
  };
  slice_bounds out;
  out.step = std::max(read(step, 1), -std::numeric_limits<std::int64_t>::max());
  if (out.step == 0)
    raise("slice step cannot be zero");
  const bool back = out.step < 0;
  const std::int64_t lowest = back ? -1 : 0;
  const std::int64_t highest = back ? length - 1 : length;
  const auto within = [&](std::int64_t i) {
    return i < 0 ? std::max(i + length, lowest) : std::min(i, highest);
  };
  const bool no_first = !first || first->is_none(), no_last = !last || last->is_none();
  out.first = no_first ? (back ? highest : lowest) : within(read(first, 0));
  out.last = no_last ? (back ? lowest : highest) : within(read(last, 0));
  return out;
}

template <class Take>
void for_each_index(const slice_bounds& b, budget& work, Take take) {
  const std::uint64_t span = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, b.step > 0 ? b.last - b.first : b.first - b.last));
  const std::uint64_t stride = static_cast<std::uint64_t>(b.step > 0 ? b.step : -b.step);
  const std::uint64_t count = (span + stride - 1) / stride;
  work.spend(count);
  for (std::uint64_t i = 0; i < count; ++i)
    take(static_cast<std::size_t>(b.first + static_cast<std::int64_t>(i) * b.step));
}

} // namespace

value arithmetic(operation op, const value& a, const value& b, budget& work) {
  switch (op) {
  case operation::add:
    return add(a, b, work);
  case operation::subtract:
    return subtract(a, b);
  case operation::multiply:
    return multiply(a, b, work);
  case operation::power:
    return power(a, b);
  default:
    return divide(op, a, b, work);
  }
}

value negated(const value& v) {
  if (const auto i = v.integer()) {
    if (*i == std::numeric_limits<std::int64_t>::min())
      raise("a whole number beyond 64 bits");
    return -*i;
  }
  if (const auto d = v.number())
    return -*d;
  if (const auto* u = v.get<undefined>())
    raise(*u->why);
  raise("bad operand type for unary -: '" + std::string(type_name(v)) + "'");
}

bool compares(operation op, const value& a, const value& b, budget& work) {
  switch (op) {
  case operation::equal:
    return equal(a, b, work);
  case operation::unequal:
    return !equal(a, b, work);
  case operation::less:
    return less(a, b, work);
  case operation::greater:
    return less(b, a, work);
  case operation::in:
    return contains(b, a, work);
  case operation::not_in:
    return !contains(b, a, work);
  default: {
    const value& low = op == operation::less_equal ? a : b;
    const value& high = op == operation::less_equal ? b : a;
    return less(low, high, work) || equal(low, high, work);
  }
  }
}

bool contains(const value& container, const value& item, budget& work) {
  if (container.is_text()) {
    if (!item.is_text())
      raise("'in' of a text needs a text on its left, not '" + std::string(type_name(item)) + "'");
    work.spend_text(container.str().size());
    return container.str().find(item.str()) != std::string::npos;
  }
  if (const auto* map = container.map())
    return find(*map, item, work) != nullptr;
  const std::vector<value> items = iterate(container, work);
  return std::ranges::any_of(items, [&](const value& one) { return equal(one, item, work); });
}

value sliced(const value& from, const value* first, const value* last, const value* step,
             budget& work) {
  if (from.is_text()) {
    work.spend_text(8 * from.str().size());
    const auto all = characters(from.str());
    const auto bounds = bounds_of(static_cast<std::int64_t>(all.size()), first, last, step);
    text_builder out(work);
    for_each_index(bounds, work, [&](std::size_t i) { out.append(all[i]); });
    return from.get<text>()->safe ? make_safe(out.take()) : value(out.take());
  }
  const auto* list = from.seq();
  const bool indexed =
      list && list->form != sequence_form::view && list->form != sequence_form::iterator;
  if (!indexed) {
    if (const auto* u = from.get<undefined>())
      raise(*u->why);
    raise("'" + std::string(type_name(from)) + "' object can't be sliced");
  }
  const auto bounds = bounds_of(static_cast<std::int64_t>(list->items.size()), first, last, step);
  std::vector<value> items;
  for_each_index(bounds, work, [&](std::size_t i) { items.push_back(list->items[i]); });
  return make_sequence(std::move(items), list->form);
}

std::int64_t length_of(const value& v, budget& work) {
  if (v.is_undefined())
    return 0;
  if (v.is_text()) {
    work.spend_text(v.str().size());
    return static_cast<std::int64_t>(character_count(v.str()));
  }
  if (const auto* map = v.map())
    return static_cast<std::int64_t>(map->entries.size());
  if (const auto* list = v.seq(); list && list->form != sequence_form::iterator)
    return static_cast<std::int64_t>(list->items.size());
  raise("object of type '" + std::string(type_name(v)) + "' has no length");
}

} // namespace tokenrouter::jinja
