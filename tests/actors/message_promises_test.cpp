#include <boost/test/unit_test.hpp>

#include "actors/envelope.hpp"
#include "runtime/core/limits.hpp"

using namespace tokenrouter;

namespace {

const request_id id = make_request_id({3}, 5);

/// Can be opened if and only if the sender's promises hold.
template <class Message>
bool accepted(const Message& x) {
  const auto opened = open_envelope(seal(x), [](auto&&) {});
  BOOST_TEST(opened.has_value() == valid(x));
  return opened.has_value();
}

} // namespace

BOOST_AUTO_TEST_CASE(messages_that_break_their_promises_are_refused) {
  constexpr auto no_model = static_cast<std::uint16_t>(limits::models_max);
  BOOST_TEST(!accepted(handoff_gap{id, 0, {{1}, 0}, {{2}, 0}, 1}));
  BOOST_TEST(!accepted(handoff_gap{id, 1, {{no_model}, 0}, {{2}, 0}, 1}));
  BOOST_TEST(!accepted(handoff_gap{id, 1, {{1}, 0}, {{no_model}, 0}, 1}));
  BOOST_TEST(!accepted(handoff_gap{id, 1, {{1}, 0}, {{2}, 0}, limits::context_tokens_max + 1}));
  BOOST_TEST(!accepted(request_failed{id, static_cast<errc>(200), "?"}));
  BOOST_TEST(!accepted(release{id, {{no_model}, 0}}));
  BOOST_TEST(!accepted(released{id, {{no_model}, 0}, 1, 0, 0, 0, 1}));
  BOOST_TEST(!accepted(released{id, {{1}, 0}, 1, 1, 0, 3, 1}));
  BOOST_TEST(!accepted(released{id, {{1}, 0}, 1, 1, 2, 0, 1}));
  BOOST_TEST(!accepted(rank_ready{{1}, {{{{no_model}, 0}, 1, 1, 1}}}));
}

BOOST_AUTO_TEST_CASE(siblings_that_break_their_promises_are_refused) {
  constexpr replica_id one{{1}, 0}, two{{1}, 1}, stranger{{2}, 1};
  const std::vector<token_id> tokens(32, 5);
  for (const replica_id to : {one, stranger}) {
    BOOST_TEST(!accepted(prefix_ask{one, to, 1, tokens}));
    BOOST_TEST(!accepted(prefix_offer{one, to, 1, 16}));
    BOOST_TEST(!accepted(kv_borrow{one, to, 1, 1, 1, tokens}));
    BOOST_TEST(!accepted(kv_loan{one, to, 1, 1, {4}}));
    BOOST_TEST(!accepted(kv_return{one, to, 1, 1}));
  }
  BOOST_TEST(accepted(kv_borrow{one, two, 1, 1, 1, tokens}));
  BOOST_TEST(!accepted(kv_borrow{one, two, 1, 1, 2, tokens}));
  BOOST_TEST(!accepted(kv_borrow{one, two, 1, 2, 0, tokens}));
  BOOST_TEST(!accepted(kv_borrow{one, two, 1, UINT32_MAX, 3, tokens}));
  BOOST_TEST(!accepted(prefix_ask{one, two, 1, {}}));
  BOOST_TEST(!accepted(prefix_ask{one, two, 1, std::vector<token_id>(33, 5)}));
  BOOST_TEST(!accepted(prefix_ask{one, two, 1, std::vector<token_id>(16, -1)}));
  BOOST_TEST(!accepted(prefix_offer{one, two, 1, 17}));
}

BOOST_AUTO_TEST_CASE(movers_that_break_their_promises_are_refused) {
  constexpr replica_id one{{1}, 0}, two{{1}, 1}, stranger{{2}, 1};
  constexpr shard_id from{one, 3};
  for (const shard_id to : {shard_id{two, 2}, shard_id{one, 3}, shard_id{stranger, 3}}) {
    BOOST_TEST(!accepted(kv_greeting{from, to, 1, {}}));
    BOOST_TEST(!accepted(kv_wish{from, to, 1, 7, {4}}));
    BOOST_TEST(!accepted(kv_parcel{from, to, 1, true, 7}));
  }
  constexpr shard_id twin{two, 3};
  BOOST_TEST(accepted(kv_wish{from, twin, 1, 7, {4}}));
  BOOST_TEST(!accepted(kv_wish{from, twin, 1, 0, {4}}));
  BOOST_TEST(!accepted(kv_wish{from, twin, 1, 7, {}}));
  BOOST_TEST(!accepted(
      kv_greeting{from, twin, 1, std::vector<std::uint8_t>(limits::kv_address_bytes_max + 1)}));
  BOOST_TEST(accepted(kv_way{from, one, two, true, false, 64}));
  BOOST_TEST(!accepted(kv_way{from, two, one, true, false, 64}));
  BOOST_TEST(!accepted(kv_way{from, one, stranger, true, false, 64}));
  BOOST_TEST(!accepted(kv_way{from, one, two, false, true, 64}));
  BOOST_TEST(!accepted(kv_way{from, one, two, true, false, 0}));
  BOOST_TEST(accepted(kv_fill{from, two, 1, 1, {{2, 3}}}));
  BOOST_TEST(!accepted(kv_fill{from, one, 1, 1, {{2, 3}}}));
  BOOST_TEST(!accepted(kv_fill{from, two, 1, 1, {}}));
  BOOST_TEST(accepted(kv_filled{from, one, 1, 1, true}));
  BOOST_TEST(!accepted(kv_filled{from, two, 1, 1, true}));
}
