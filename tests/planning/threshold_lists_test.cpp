#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/planning/threshold_lists.hpp"

using namespace tokenrouter;

namespace {

using list = std::vector<std::uint32_t>;

routing_model ensemble(std::vector<double> latencies_ms, std::vector<double> weights) {
  routing_model model;
  model.latencies_ms = std::move(latencies_ms);
  preset_parameters parameters;
  parameters.weights = std::move(weights);
  BOOST_REQUIRE(apply_preset(model, "ensemble", parameters));
  return model;
}

/// Some batch can always start, and no threshold rises when a request ends.
void expect_safe(const threshold_lists& lists) {
  for (std::size_t n = 1; n <= lists.rates.size(); ++n) {
    std::uint32_t held_back = 0;
    for (const auto& of_model : lists.of_model) {
      BOOST_REQUIRE(of_model.size() == lists.rates.size());
      held_back += of_model[n - 1] - 1;
      BOOST_TEST(of_model[n - 1] >= 1u);
      if (n > 1)
        BOOST_TEST(of_model[n - 1] >= of_model[n - 2]);
    }
    BOOST_TEST(held_back < n);
  }
}

/// A table with these rates, in the order (1,1), (1,2), ... of its n.
batching_table table_of(std::vector<batching_choice> choices) {
  batching_table table{std::move(choices), 0};
  for (std::size_t i = 1; i < table.choices.size(); ++i)
    if (table.choices[i].rate.tokens_per_second >
        table.choices[table.best_index].rate.tokens_per_second)
      table.best_index = i;
  return table;
}

} // namespace

BOOST_AUTO_TEST_CASE(lists_of_r2r_are_the_best_of_every_n) {
  routing_model model;
  model.latencies_ms = {6.0, 27.9};
  BOOST_REQUIRE(apply_preset(model, "r2r", {}));
  const auto lists = plan_threshold_lists(model, 8);
  BOOST_REQUIRE(lists);
  expect_safe(*lists);
  BOOST_TEST(lists->of_model[0] == list(8, 1), boost::test_tools::per_element());
  BOOST_TEST(lists->of_model[1] == (list{1, 2, 2, 3, 4, 4, 5, 5}),
             boost::test_tools::per_element());
  BOOST_TEST(lists->worst_loss_share() == 0);
  BOOST_TEST(lists->rates[1].tokens_per_second > lists->no_delay_tokens_per_second[1]);
}

BOOST_AUTO_TEST_CASE(lists_of_three_models_are_safe) {
  auto model = ensemble({6, 12, 27}, {0.5, 0.3, 0.2});
  model.grid_ms = 3;
  const auto lists = plan_threshold_lists(model, 6);
  BOOST_REQUIRE(lists);
  expect_safe(*lists);
  BOOST_TEST(lists->worst_loss_share() < 0.02);
}

BOOST_AUTO_TEST_CASE(a_best_vector_that_would_lower_a_threshold_gives_way) {
  // n = 2 is best with (2, 1), n = 3 with (1, 3); one of them has to yield, the cheaper does.
  const auto one = table_of({{{1, 1}, {10, 1}}});
  const auto two = table_of({{{1, 1}, {90, 1}}, {{1, 2}, {98, 1}}, {{2, 1}, {100, 1}}});
  const auto three = table_of({{{1, 1}, {80, 1}},
                               {{1, 2}, {85, 1}},
                               {{1, 3}, {100, 1}},
                               {{2, 1}, {81, 1}},
                               {{2, 2}, {82, 1}},
                               {{3, 1}, {70, 1}}});
  const auto lists = choose_threshold_lists({one, two, three});
  expect_safe(lists);
  BOOST_TEST(lists.of_model[0] == (list{1, 1, 1}), boost::test_tools::per_element());
  BOOST_TEST(lists.of_model[1] == (list{1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(lists.worst_loss_share() == 0.02, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_list_that_cannot_be_computed_says_why) {
  const auto model = ensemble({6, 12, 27}, {0.5, 0.3, 0.2});
  const auto lists = plan_threshold_lists(model, 6, {.states_max = 1000});
  BOOST_REQUIRE(!lists);
  BOOST_TEST((lists.error().code == errc::capacity));
  BOOST_TEST(!plan_threshold_lists(model, 0).has_value());
}
