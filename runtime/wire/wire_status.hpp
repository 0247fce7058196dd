#pragma once

#include <cstdint>

namespace tokenrouter {

enum class wire_fault : std::uint8_t {
  none,
  cut_short, ///< fewer bytes than the message needs
  refused,   ///< a value that nobody writes: a bool that is neither 0 nor 1, a key twice
};

/// What inspecting a part of a message came to. As in CAF, true in a condition means that it
/// failed.
class wire_status {
 public:
  wire_status() = default;
  wire_status(wire_fault fault) : fault_(fault) {}

  wire_fault fault() const { return fault_; }
  explicit operator bool() const { return fault_ != wire_fault::none; }

 private:
  wire_fault fault_ = wire_fault::none;
};

} // namespace tokenrouter
