#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

/// Errors are values wherever the cause is outside the program: a user, a peer, a file. A
/// programmer's fault is not an error but a failed `check()`.
namespace tokenrouter {

enum class errc : std::uint8_t {
  invalid_argument, ///< a user's or caller's value is out of its range
  not_found,        ///< a file, key or peer is missing
  malformed,        ///< a file or message does not parse
  mismatch,         ///< two things that must agree do not
  capacity,         ///< it can't fit, now or ever
  unavailable,      ///< a peer or device is not there
  cancelled,
  timeout,
  io,
  internal,
};

std::string_view to_string(errc code);

/// What went wrong, where, and what to do about it, in one sentence for the user.
struct error {
  errc code = errc::internal;
  std::string message;

  friend bool operator==(const error&, const error&) = default;
};

template <class T>
using result = tl::expected<T, error>;

[[nodiscard]] inline tl::unexpected<error> fail(errc code, std::string message) {
  return tl::unexpected<error>(error{code, std::move(message)});
}

} // namespace tokenrouter
