#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tokenrouter {

/// Finds the first of some strings in a text that comes in pieces, and holds back what may still
/// become one of them.
class stop_scanner {
 public:
  stop_scanner() = default;

  /// Requires non-empty strings.
  explicit stop_scanner(std::vector<std::string> stops);

  /// Takes the next piece; returns what may be shown now. After a stop string was found: nothing.
  std::string push(std::string_view piece);

  /// The text is over: what was held back.
  std::string finish();

  /// A stop string was found. Neither it nor what follows is ever shown.
  bool stopped() const { return stopped_; }

 private:
  std::size_t held_bytes() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

} // namespace tokenrouter
