#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/meta/annotation.hpp>

/// Which types have a place on the wire, and how they look there: numbers and enums little-endian
/// and as wide as their type, floats by their bits; bool one byte; strings and containers by a
/// length of 32 bits and their elements; optional by a bool and the value if there is one; arrays,
/// pairs and tuples by their elements; all else by its `inspect`. Nothing names types or fields:
/// both sides must have the same `protocol_version`.
namespace tokenrouter::wire {

static_assert(std::endian::native == std::endian::little, "the wire format is the host's order");

template <class T>
concept number = (std::integral<T> && !std::same_as<T, bool>) || std::same_as<T, float> ||
                 std::same_as<T, double> || std::is_enum_v<T>;

/// `inspect` may name these for CAF's own inspectors; they carry nothing.
template <class T>
concept annotation = std::is_base_of_v<caf::meta::annotation, T>;

template <class T, class Inspector>
concept inspectable = requires(T& x, Inspector& f) {
  inspect(f, x);
};

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = !std::same_as<T, bool>;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class... Ts>
inline constexpr bool is_tuple<std::tuple<Ts...>> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_map = false;
template <class K, class V>
inline constexpr bool is_map<std::map<K, V>> = true;
template <class K, class V>
inline constexpr bool is_map<std::unordered_map<K, V>> = true;

template <class T>
inline constexpr bool is_set = false;
template <class T>
inline constexpr bool is_set<std::set<T>> = true;

template <class T>
inline constexpr bool never = false;

} // namespace tokenrouter::wire
