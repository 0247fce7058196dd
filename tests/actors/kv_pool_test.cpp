#include <boost/test/unit_test.hpp>

#include <set>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/send.hpp>

#include "actors/kv_pool.hpp"
#include "runtime/reactor/reactor.hpp"

using namespace tokenrouter;

namespace {

/// Parks a request without giving anything back.
constexpr std::uint32_t everything = 1u << 16;

request_id nth(std::uint64_t n) {
  return make_request_id({0}, n);
}

struct expected_grant {
  std::vector<std::uint8_t> granted;
  std::vector<request_id> evicted;
  std::vector<std::uint32_t> block_counts;
};

/// The answer, and that its tables are the ledger's, one after the other, with no block in two.
void test_grant(block_ledger& ledger, const lease& x, const expected_grant& expected) {
  const auto got = grant_lease(ledger, x);
  BOOST_TEST(got.granted == expected.granted);
  BOOST_TEST((got.evicted == expected.evicted));
  BOOST_TEST(got.block_counts == expected.block_counts);
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.wants.size(); ++i) {
    const auto table = ledger.table(x.wants[i].request);
    if (got.granted[i] == 0)
      continue;
    BOOST_REQUIRE(at + got.block_counts[i] <= got.block_tables.size());
    BOOST_TEST(std::equal(table.begin(), table.end(), got.block_tables.begin() + at,
                          got.block_tables.begin() + at + got.block_counts[i]));
    at += got.block_counts[i];
  }
  BOOST_TEST(at == got.block_tables.size());
  const std::set<block_id> different(got.block_tables.begin(), got.block_tables.end());
  BOOST_TEST(different.size() == got.block_tables.size());
  BOOST_TEST(ledger.consistent());
}

struct lease_row {
  const char* what;
  std::uint32_t blocks;
  std::vector<block_ledger::want> held; ///< leased before
  std::vector<request_id> parked;       ///< of these, in order
  lease asked;
  expected_grant expected;
};
const std::vector<lease_row> lease_rows{
    {"nothing asked", 4, {}, {}, {{}}, {{}, {}, {}}},
    {"one block holds sixteen", 4, {}, {}, {{{nth(1), 16, 1}}}, {{1}, {}, {1}}},
    {"the seventeenth needs another", 4, {}, {}, {{{nth(1), 17, 1}}}, {{1}, {}, {2}}},
    {"the whole pool", 4, {}, {}, {{{nth(1), 64, 1}}}, {{1}, {}, {4}}},
    {"more than the pool", 4, {}, {}, {{{nth(1), 65, 1}}}, {{0}, {}, {0}}},
    {"growth", 4, {{nth(1), 16, 1}}, {}, {{{nth(1), 40, 1}}}, {{1}, {}, {3}}},
    {"no growth", 4, {{nth(1), 40, 1}}, {}, {{{nth(1), 41, 1}}}, {{1}, {}, {3}}},
    {"two of three fit",
     3,
     {},
     {},
     {{{nth(1), 16, 1}, {nth(2), 48, 2}, {nth(3), 32, 3}}},
     {{1, 0, 1}, {}, {1, 0, 2}}},
    {"the younger is refused and keeps what it has",
     2,
     {{nth(1), 16, 1}, {nth(2), 16, 2}},
     {},
     {{{nth(2), 32, 2}}},
     {{0}, {}, {0}}},
    {"the older evicts the younger",
     2,
     {{nth(1), 16, 1}, {nth(2), 16, 2}},
     {},
     {{{nth(1), 32, 1}}},
     {{1}, {nth(2)}, {2}}},
    {"evicted in the same lease, before its own want",
     2,
     {{nth(1), 16, 1}, {nth(2), 16, 2}},
     {},
     {{{nth(1), 17, 1}, {nth(2), 17, 2}}},
     {{1, 0}, {nth(2)}, {2, 0}}},
    {"parked go first, even older ones",
     3,
     {{nth(1), 16, 1}, {nth(2), 16, 2}, {nth(3), 16, 3}},
     {nth(1)},
     {{{nth(2), 32, 2}}},
     {{1}, {nth(1)}, {2}}},
    {"the least recently parked goes first",
     3,
     {{nth(1), 16, 1}, {nth(2), 16, 2}, {nth(3), 16, 3}},
     {nth(2), nth(1)},
     {{{nth(3), 32, 3}}},
     {{1}, {nth(2)}, {2}}},
    {"all that are parked, then the younger",
     3,
     {{nth(1), 16, 1}, {nth(2), 16, 2}, {nth(3), 16, 3}},
     {nth(2)},
     {{{nth(1), 48, 1}}},
     {{1}, {nth(2), nth(3)}, {3}}},
    {"a parked one that returns is not parked",
     2,
     {{nth(1), 16, 1}, {nth(2), 16, 2}},
     {nth(1)},
     {{{nth(1), 16, 1}, {nth(2), 32, 2}}},
     {{1, 0}, {}, {1, 0}}},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_lease_is_answered_want_by_want) {
  for (const auto& r : lease_rows) {
    BOOST_TEST_CONTEXT(r.what) {
      block_ledger ledger(r.blocks);
      for (const auto& w : r.held)
        BOOST_TEST(grant_lease(ledger, {{w}}).granted == std::vector<std::uint8_t>{1});
      for (request_id id : r.parked)
        ledger.park(id, everything);
      test_grant(ledger, r.asked, r.expected);
      for (std::uint64_t n = 1; n <= 3; ++n)
        ledger.release(nth(n));
      BOOST_TEST(ledger.free_blocks() == r.blocks);
    }
  }
}

BOOST_AUTO_TEST_CASE(who_got_nothing_while_blocks_were_lent_is_told_when_they_are_back) {
  reactor_config settings{true};
  caf::actor_system system(settings);
  auto& loop = reactor::of(system);
  const auto pool = system.spawn(kv_pool, 4u, true);
  int told = 0;
  lease_grant got;
  const auto asker = system.spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](lease_grant& x) { got = std::move(x); }, [&](blocks_back) { ++told; },
            [](const blocks_reserved&) {}, [](const prefix_fetched&) {}};
  });
  const auto say = [&](auto message) {
    caf::actor_cast<caf::actor>(pool)->enqueue(caf::actor_cast<caf::strong_actor_ptr>(asker),
                                               caf::make_message_id(),
                                               caf::make_message(std::move(message)), nullptr);
    loop.run_ready();
  };
  const auto wish = [](std::uint32_t tokens) {
    lease x;
    x.wants.push_back({nth(1), tokens, 1});
    return x;
  };
  say(reserve_blocks{7, 2});
  say(wish(64));
  BOOST_TEST(!got.granted.at(0));
  BOOST_TEST(got.loans);
  BOOST_TEST(told == 0);
  say(join_blocks{7, nth(2), 2, {}, 0, 0});
  BOOST_TEST(told == 1);
  say(wish(64));
  BOOST_TEST(got.granted.at(0));
  BOOST_TEST(!got.loans);
  say(unpin_blocks{9});
  BOOST_TEST(told == 1); // nobody waits
  caf::anon_send_exit(pool, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
  loop.run_ready();
}
