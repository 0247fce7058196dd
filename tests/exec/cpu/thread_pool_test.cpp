#include <atomic>
#include <numeric>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/exec/cpu/thread_pool.hpp"

using namespace tokenrouter::cpu;

BOOST_AUTO_TEST_CASE(every_thread_runs_every_job_once) {
  for (std::uint32_t threads = 1; threads <= 4; ++threads) {
    thread_pool pool(threads);
    for (int job = 0; job < 200; ++job) {
      std::vector<std::uint32_t> ran(threads);
      pool.run([&](worker& w) { ++ran[w.index()]; });
      BOOST_TEST((ran == std::vector<std::uint32_t>(threads, 1)));
    }
  }
}

BOOST_AUTO_TEST_CASE(nobody_passes_a_meeting_before_all_have_come) {
  constexpr std::uint32_t threads = 3;
  constexpr std::uint32_t rounds = 300;
  thread_pool pool(threads);
  std::atomic<std::uint32_t> arrivals{0};
  std::atomic<std::uint32_t> early{0};
  pool.run([&](worker& w) {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      ++arrivals;
      w.sync();
      if (arrivals < round * threads)
        ++early;
    }
  });
  BOOST_TEST(early == 0u);
  BOOST_TEST(arrivals == rounds * threads);
}

BOOST_AUTO_TEST_CASE(shares_cover_all_items_once_and_differ_by_one_at_most) {
  for (std::uint32_t threads = 1; threads <= 4; ++threads) {
    thread_pool pool(threads);
    for (const std::uint32_t items : {0u, 1u, 2u, 5u, 64u, 1001u}) {
      std::vector<worker::range> shares(threads);
      pool.run([&](worker& w) { shares[w.index()] = w.share(items); });
      std::uint32_t next = 0;
      for (const auto& share : shares) {
        BOOST_TEST(share.begin == next);
        next = share.end;
        BOOST_TEST(share.end - share.begin <= items / threads + 1);
        BOOST_TEST(share.end - share.begin >= items / threads);
      }
      BOOST_TEST(next == items);
    }
  }
}
