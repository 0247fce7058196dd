#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/wire/wire_status.hpp"
#include "runtime/wire/wire_types.hpp"

namespace tokenrouter {

/// An inspector that turns a message into bytes; the format is in wire_types.hpp. A sequence of
/// 2^32 elements or more stops the program.
class byte_writer {
 public:
  using result_type = wire_status;
  static constexpr bool reads_state = true;
  static constexpr bool writes_state = false;

  template <class... Ts>
  wire_status operator()(Ts&&... xs) {
    wire_status status;
    static_cast<void>((!(status = put(xs)) && ...));
    return status;
  }

  /// What was written; leaves the writer empty.
  std::vector<std::byte> take() {
    buffer_.resize(std::exchange(used_bytes_, 0));
    return std::exchange(buffer_, {});
  }

 private:
  template <class T>
  wire_status put(const T& x) {
    if constexpr (wire::annotation<T>)
      return {};
    else if constexpr (std::same_as<T, bool>)
      return put_bytes<1>(&x);
    else if constexpr (wire::number<T>)
      return put_bytes<sizeof(T)>(&x);
    else if constexpr (std::same_as<T, std::string>)
      return put_contiguous(x.data(), x.size());
    else if constexpr (wire::is_vector<T>)
      return put_vector(x);
    else if constexpr (wire::is_map<T> || wire::is_set<T>)
      return put_elements(x, true);
    else if constexpr (wire::is_array<T>)
      return put_elements(x, false);
    else if constexpr (wire::is_optional<T>)
      return put_optional(x);
    else if constexpr (wire::is_tuple<T>)
      return std::apply([this](const auto&... parts) { return (*this)(parts...); }, x);
    else if constexpr (wire::inspectable<T, byte_writer>)
      return inspect(*this, const_cast<T&>(x)); // only reads: see reads_state
    else
      static_assert(wire::never<T>, "this type has no place on the wire");
  }

  template <std::size_t Bytes>
  wire_status put_bytes(const void* data) {
    std::memcpy(room_for(Bytes), data, Bytes);
    return {};
  }

  template <class T>
  wire_status put_contiguous(const T* data, std::size_t elements) {
    put_length(elements);
    if (elements > 0)
      std::memcpy(room_for(elements * sizeof(T)), data, elements * sizeof(T));
    return {};
  }

  template <class T>
  wire_status put_vector(const std::vector<T>& xs) {
    if constexpr (wire::number<T>)
      return put_contiguous(xs.data(), xs.size());
    else
      return put_elements(xs, true);
  }

  template <class Range>
  wire_status put_elements(const Range& xs, bool with_length) {
    if (with_length)
      put_length(xs.size());
    for (const auto& x : xs)
      if (auto failed = put(x))
        return failed;
    return {};
  }

  template <class T>
  wire_status put_optional(const std::optional<T>& x) {
    put(x.has_value());
    return x ? put(*x) : wire_status{};
  }

  void put_length(std::size_t elements) {
    check(elements <= std::numeric_limits<std::uint32_t>::max(), "sequence too long for the wire");
    put(static_cast<std::uint32_t>(elements));
  }

  std::byte* room_for(std::size_t bytes) {
    if (buffer_.size() - used_bytes_ < bytes)
      buffer_.resize(std::max(std::size_t{256}, 2 * (used_bytes_ + bytes)));
    auto* room = buffer_.data() + used_bytes_;
    used_bytes_ += bytes;
    return room;
  }

  std::vector<std::byte> buffer_; ///< used_bytes_ of it are written
  std::size_t used_bytes_ = 0;
};

} // namespace tokenrouter
