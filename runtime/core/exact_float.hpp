#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace tokenrouter {

/// A float that crosses ranks bit for bit. CAF's serialisers rebuild floats from their value, which
/// loses NaN and never ends for infinity.
struct exact_float {
  float value = std::numeric_limits<float>::quiet_NaN();

  template <class Inspector>
  friend auto inspect(Inspector& f, exact_float& x) {
    auto bits = std::bit_cast<std::uint32_t>(x.value);
    const write_back after{bits, x.value};
    return f(bits);
  }

 private:
  struct write_back {
    const std::uint32_t& bits;
    float& value;
    ~write_back() { value = std::bit_cast<float>(bits); }
  };
};

} // namespace tokenrouter
