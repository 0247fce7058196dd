#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

/// Identities. Every id is a plain integer in a type of its own, so that one can't be passed for
/// another; all of them may cross ranks.
namespace tokenrouter {

using token_id = std::int32_t;
using block_id = std::uint32_t;

/// One MPI process.
struct rank_id {
  std::uint32_t value = 0;
  friend auto operator<=>(const rank_id&, const rank_id&) = default;
};

/// Position of a model in the config's `models` map (order of the file), the same on every rank.
struct model_id {
  std::uint16_t value = 0;
  friend auto operator<=>(const model_id&, const model_id&) = default;
};

/// One running copy of a model.
struct replica_id {
  model_id model;
  std::uint16_t index = 0;
  friend auto operator<=>(const replica_id&, const replica_id&) = default;
};

/// One of the backends that run a replica together.
struct shard_id {
  replica_id replica;
  std::uint16_t index = 0; ///< 0 leads
  friend auto operator<=>(const shard_id&, const shard_id&) = default;
};

/// Unique over the job: the home rank in the upper 24 bits, that rank's counter below.
struct request_id {
  std::uint64_t value = 0;
  friend auto operator<=>(const request_id&, const request_id&) = default;
};

inline constexpr unsigned request_counter_bits = 40;

constexpr request_id make_request_id(rank_id home, std::uint64_t counter) {
  return {(std::uint64_t{home.value} << request_counter_bits) |
          (counter & ((std::uint64_t{1} << request_counter_bits) - 1))};
}

constexpr rank_id home_of(request_id id) {
  return {static_cast<std::uint32_t>(id.value >> request_counter_bits)};
}

/// Number of a turn of one request; a message of an older turn is dropped.
using turn_number = std::uint32_t;

} // namespace tokenrouter

template <>
struct std::hash<tokenrouter::rank_id> {
  std::size_t operator()(tokenrouter::rank_id x) const noexcept { return x.value; }
};
template <>
struct std::hash<tokenrouter::model_id> {
  std::size_t operator()(tokenrouter::model_id x) const noexcept { return x.value; }
};
template <>
struct std::hash<tokenrouter::replica_id> {
  std::size_t operator()(tokenrouter::replica_id x) const noexcept {
    return (std::size_t{x.model.value} << 16) | x.index;
  }
};
template <>
struct std::hash<tokenrouter::request_id> {
  std::size_t operator()(tokenrouter::request_id x) const noexcept {
    return std::hash<std::uint64_t>{}(x.value);
  }
};
