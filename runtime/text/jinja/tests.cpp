#include <algorithm>

#include "runtime/text/jinja/arguments.hpp"
#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/operators.hpp"
#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

namespace {

const value& only_argument(const call_args& given) {
  if (given.positional.size() != 1 || !given.keywords.empty())
    raise("this test takes one argument");
  return given.positional[0];
}

template <bool (*is_it)(const value&)>
bool plain(interpreter&, const value& v, call_args& given) {
  if (!given.positional.empty() || !given.keywords.empty())
    raise("this test takes no argument");
  return is_it(v);
}

template <operation op>
bool compared(interpreter& by, const value& v, call_args& given) {
  return compares(op, v, only_argument(given), by.work());
}

bool is_defined(const value& v) {
  return !v.is_undefined();
}
bool is_undefined(const value& v) {
  return v.is_undefined();
}
bool is_none(const value& v) {
  return v.is_none();
}
bool is_boolean(const value& v) {
  return v.is<bool>();
}
bool is_true(const value& v) {
  return v.is<bool>() && v.truth();
}
bool is_false(const value& v) {
  return v.is<bool>() && !v.truth();
}
bool is_integer(const value& v) {
  return v.is<std::int64_t>();
}
bool is_float(const value& v) {
  return v.is<double>();
}
bool is_number(const value& v) {
  return v.number().has_value();
}
bool is_string(const value& v) {
  return v.is_text();
}
bool is_mapping(const value& v) {
  return v.map() != nullptr;
}
bool is_callable(const value& v) {
  return v.is<std::shared_ptr<const callable>>() || v.is<std::shared_ptr<loop_state>>() ||
         v.is_undefined(); // it can be called, though that fails
}
bool is_escaped(const value& v) {
  return v.is_text() && v.get<text>()->safe;
}

bool is_iterable(const value& v) {
  return v.is_undefined() || v.is_text() || v.map() || v.seq() ||
         v.is<std::shared_ptr<loop_state>>();
}

bool is_sequence(const value& v) {
  const auto* list = v.seq();
  if (list)
    return list->form != sequence_form::view && list->form != sequence_form::iterator;
  return v.is_undefined() || v.is_text() || v.map();
}

std::int64_t modulo(interpreter& by, const value& v, const value& by_what) {
  const value rest = arithmetic(operation::modulo, v, by_what, by.work());
  return rest.number() && *rest.number() == 0.0   ? 0
         : rest.number() && *rest.number() == 1.0 ? 1
                                                  : 2;
}

bool is_odd(interpreter& by, const value& v, call_args&) {
  return modulo(by, v, std::int64_t{2}) == 1;
}

bool is_even(interpreter& by, const value& v, call_args&) {
  return modulo(by, v, std::int64_t{2}) == 0;
}

bool is_divisible(interpreter& by, const value& v, call_args& given) {
  return modulo(by, v, only_argument(given)) == 0;
}

bool is_lower_case(interpreter& by, const value& v, call_args&) {
  return is_cased_as(to_str(v, by.work()), false);
}

bool is_upper_case(interpreter& by, const value& v, call_args&) {
  return is_cased_as(to_str(v, by.work()), true);
}

bool is_same(interpreter& by, const value& v, call_args& given) {
  const value& other = only_argument(given);
  if (const auto* a = v.seq(), *b = other.seq(); a || b)
    return a == b;
  if (const auto* a = v.map(), *b = other.map(); a || b)
    return a == b;
  return type_name(v) == type_name(other) && equal(v, other, by.work());
}

bool is_filter(interpreter& by, const value& v, call_args&) {
  return find_filter(to_str(v, by.work())) != nullptr;
}

bool is_test(interpreter& by, const value& v, call_args&) {
  return find_test(to_str(v, by.work())) != nullptr;
}

struct named_test {
  std::string_view name;
  test_function run;
};

constexpr named_test all_tests[] = {
    {"defined", plain<is_defined>},
    {"undefined", plain<is_undefined>},
    {"none", plain<is_none>},
    {"boolean", plain<is_boolean>},
    {"true", plain<is_true>},
    {"false", plain<is_false>},
    {"integer", plain<is_integer>},
    {"float", plain<is_float>},
    {"number", plain<is_number>},
    {"string", plain<is_string>},
    {"mapping", plain<is_mapping>},
    {"sequence", plain<is_sequence>},
    {"iterable", plain<is_iterable>},
    {"callable", plain<is_callable>},
    {"escaped", plain<is_escaped>},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible},
    {"lower", is_lower_case},
    {"upper", is_upper_case},
    {"sameas", is_same},
    {"filter", is_filter},
    {"test", is_test},
    {"in", compared<operation::in>},
    {"eq", compared<operation::equal>},
    {"equalto", compared<operation::equal>},
    {"==", compared<operation::equal>},
    {"ne", compared<operation::unequal>},
    {"!=", compared<operation::unequal>},
    {"lt", compared<operation::less>},
    {"lessthan", compared<operation::less>},
    {"<", compared<operation::less>},
    {"le", compared<operation::less_equal>},
    {"<=", compared<operation::less_equal>},
    {"gt", compared<operation::greater>},
    {"greaterthan", compared<operation::greater>},
    {">", compared<operation::greater>},
    {"ge", compared<operation::greater_equal>},
    {">=", compared<operation::greater_equal>},
};

} // namespace

test_function find_test(std::string_view name) {
  const auto* found = std::ranges::find(all_tests, name, &named_test::name);
  return found == std::end(all_tests) ? nullptr : found->run;
}

std::string unknown_test(std::string_view name) {
  return "the test '" + std::string(name) + "' is not known or not supported";
}

} // namespace tokenrouter::jinja
