#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/core/error.hpp"
#include "runtime/wire/byte_reader.hpp"
#include "runtime/wire/byte_writer.hpp"

/// Messages to bytes and back, through the same `inspect(Inspector&, T&)` templates that CAF uses.
/// Not by CAF's own binary format, which turns NaN into -1, never returns on infinity, and
/// allocates what a payload announces before it has seen the bytes.
namespace tokenrouter {

namespace wire {

/// What is wrong with a payload of that many bytes; `trailing`: it did not end with its message.
error decode_error(std::size_t position, std::size_t payload_bytes, wire_fault fault);
error trailing_error(std::size_t position, std::size_t payload_bytes);

} // namespace wire

/// Bytes of a message; wire_types.hpp says which types may be in it.
template <class T>
std::vector<std::byte> encode(const T& value) {
  byte_writer writer;
  check(!writer(value), "inspect() of a message failed while saving");
  return writer.take();
}

/// The message that `encode` made these bytes of. Errors: malformed (cut short, bytes left over, or
/// refused). Says nothing about the values: the receiver validates.
template <class T>
result<T> decode(std::span<const std::byte> bytes) {
  T value{};
  byte_reader reader(bytes);
  if (const auto failed = reader(value))
    return tl::unexpected(wire::decode_error(reader.position(), bytes.size(), failed.fault()));
  if (reader.remaining() > 0)
    return tl::unexpected(wire::trailing_error(reader.position(), bytes.size()));
  return value;
}

} // namespace tokenrouter
