#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/text/jinja/fault.hpp"

namespace tokenrouter::jinja {

class interpreter;
class value;

/// A name or attribute that is not there: prints as nothing, is false and empty; all else that is
/// done with it fails with `why`.
struct undefined {
  std::shared_ptr<const std::string> why;
};

struct none {};

/// Text of any bytes; characters count one each, and so does each unit that is not valid UTF-8.
struct text {
  std::shared_ptr<const std::string> bytes;
  /// Came from `safe` or `escape`: adding text to it escapes that text. Sums, repetitions and
  /// slices of it are safe too; what other methods and filters make of it is not.
  bool safe = false;
};

enum class sequence_form : std::uint8_t {
  list,
  tuple,
  range,
  view,     ///< of a mapping: has a length, but no items by index
  iterator, ///< can be gone through once
};

struct sequence {
  sequence_form form = sequence_form::list;
  std::uint32_t depth = 1; ///< levels of containers, this one included
  std::vector<value> items;
};

/// In the order of insertion.
struct mapping {
  std::uint32_t depth = 1;
  std::vector<std::pair<value, value>> entries;
};

struct name_space {
  std::vector<std::pair<std::string, value>> attributes;
};

/// What `loop` stands for.
struct loop_state {
  std::uint32_t depth = 1;
  std::vector<value> items;
  std::size_t index0 = 0;
  std::vector<value> changed_last; ///< what changed() was last called with
  bool changed_called = false;
};

struct call_args {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> keywords;
};

struct callable {
  std::string name;
  std::uint32_t depth = 0; ///< of the value that a method is bound to
  std::function<value(interpreter&, call_args&)> run;
};

/// A Python value as far as templates meet them. Copies share what they hold; containers are not
/// changed once made (iterators are emptied, namespaces assigned to).
class value {
 public:
  using any =
      std::variant<undefined, none, bool, std::int64_t, double, text, std::shared_ptr<sequence>,
                   std::shared_ptr<const mapping>, std::shared_ptr<name_space>,
                   std::shared_ptr<loop_state>, std::shared_ptr<const callable>>;

  value() : held_(none{}) {}
  value(any held) : held_(std::move(held)) {}
  value(undefined u) : held_(std::move(u)) {}
  value(none n) : held_(n) {}
  value(text t) : held_(std::move(t)) {}
  value(std::shared_ptr<sequence> list) : held_(std::move(list)) {}
  template <std::same_as<bool> B> // not what merely converts to one, such as a pointer
  value(B b) : held_(b) {}
  value(std::int64_t i) : held_(i) {}
  value(double d) : held_(d) {}
  value(std::string s) : held_(text{std::make_shared<const std::string>(std::move(s))}) {}
  value(std::string_view s) : value(std::string(s)) {}
  value(const char* s) : value(std::string(s)) {}

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(held_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }

  bool is_undefined() const { return is<undefined>(); }
  bool is_none() const { return is<none>(); }
  bool is_text() const { return is<text>(); }
  /// Requires text.
  const std::string& str() const { return *std::get<text>(held_).bytes; }
  /// The sequence or mapping held, or null.
  sequence* seq() const;
  const mapping* map() const;

  /// Of a boolean too; null for all other kinds.
  std::optional<std::int64_t> integer() const;
  /// Any number, a boolean too.
  std::optional<double> number() const;

  bool truth() const;

 private:
  any held_;
};

value make_undefined(std::string why);
/// Fault: capacity, if it would be nested too deeply.
value make_sequence(std::vector<value> items, sequence_form form = sequence_form::list);
value make_mapping(std::vector<std::pair<value, value>> entries);
value make_safe(std::string s);

/// As a template sees it. Faults: whole numbers beyond 64 bits, nesting.
value from_json(const nlohmann::ordered_json& json);

/// Python's name of its type, e.g. "str".
std::string_view type_name(const value& v);

/// Python's `==`.
bool equal(const value& a, const value& b, budget& work);
/// Python's `<`. Fault: kinds that have no order.
bool less(const value& a, const value& b, budget& work);

/// Levels of containers in it. Everything that holds values counts, so that none can form a chain
/// of any length.
std::uint32_t depth_of(const value& v);
/// Of a holder of values of depth `depth`. Fault: capacity.
std::uint32_t one_deeper(std::uint32_t depth);

/// The entry with this key, or null. Fault: a key that Python can't hash.
const value* find(const mapping& map, const value& key, budget& work);

/// The items that a `for` over it visits: list items, keys, characters. An iterator is emptied.
/// Fault: not iterable.
std::vector<value> iterate(const value& v, budget& work);

} // namespace tokenrouter::jinja
