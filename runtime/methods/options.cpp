#include "runtime/methods/options.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace tokenrouter {

result<double> number_option(const method_parameters& parameters, const std::string& name,
                             double low, double high, double fallback) {
  const auto given = parameters.options.find(name);
  if (given == parameters.options.end())
    return fallback;
  const std::string& text = given->second;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc{} && read.ptr == end && value >= low && value <= high)
    return value;
  std::ostringstream range;
  range << low << " to " << high;
  return fail(errc::invalid_argument,
              "method.options." + name + " must be a number, " + range.str() + ", not " + text);
}

result<void> check_options(const method_parameters& parameters,
                           std::initializer_list<std::string_view> known) {
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + std::string(name);
  for (const auto& [name, text] : parameters.options)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(errc::invalid_argument, "method.options." + name +
                                              " is unknown; the method reads " +
                                              (names.empty() ? "none" : names));
  return {};
}

} // namespace tokenrouter
