#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "runtime/config/load.hpp"

namespace tokenrouter {

/// What the readers of one config share: where values came from, and what is wrong so far.
struct config_reading {
  std::string file;
  std::map<std::string, std::string> overrides; ///< dotted path → the override as given
  std::map<std::string, source_mark> marks;     ///< of every value that was read, by dotted path
  std::vector<config_fault> faults;

  void fault(const source_mark& where, std::string message);

  /// The mark of `path`, or else of what it stands in.
  source_mark mark_of(std::string path) const;
};

/// A value of the config and its dotted path. Reading a value of the wrong type notes a fault that
/// says what is wanted and gives none; a value that is not there gives none and no fault.
class yaml_view {
 public:
  /// `line`: 1-based, of the key that has this value; 0 if there is none.
  yaml_view(YAML::Node node, std::string path, std::uint32_t line, config_reading& reading);

  bool given() const { return node_.IsDefined(); }
  bool present() const { return given() && !node_.IsNull(); } ///< … and not left empty
  const std::string& path() const { return path_; }
  source_mark mark() const;

  /// Notes a fault at this value: its path, then `what`.
  void fault(const std::string& what) const;

  yaml_view child(const std::string& name) const;

  bool is_list() const { return given() && node_.IsSequence(); }
  bool is_word(const std::string& word) const {
    return given() && node_.IsScalar() && node_.Scalar() == word;
  }

  /// The entries of a list; none of anything else.
  std::vector<yaml_view> items() const;

  /// Names in a map, in the order of the file; anything but a map is a fault.
  std::vector<std::string> names() const;

  /// As check_twice; notes names that may not stand under a path of kind `pattern` as well (see
  /// config_keys.hpp).
  void check_names(std::string_view pattern) const;

  /// Notes names that are given twice, and keys that are not text.
  void check_twice() const;

  std::optional<std::string> text() const;
  std::optional<std::string> one_of(std::span<const std::string_view> values) const;
  std::optional<std::uint64_t> whole(std::uint64_t low, std::uint64_t high) const;
  std::optional<double> real(double low, double high) const;
  std::optional<std::vector<std::uint32_t>> whole_list(std::uint64_t low, std::uint64_t high) const;
  std::optional<std::vector<double>> real_list(double low, double high) const;

 private:
  YAML::Node node_;
  std::string path_;
  std::uint32_t line_;
  config_reading* reading_;
};

} // namespace tokenrouter
