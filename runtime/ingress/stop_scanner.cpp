#include "runtime/ingress/stop_scanner.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/check.hpp"

namespace tokenrouter {

stop_scanner::stop_scanner(std::vector<std::string> stops) : stops_(std::move(stops)) {
  check(std::ranges::none_of(stops_, &std::string::empty), "a stop string is not empty");
}

std::string stop_scanner::push(std::string_view piece) {
  if (stopped_)
    return {};
  if (stops_.empty())
    return std::string(piece);
  pending_ += piece;
  std::size_t first = std::string::npos;
  for (const auto& stop : stops_)
    first = std::min(first, pending_.find(stop));
  stopped_ = first != std::string::npos;
  const std::size_t shown = stopped_ ? first : pending_.size() - held_bytes();
  std::string out = pending_.substr(0, shown);
  pending_.erase(0, stopped_ ? std::string::npos : shown);
  return out;
}

std::string stop_scanner::finish() {
  return std::exchange(pending_, {});
}

/// The longest end of the text that a stop string starts with.
std::size_t stop_scanner::held_bytes() const {
  std::size_t held = 0;
  for (const auto& stop : stops_)
    for (std::size_t n = std::min(stop.size() - 1, pending_.size()); n > held; --n)
      if (pending_.ends_with(std::string_view(stop).substr(0, n)))
        held = n;
  return held;
}

} // namespace tokenrouter
