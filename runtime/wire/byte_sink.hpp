#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <caf/deserializer.hpp>
#include <caf/serializer.hpp>

/// The two ends of CAF's inspection protocol that messages go through on the wire. Numbers are
/// little-endian and as wide as their type; floats keep their bits, NaN and infinity included
/// (CAF's own format does not); the length of a sequence or string is 32 bits before it. Nothing
/// of the format names types or fields: both sides must have the same `protocol_version`.
namespace tokenrouter {

/// Appends to a buffer. Never fails; a sequence of 2^32 elements or more stops the program.
class byte_sink final : public caf::serializer {
 public:
  /// Does not own the buffer.
  explicit byte_sink(std::vector<std::byte>& buffer) : buffer_(buffer) {}

  caf::error begin_object(std::uint16_t& type, std::string& name) override;
  caf::error end_object() override { return caf::none; }
  caf::error begin_sequence(std::size_t& elements) override;
  caf::error end_sequence() override { return caf::none; }
  caf::error apply_raw(std::size_t bytes, void* data) override;

 protected:
  caf::error apply_impl(std::int8_t& x) override { return put(x); }
  caf::error apply_impl(std::uint8_t& x) override { return put(x); }
  caf::error apply_impl(std::int16_t& x) override { return put(x); }
  caf::error apply_impl(std::uint16_t& x) override { return put(x); }
  caf::error apply_impl(std::int32_t& x) override { return put(x); }
  caf::error apply_impl(std::uint32_t& x) override { return put(x); }
  caf::error apply_impl(std::int64_t& x) override { return put(x); }
  caf::error apply_impl(std::uint64_t& x) override { return put(x); }
  caf::error apply_impl(float& x) override { return put(x); }
  caf::error apply_impl(double& x) override { return put(x); }
  caf::error apply_impl(long double&) override;
  caf::error apply_impl(std::string& x) override;
  caf::error apply_impl(std::u16string&) override;
  caf::error apply_impl(std::u32string&) override;

 private:
  template <class T>
  caf::error put(const T& x) {
    return apply_raw(sizeof x, const_cast<T*>(&x));
  }

  std::vector<std::byte>& buffer_;
};

/// Reads what a `byte_sink` wrote. Every read is checked against the bytes present, and so is the
/// announced length of a sequence before anything is allocated for it (an element takes at least
/// one byte): a hostile payload can't make it allocate more than a small multiple of its own size.
class byte_source final : public caf::deserializer {
 public:
  /// Does not own the bytes.
  explicit byte_source(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  caf::error begin_object(std::uint16_t& type, std::string& name) override;
  caf::error end_object() override { return caf::none; }
  caf::error begin_sequence(std::size_t& elements) override;
  caf::error end_sequence() override { return caf::none; }
  caf::error apply_raw(std::size_t bytes, void* data) override;

 protected:
  caf::error apply_impl(std::int8_t& x) override { return get(x); }
  caf::error apply_impl(std::uint8_t& x) override { return get(x); }
  caf::error apply_impl(std::int16_t& x) override { return get(x); }
  caf::error apply_impl(std::uint16_t& x) override { return get(x); }
  caf::error apply_impl(std::int32_t& x) override { return get(x); }
  caf::error apply_impl(std::uint32_t& x) override { return get(x); }
  caf::error apply_impl(std::int64_t& x) override { return get(x); }
  caf::error apply_impl(std::uint64_t& x) override { return get(x); }
  caf::error apply_impl(float& x) override { return get(x); }
  caf::error apply_impl(double& x) override { return get(x); }
  caf::error apply_impl(long double&) override;
  caf::error apply_impl(std::string& x) override;
  caf::error apply_impl(std::u16string&) override;
  caf::error apply_impl(std::u32string&) override;

 private:
  template <class T>
  caf::error get(T& x) {
    return apply_raw(sizeof x, &x);
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

} // namespace tokenrouter
