#pragma once

#include <span>
#include <string_view>

#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

struct named_filter {
  std::string_view name;
  filter_function run;
};

std::span<const named_filter> text_filters();
std::span<const named_filter> number_filters();
std::span<const named_filter> sequence_filters();
std::span<const named_filter> order_filters();

/// What filters take as `attribute`: of(v) is v.a.b for "a.b", v itself for none.
class attribute_path {
 public:
  /// `path` may be null.
  explicit attribute_path(const value* path);
  value of(interpreter& by, value v) const;

 private:
  std::vector<value> parts_;
};

} // namespace tokenrouter::jinja
