#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/kv_messages.hpp"
#include "actors/messages.hpp"
#include "runtime/wire/codec.hpp"

/// A message with its kind in front: what a data frame carries.
namespace tokenrouter {

/// Every message that crosses ranks. The place in the list is its kind on the wire: append only.
using wire_messages =
    std::tuple<handoff, handoff_gap, commit_batch, request_failed, release, released, rank_ready,
               end_job, announce, replica_report, batching_update, shard_invite, shard_step,
               shard_awake, status_query, replica_status, kv_greeting, prefix_ask, prefix_offer,
               kv_borrow, kv_loan, kv_return, recall, peer_lost, rank_lost, kv_way, kv_fill,
               kv_filled, kv_wish, kv_parcel>;

namespace detail {

template <class Message, std::size_t I = 0>
constexpr std::size_t kind_of() {
  if constexpr (std::is_same_v<std::tuple_element_t<I, wire_messages>, Message>)
    return I;
  else
    return kind_of<Message, I + 1>();
}

} // namespace detail

template <class Message>
std::vector<std::byte> seal(const Message& x) {
  auto bytes = encode(x);
  bytes.insert(bytes.begin(), static_cast<std::byte>(detail::kind_of<Message>()));
  return bytes;
}

/// Decodes, checks the sender's promises and calls `visit` with the message. Errors: malformed.
template <class Visitor>
result<void> open_envelope(std::span<const std::byte> bytes, Visitor&& visit) {
  if (bytes.empty())
    return fail(errc::malformed, "an empty message");
  const auto kind = std::to_integer<std::size_t>(bytes.front());
  bool known = false;
  result<void> outcome;
  const auto try_kind = [&]<std::size_t I>() {
    if (I != kind)
      return;
    known = true;
    auto message = decode<std::tuple_element_t<I, wire_messages>>(bytes.subspan(1));
    if (!message)
      outcome = tl::unexpected(message.error());
    else if (!valid(*message))
      outcome = fail(errc::malformed,
                     "message of kind " + std::to_string(kind) + " breaks its own contract");
    else
      visit(std::move(*message));
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (try_kind.template operator()<Is>(), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<wire_messages>>{});
  if (!known)
    return fail(errc::malformed,
                "message kind " + std::to_string(kind) + " is unknown to this version");
  return outcome;
}

} // namespace tokenrouter
