#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "runtime/text/jinja/value.hpp"

namespace tokenrouter::jinja {

/// The arguments of one call by the places of its parameters.
class bound_args {
 public:
  /// Fault: more arguments than parameters, an unknown or doubled keyword, fewer than `required`.
  bound_args(const call_args& given, std::string_view callee,
             std::initializer_list<std::string_view> parameters, std::size_t required = 0);

  /// Null if it was not given.
  const value* at(std::size_t parameter) const { return values_[parameter]; }

  /// These faults name the call: another kind was given.
  std::int64_t integer(std::size_t parameter, std::int64_t otherwise) const;
  bool truth(std::size_t parameter, bool otherwise) const;
  /// Text; null if it was not given or is none.
  const std::string* text(std::size_t parameter) const;

 private:
  std::string callee_;
  std::vector<const value*> values_;
};

} // namespace tokenrouter::jinja
