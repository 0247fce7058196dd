#include "runtime/config/yaml_view.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/config/config_keys.hpp"

namespace tokenrouter {

namespace {

template <class T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// A value as a message quotes it.
std::string shown(const YAML::Node& node) {
  if (node.IsMap())
    return "a map";
  if (node.IsSequence())
    return "a list";
  return node.IsScalar() ? "'" + node.Scalar() + "'" : "nothing";
}

/// 1-based line of a node of the file; 0 for one that an override made.
std::uint32_t line_of(const YAML::Node& node) {
  return node.Mark().is_null() ? 0 : static_cast<std::uint32_t>(node.Mark().line + 1);
}

std::string number_text(double x) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, x).ptr;
  return {text, end};
}

std::string range_text(double low, double high) {
  if (std::isinf(high))
    return "of at least " + number_text(low);
  return "from " + number_text(low) + " to " + number_text(high);
}

std::string range_text(std::uint64_t low, std::uint64_t high) {
  return "from " + std::to_string(low) + " to " + std::to_string(high);
}

} // namespace

void config_reading::fault(const source_mark& where, std::string message) {
  faults.push_back({where, std::move(message)});
}

source_mark config_reading::mark_of(std::string path) const {
  for (;;) {
    if (const auto it = marks.find(path); it != marks.end())
      return it->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos)
      return {file, 0};
    path.resize(dot);
  }
}

yaml_view::yaml_view(YAML::Node node, std::string path, std::uint32_t line, config_reading& reading)
    : node_(std::move(node)), path_(std::move(path)), line_(line), reading_(&reading) {
  if (node_.IsDefined() && !path_.empty())
    reading.marks[path_] = mark();
}

source_mark yaml_view::mark() const {
  for (std::string path = path_; !path.empty();) {
    if (const auto it = reading_->overrides.find(path); it != reading_->overrides.end())
      return {"--set " + it->second, 0};
    const std::size_t dot = path.rfind('.');
    path.resize(dot == std::string::npos ? 0 : dot);
  }
  // A map that only an override made.
  if (line_ == 0 && !path_.empty())
    for (const auto& [path, text] : reading_->overrides)
      if (path.starts_with(path_ + "."))
        return {"--set " + text, 0};
  return {reading_->file, line_};
}

void yaml_view::fault(const std::string& what) const {
  reading_->fault(mark(), path_ + " " + what);
}

yaml_view yaml_view::child(const std::string& name) const {
  YAML::Node found(YAML::NodeType::Undefined);
  std::uint32_t line = 0;
  if (node_.IsDefined() && node_.IsMap())
    for (const auto& entry : node_)
      if (entry.first.IsScalar() && entry.first.Scalar() == name) {
        found.reset(entry.second);
        line = line_of(entry.first);
        break;
      }
  return {found, path_.empty() ? name : path_ + "." + name, line, *reading_};
}

std::vector<std::string> yaml_view::names() const {
  std::vector<std::string> out;
  if (!present())
    return out;
  if (!node_.IsMap()) {
    if (path_.empty())
      reading_->fault(mark(), "a config must be a map of keys, not " + shown(node_));
    else
      fault("must be a map of keys, not " + shown(node_));
    return out;
  }
  for (const auto& entry : node_)
    if (entry.first.IsScalar() && std::ranges::find(out, entry.first.Scalar()) == out.end())
      out.push_back(entry.first.Scalar());
  return out;
}

std::vector<yaml_view> yaml_view::items() const {
  std::vector<yaml_view> out;
  if (!is_list())
    return out;
  for (const YAML::Node& entry : node_)
    out.emplace_back(entry, path_ + "[" + std::to_string(out.size()) + "]", line_, *reading_);
  return out;
}

void yaml_view::check_twice() const {
  if (!node_.IsDefined() || !node_.IsMap())
    return;
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    const source_mark where{reading_->file, line_of(entry.first)};
    if (!entry.first.IsScalar())
      reading_->fault(where, "a key must be plain text");
    else if (!seen.insert(entry.first.Scalar()).second)
      reading_->fault(where, "key '" + entry.first.Scalar() + "' is given twice; keep one");
  }
}

void yaml_view::check_names(std::string_view pattern) const {
  check_twice();
  const auto known = config_names_under(pattern);
  for (const std::string& name : names()) {
    if (std::ranges::find(known, name) != known.end())
      continue;
    reading_->fault(child(name).mark(), "unknown key '" +
                                            (path_.empty() ? name : path_ + "." + name) + "'; " +
                                            advice_on_key(pattern, name));
  }
}

std::optional<std::string> yaml_view::text() const {
  if (!node_.IsDefined())
    return std::nullopt;
  if (!node_.IsScalar() || node_.Scalar().empty()) {
    fault("must be text, not " + shown(node_));
    return std::nullopt;
  }
  return node_.Scalar();
}

std::optional<std::string> yaml_view::one_of(std::span<const std::string_view> values) const {
  auto out = text();
  if (out && std::ranges::find(values, *out) == values.end()) {
    fault("must be " + (values.size() > 1 ? "one of " + listed(values) : std::string(values[0])) +
          ", not '" + *out + "'");
    return std::nullopt;
  }
  return out;
}

std::optional<std::uint64_t> yaml_view::whole(std::uint64_t low, std::uint64_t high) const {
  if (!node_.IsDefined())
    return std::nullopt;
  const auto value = node_.IsScalar() ? parse_number<std::uint64_t>(node_.Scalar()) : std::nullopt;
  if (!value || *value < low || *value > high) {
    fault("must be a whole number " + range_text(low, high) + ", not " + shown(node_));
    return std::nullopt;
  }
  return value;
}

std::optional<double> yaml_view::real(double low, double high) const {
  if (!node_.IsDefined())
    return std::nullopt;
  const auto value = node_.IsScalar() ? parse_number<double>(node_.Scalar()) : std::nullopt;
  if (!value || !std::isfinite(*value) || *value < low || *value > high) {
    fault("must be a number " + range_text(low, high) + ", not " + shown(node_));
    return std::nullopt;
  }
  return value;
}

std::optional<std::vector<std::uint32_t>> yaml_view::whole_list(std::uint64_t low,
                                                                std::uint64_t high) const {
  if (!node_.IsDefined())
    return std::nullopt;
  const std::string wanted = "must be a list of whole numbers " + range_text(low, high) + ", not ";
  if (!node_.IsSequence()) {
    fault(wanted + shown(node_));
    return std::nullopt;
  }
  std::vector<std::uint32_t> out;
  for (const YAML::Node& entry : node_) {
    const auto value =
        entry.IsScalar() ? parse_number<std::uint64_t>(entry.Scalar()) : std::nullopt;
    if (!value || *value < low || *value > high) {
      fault(wanted + "one with " + shown(entry));
      return std::nullopt;
    }
    out.push_back(static_cast<std::uint32_t>(*value));
  }
  return out;
}

std::optional<std::vector<double>> yaml_view::real_list(double low, double high) const {
  if (!node_.IsDefined())
    return std::nullopt;
  const std::string wanted = "must be a list of numbers " + range_text(low, high) + ", not ";
  if (!node_.IsSequence()) {
    fault(wanted + shown(node_));
    return std::nullopt;
  }
  std::vector<double> out;
  for (const YAML::Node& entry : node_) {
    const auto value = entry.IsScalar() ? parse_number<double>(entry.Scalar()) : std::nullopt;
    if (!value || !std::isfinite(*value) || *value < low || *value > high) {
      fault(wanted + "one with " + shown(entry));
      return std::nullopt;
    }
    out.push_back(*value);
  }
  return out;
}

} // namespace tokenrouter
