#include "runtime/text/jinja/filters.hpp"

#include <charconv>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/interpreter.hpp"

namespace tokenrouter::jinja {

attribute_path::attribute_path(const value* path) {
  if (!path || path->is_none())
    return;
  if (!path->is_text()) {
    parts_.push_back(*path);
    return;
  }
  for (const std::string_view part : split_by(path->str(), ".", -1, false)) {
    std::int64_t index = 0;
    const auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = ec == std::errc{} && end == part.data() + part.size() && part[0] != '-';
    parts_.push_back(is_index ? value(index) : value(part));
  }
}

value attribute_path::of(interpreter& by, value v) const {
  for (const value& part : parts_)
    v = by.item(v, part);
  return v;
}

filter_function find_filter(std::string_view name) {
  for (const auto filters : {text_filters(), number_filters(), sequence_filters(), order_filters()})
    for (const auto& [known, run] : filters)
      if (known == name)
        return run;
  return nullptr;
}

std::string unknown_filter(std::string_view name) {
  return "the filter '" + std::string(name) + "' is not known or not supported";
}

} // namespace tokenrouter::jinja
