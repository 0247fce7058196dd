#include "runtime/wire/byte_sink.hpp"

#include <bit>
#include <cstring>
#include <limits>

#include <caf/sec.hpp>

#include "runtime/core/check.hpp"

namespace tokenrouter {

static_assert(std::endian::native == std::endian::little, "the wire format is the host's order");

namespace {

constexpr const char* unsupported = "this type has no place on the wire";

} // namespace

caf::error byte_sink::begin_object(std::uint16_t&, std::string&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_sink::begin_sequence(std::size_t& elements) {
  check(elements <= std::numeric_limits<std::uint32_t>::max(), "sequence too long for the wire");
  return put(static_cast<std::uint32_t>(elements));
}

caf::error byte_sink::apply_raw(std::size_t bytes, void* data) {
  const auto* first = static_cast<const std::byte*>(data);
  buffer_.insert(buffer_.end(), first, first + bytes);
  return caf::none;
}

caf::error byte_sink::apply_impl(std::string& x) {
  auto bytes = x.size();
  if (auto e = begin_sequence(bytes))
    return e;
  return apply_raw(bytes, x.data());
}

caf::error byte_sink::apply_impl(long double&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_sink::apply_impl(std::u16string&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_sink::apply_impl(std::u32string&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_source::begin_object(std::uint16_t&, std::string&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_source::begin_sequence(std::size_t& elements) {
  std::uint32_t announced = 0;
  elements = 0;
  if (auto e = get(announced))
    return e;
  if (announced > remaining())
    return caf::sec::end_of_stream;
  elements = announced;
  return caf::none;
}

caf::error byte_source::apply_raw(std::size_t bytes, void* data) {
  if (bytes > remaining())
    return caf::sec::end_of_stream;
  std::memcpy(data, bytes_.data() + position_, bytes);
  position_ += bytes;
  return caf::none;
}

caf::error byte_source::apply_impl(std::string& x) {
  std::size_t bytes = 0;
  if (auto e = begin_sequence(bytes))
    return e;
  x.resize(bytes);
  return apply_raw(bytes, x.data());
}

caf::error byte_source::apply_impl(long double&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_source::apply_impl(std::u16string&) {
  check(false, unsupported);
  return caf::none;
}

caf::error byte_source::apply_impl(std::u32string&) {
  check(false, unsupported);
  return caf::none;
}

} // namespace tokenrouter
