#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "runtime/wire/wire_status.hpp"
#include "runtime/wire/wire_types.hpp"

namespace tokenrouter {

/// An inspector that reads what a `byte_writer` wrote. Every read is checked against the bytes
/// present, and so is the announced length of a sequence before anything is allocated for it: a
/// hostile payload can't make it allocate more than a small multiple of its own size.
class byte_reader {
 public:
  using result_type = wire_status;
  static constexpr bool reads_state = false;
  static constexpr bool writes_state = true;

  /// Does not own the bytes.
  explicit byte_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  template <class... Ts>
  wire_status operator()(Ts&&... xs) {
    wire_status status;
    static_cast<void>((!(status = get(xs)) && ...));
    return status;
  }

 private:
  template <class T>
  wire_status get(T& x) {
    if constexpr (wire::annotation<T>)
      return {};
    else if constexpr (std::same_as<T, bool>)
      return get_bool(x);
    else if constexpr (wire::number<T>)
      return get_bytes(&x, sizeof x);
    else if constexpr (std::same_as<T, std::string>)
      return get_contiguous(x);
    else if constexpr (wire::is_vector<T>)
      return get_vector(x);
    else if constexpr (wire::is_map<T>)
      return get_keyed<std::pair<typename T::key_type, typename T::mapped_type>>(x);
    else if constexpr (wire::is_set<T>)
      return get_keyed<typename T::value_type>(x);
    else if constexpr (wire::is_array<T>)
      return get_array(x);
    else if constexpr (wire::is_optional<T>)
      return get_optional(x);
    else if constexpr (wire::is_tuple<T>)
      return std::apply([this](auto&... parts) { return (*this)(parts...); }, x);
    else if constexpr (wire::inspectable<T, byte_reader>)
      return inspect(*this, x);
    else
      static_assert(wire::never<T>, "this type has no place on the wire");
  }

  wire_status get_bytes(void* data, std::size_t bytes) {
    if (bytes > remaining())
      return wire_fault::cut_short;
    std::memcpy(data, bytes_.data() + position_, bytes);
    position_ += bytes;
    return {};
  }

  wire_status get_bool(bool& x) {
    std::uint8_t byte = 0;
    if (auto failed = get_bytes(&byte, 1))
      return failed;
    x = byte == 1;
    return byte <= 1 ? wire_fault::none : wire_fault::refused;
  }

  /// Every element takes at least `element_bytes_min`.
  wire_status get_length(std::size_t& elements, std::size_t element_bytes_min) {
    std::uint32_t announced = 0;
    if (auto failed = get_bytes(&announced, sizeof announced))
      return failed;
    if (announced > remaining() / element_bytes_min)
      return wire_fault::cut_short;
    elements = announced;
    return {};
  }

  template <class Container>
  wire_status get_contiguous(Container& xs) {
    std::size_t elements = 0;
    constexpr auto element_bytes = sizeof(typename Container::value_type);
    if (auto failed = get_length(elements, element_bytes))
      return failed;
    xs.resize(elements);
    return elements == 0 ? wire_status{} : get_bytes(xs.data(), elements * element_bytes);
  }

  template <class T>
  wire_status get_vector(std::vector<T>& xs) {
    if constexpr (wire::number<T>) {
      return get_contiguous(xs);
    } else {
      std::size_t elements = 0;
      if (auto failed = get_length(elements, 1))
        return failed;
      // Not reserved: an element may be much larger here than on the wire.
      xs.clear();
      for (std::size_t i = 0; i < elements; ++i)
        if (auto failed = get(xs.emplace_back()))
          return failed;
      return {};
    }
  }

  template <class Element, class Container>
  wire_status get_keyed(Container& xs) {
    std::size_t elements = 0;
    if (auto failed = get_length(elements, 1))
      return failed;
    xs.clear();
    for (std::size_t i = 0; i < elements; ++i) {
      Element x{};
      if (auto failed = get(x))
        return failed;
      if (!xs.insert(std::move(x)).second)
        return wire_fault::refused;
    }
    return {};
  }

  template <class Array>
  wire_status get_array(Array& xs) {
    for (auto& x : xs)
      if (auto failed = get(x))
        return failed;
    return {};
  }

  template <class T>
  wire_status get_optional(std::optional<T>& x) {
    bool present = false;
    if (auto failed = get_bool(present))
      return failed;
    x.reset();
    return present ? get(x.emplace()) : wire_status{};
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

} // namespace tokenrouter
