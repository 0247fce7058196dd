#include <boost/test/unit_test.hpp>

#include <random>

#include "runtime/policy/delayed_batching.hpp"
#include "runtime/policy/replica_choice.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_threshold_follows_the_number_of_live_requests) {
  const std::vector<batching_thresholds> models{{}, {1, 2, 2, 3}};
  struct row {
    std::size_t self;
    std::uint32_t live, threshold;
  };
  for (const auto& r : {row{0, 3, 1}, row{1, 0, 1}, row{1, 1, 1}, row{1, 2, 2}, row{1, 3, 2},
                        row{1, 4, 3}, row{1, 50, 3}})
    BOOST_TEST(threshold_in_force({models, r.self, 1, r.live}) == r.threshold, "live " << r.live);
}

BOOST_AUTO_TEST_CASE(replicas_share_what_their_model_may_leave_waiting) {
  const std::vector<batching_thresholds> models{{}, {8}};
  BOOST_TEST(threshold_in_force({models, 1, 1, 20}) == 8u);
  BOOST_TEST(threshold_in_force({models, 1, 2, 20}) == 4u);
  BOOST_TEST(threshold_in_force({models, 1, 4, 20}) == 2u);
}

BOOST_AUTO_TEST_CASE(no_lists_let_all_live_requests_wait_at_once) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::vector<batching_thresholds> models(1 + random() % 8);
    std::vector<std::uint32_t> replicas;
    for (auto& list : models) {
      for (auto n = random() % 6; n > 0; --n)
        list.push_back(1 + static_cast<std::uint32_t>(random() % 40));
      replicas.push_back(1 + static_cast<std::uint32_t>(random() % 4));
    }
    const auto live = static_cast<std::uint32_t>(1 + random() % 50);
    std::uint64_t waiting = 0;
    for (std::size_t m = 0; m < models.size(); ++m)
      waiting +=
          std::uint64_t{replicas[m]} * (threshold_in_force({models, m, replicas[m], live}) - 1);
    BOOST_REQUIRE(waiting < live);
  }
}

BOOST_AUTO_TEST_CASE(a_request_goes_to_the_least_loaded_replica_and_equal_prompts_meet) {
  const std::vector<token_id> prompt{1, 2, 3}, other{9, 8, 7};
  const std::vector<std::uint32_t> uneven{3, 1, 2};
  BOOST_TEST(choose_replica(uneven, prompt) == 1u);
  const std::vector<std::uint32_t> even{2, 2, 2, 2};
  BOOST_TEST(choose_replica(even, prompt) == choose_replica(even, prompt));
  std::vector<std::uint32_t> hits(4);
  for (token_id t = 0; t < 400; ++t)
    ++hits[choose_replica(even, std::vector<token_id>{t, 5})];
  for (const std::uint32_t count : hits)
    BOOST_TEST(count > 50u);
}
