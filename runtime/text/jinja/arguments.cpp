#include "runtime/text/jinja/arguments.hpp"

#include <algorithm>

namespace tokenrouter::jinja {

bound_args::bound_args(const call_args& given, std::string_view callee,
                       std::initializer_list<std::string_view> parameters, std::size_t required)
    : callee_(callee), values_(parameters.size()) {
  if (given.positional.size() > parameters.size())
    raise(callee_ + " takes at most " + std::to_string(parameters.size()) + " arguments");
  for (std::size_t i = 0; i < given.positional.size(); ++i)
    values_[i] = &given.positional[i];
  for (const auto& [name, v] : given.keywords) {
    const auto* found = std::ranges::find(parameters, name);
    if (found == parameters.end())
      raise(callee_ + " has no argument '" + name + "'");
    const auto at = static_cast<std::size_t>(found - parameters.begin());
    if (values_[at])
      raise(callee_ + ": the argument '" + name + "' is given twice");
    values_[at] = &v;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!values_[i])
      raise(callee_ + " lacks its argument '" + std::string(*(parameters.begin() + i)) + "'");
}

std::int64_t bound_args::integer(std::size_t parameter, std::int64_t otherwise) const {
  const value* v = values_[parameter];
  if (!v)
    return otherwise;
  if (!v->integer())
    raise(callee_ + " needs a whole number, not '" + std::string(type_name(*v)) + "'");
  return *v->integer();
}

bool bound_args::truth(std::size_t parameter, bool otherwise) const {
  const value* v = values_[parameter];
  return v ? v->truth() : otherwise;
}

const std::string* bound_args::text(std::size_t parameter) const {
  const value* v = values_[parameter];
  if (!v || v->is_none())
    return nullptr;
  if (!v->is_text())
    raise(callee_ + " needs a text, not '" + std::string(type_name(*v)) + "'");
  return &v->str();
}

} // namespace tokenrouter::jinja
