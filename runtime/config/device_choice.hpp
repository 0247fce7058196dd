#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tokenrouter {

/// Where a model's replicas run: key `device`.
struct device_choice {
  bool gpu = false;
  /// Of the GPUs that a rank's process sees. None with `gpu`: the first rank of a host that hosts
  /// GPU models takes the first, the next the next, and round again.
  std::optional<std::uint32_t> number;

  friend bool operator==(const device_choice&, const device_choice&) = default;
};

/// `cpu`, `cuda` or `cuda:N`; none for anything else.
std::optional<device_choice> parse_device(std::string_view text);

} // namespace tokenrouter
