#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/core/error.hpp"
#include "runtime/wire/byte_sink.hpp"

namespace tokenrouter {

namespace wire {

/// What is wrong with a payload that `source` could not read to its end.
error decode_error(const byte_source& source, const caf::error& cause);
error trailing_error(const byte_source& source);

} // namespace wire

/// Bytes of a struct with an `inspect(Inspector&, T&)`; see byte_sink.hpp for the format. Not for
/// `std::vector<bool>`.
template <class T>
std::vector<std::byte> encode(const T& value) {
  std::vector<std::byte> bytes;
  bytes.reserve(256);
  byte_sink sink(bytes);
  const auto failed = sink(const_cast<T&>(value));
  check(!failed, "inspect() of a message failed while saving");
  return bytes;
}

/// The struct that `encode` made these bytes of. Errors: malformed (cut short, bytes left over, or
/// refused by the struct's own inspect). Says nothing about the values: the receiver validates.
template <class T>
result<T> decode(std::span<const std::byte> bytes) {
  T value{};
  byte_source source(bytes);
  if (const auto failed = source(value))
    return tl::unexpected(wire::decode_error(source, failed));
  if (source.remaining() > 0)
    return tl::unexpected(wire::trailing_error(source));
  return value;
}

} // namespace tokenrouter
