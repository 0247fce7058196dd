#include <boost/test/unit_test.hpp>

#include <set>
#include <thread>
#include <vector>

#include "runtime/reactor/affinity.hpp"

using namespace tokenrouter;

namespace {

struct shared_row {
  const char* what;
  std::vector<int> allowed;
  unsigned ranks;
  unsigned rank;
  unsigned model_threads;
  thread_layout expected;
};

} // namespace

BOOST_AUTO_TEST_CASE(threads_of_ranks_that_share_cores_are_planned_by_table) {
  const std::vector<shared_row> rows{
      {"one rank, a core for everyone", {0, 1}, 1, 0, 1, {0, {1}, true}},
      {"a rank without models", {3}, 1, 0, 0, {3, {}, true}},
      {"first of two, enough cores", {0, 1, 2, 3}, 2, 0, 1, {0, {1}, true}},
      {"second of two, enough cores", {0, 1, 2, 3}, 2, 1, 1, {2, {3}, true}},
      {"core numbers need not start at 0", {5, 7, 9}, 1, 0, 2, {5, {7, 9}, true}},
      {"one core short: nobody spins", {0, 1, 2}, 2, 0, 1, {2, {0}, false}},
      {"one core short: models apart", {0, 1, 2}, 2, 1, 1, {0, {1}, false}},
      {"one core for all", {4}, 2, 1, 1, {4, {4}, false}},
      {"two ranks on two cores, first", {0, 1}, 2, 0, 1, {1, {0}, false}},
      {"two ranks on two cores, second", {0, 1}, 2, 1, 1, {0, {1}, false}},
      {"unknown cores: no pinning", {}, 1, 0, 2, {-1, {-1, -1}, false}},
  };
  for (const auto& row : rows)
    BOOST_TEST_CONTEXT(row.what) {
      const auto plan = plan_threads(row.allowed, row.ranks, row.rank, row.model_threads);
      BOOST_TEST(plan.control_core == row.expected.control_core);
      BOOST_TEST(plan.model_cores == row.expected.model_cores, boost::test_tools::per_element());
      BOOST_TEST(plan.may_spin == row.expected.may_spin);
    }
}

BOOST_AUTO_TEST_CASE(ranks_that_the_launcher_bound_use_their_own_cores) {
  const std::vector<rank_threads> bound{{{0, 1}, 1}, {{2, 3}, 1}};
  BOOST_TEST((plan_threads(bound, 0) == thread_layout{0, {1}, true}));
  BOOST_TEST((plan_threads(bound, 1) == thread_layout{2, {3}, true}));
  // mpirun's default for two ranks: one core each, shared by all threads of the rank.
  const std::vector<rank_threads> tight{{{0}, 1}, {{1}, 1}};
  BOOST_TEST((plan_threads(tight, 0) == thread_layout{0, {0}, false}));
  BOOST_TEST((plan_threads(tight, 1) == thread_layout{1, {1}, false}));
}

BOOST_AUTO_TEST_CASE(a_rank_with_few_cores_is_served_before_one_with_many) {
  const std::vector<rank_threads> host{{{0, 1, 2, 3}, 1}, {{0, 1}, 1}};
  BOOST_TEST((plan_threads(host, 1) == thread_layout{0, {1}, true}));
  BOOST_TEST((plan_threads(host, 0) == thread_layout{2, {3}, true}));
}

BOOST_AUTO_TEST_CASE(a_plan_that_spins_never_gives_a_core_twice) {
  for (unsigned cores = 1; cores <= 12; ++cores)
    for (unsigned ranks = 1; ranks <= 4; ++ranks)
      for (unsigned threads = 0; threads <= 4; ++threads) {
        std::vector<int> allowed;
        for (unsigned i = 0; i < cores; ++i)
          allowed.push_back(static_cast<int>(i));
        std::multiset<int> used;
        bool spin = true;
        for (unsigned rank = 0; rank < ranks; ++rank) {
          const auto plan = plan_threads(allowed, ranks, rank, threads);
          BOOST_TEST(plan.model_cores.size() == threads);
          used.insert(plan.control_core);
          used.insert(plan.model_cores.begin(), plan.model_cores.end());
          spin = spin && plan.may_spin;
        }
        BOOST_TEST(spin == (cores >= ranks * (threads + 1)));
        const std::set<int> distinct(used.begin(), used.end());
        BOOST_TEST((!spin || distinct.size() == used.size()));
        for (const int core : used)
          BOOST_TEST((core >= 0 && core < static_cast<int>(cores)));
      }
}

BOOST_AUTO_TEST_CASE(a_thread_can_be_pinned_to_an_allowed_core_only) {
  const auto cores = allowed_cores();
  BOOST_REQUIRE(!cores.empty());
  std::thread([&] {
    BOOST_TEST(pin_this_thread(cores.back()).has_value());
    BOOST_TEST(allowed_cores() == std::vector<int>{cores.back()}, boost::test_tools::per_element());
  }).join();
  BOOST_TEST(allowed_cores() == cores, boost::test_tools::per_element());
  BOOST_TEST((pin_this_thread(-1).error().code == errc::invalid_argument));
  BOOST_TEST((pin_this_thread(1'000'000).error().code == errc::invalid_argument));
}
