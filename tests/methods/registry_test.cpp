#include <boost/test/unit_test.hpp>

#include "runtime/methods/registry.hpp"

using namespace tokenrouter;

namespace {

struct fault {
  std::vector<std::string> roles;
  method_parameters parameters;
  std::string message_part;
};

method_parameters given(std::string strategy, std::optional<double> threshold,
                        std::vector<double> thresholds = {}) {
  method_parameters x;
  x.switching_strategy = std::move(strategy);
  x.threshold = threshold;
  x.thresholds = std::move(thresholds);
  return x;
}

} // namespace

BOOST_AUTO_TEST_CASE(known_roles_are_made) {
  method_parameters neural;
  neural.threshold = 0.4;
  BOOST_TEST(make_role({0}, {{"plain"}, {0}}, neural).has_value());
  BOOST_TEST(make_role({0}, {{"r2r_slm", "r2r_llm"}, {0}}, neural).has_value());
  BOOST_TEST(make_role({1}, {{"r2r_slm", "r2r_llm"}, {0}}, neural).has_value());
  BOOST_TEST(make_role({2}, {{"cascade", "cascade", "cascade"}, {0}}, given("", {}, {0.1, 0.4}))
                 .has_value());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_made_is_named) {
  const std::vector<fault> faults{
      {{"r2r_sml"}, {}, "unknown scheduler 'r2r_sml'; known: plain, r2r_slm"},
      {{"r2r_slm"}, given("neural", 0.5), "exactly one model with scheduler: r2r_llm"},
      {{"r2r_slm", "r2r_llm"}, given("nueral", 0.5), "unknown strategy 'nueral'"},
      {{"r2r_slm", "r2r_llm"}, given("neural", {}), "method.threshold"},
      {{"cascade", "cascade"}, given("", {}, {0.1, 0.2}), "needs 1 thresholds, not 2"},
  };
  for (const auto& f : faults) {
    const auto made = make_role({0}, {f.roles, {0}}, f.parameters);
    BOOST_REQUIRE(!made);
    BOOST_TEST(made.error().message.find(f.message_part) != std::string::npos,
               made.error().message);
  }
}

BOOST_AUTO_TEST_CASE(method_state_round_trips_a_struct_and_starts_empty) {
  struct window {
    int count;
    float values[3];
  };
  method_state state;
  BOOST_TEST(state.size_bytes() == 0u);
  BOOST_TEST(state.get<window>().count == 0);
  state.set(window{2, {1.5f, 2.5f, 0}});
  BOOST_TEST(state.get<window>().values[1] == 2.5f);
}
