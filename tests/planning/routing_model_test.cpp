#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <vector>

#include "runtime/planning/routing_model.hpp"

using namespace tokenrouter;

namespace {

routing_model two_models() {
  routing_model model;
  model.latencies_ms = {6.0, 27.9};
  return model;
}

std::string refusal(const result<void>& got) {
  return got ? "accepted" : got.error().message;
}

} // namespace

BOOST_AUTO_TEST_CASE(presets_have_the_matrices_of_their_methods) {
  struct row {
    std::string preset;
    matrix_rows routing, committed_tokens;
  };
  const matrix_rows returns{{0.7, 0.3}, {1, 0}}, drops{{1, 0}, {1, 0}};
  const std::vector<row> rows{{"r2r", returns, drops},
                              {"citer", returns, drops},
                              {"co-llm", returns, drops},
                              {"rstitch", {{0.7, 0.3}, {0.2, 0.8}}, {{1, 0}, {1, 1}}},
                              {"ensemble", {{0.6, 0.4}, {0.6, 0.4}}, {{1, 1}, {1, 1}}}};
  for (const auto& row : rows) {
    auto model = two_models();
    preset_parameters parameters{0.3, 0.2, {0.6, 0.4}};
    BOOST_REQUIRE(apply_preset(model, row.preset, parameters));
    BOOST_TEST((model.routing == row.routing), row.preset);
    BOOST_TEST((model.committed_tokens == row.committed_tokens), row.preset);
    BOOST_TEST(check_routing_model(model).has_value(), row.preset);
  }
}

BOOST_AUTO_TEST_CASE(presets_that_do_not_fit_are_refused) {
  auto model = two_models();
  BOOST_TEST(refusal(apply_preset(model, "r2d2", {})).find("no preset 'r2d2'") == 0u);
  BOOST_TEST(refusal(apply_preset(model, "r2r", {1.5, 0.5, {}})).find("between 0 and 1") !=
             std::string::npos);
  BOOST_TEST(refusal(apply_preset(model, "ensemble", {0.3, 0.5, {1}})).find("1 weights for 2") !=
             std::string::npos);
  model.latencies_ms.push_back(50);
  BOOST_TEST(refusal(apply_preset(model, "r2r", {})).find("for 2 models") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(faults_of_a_model_are_named) {
  struct row {
    std::function<void(routing_model&)> spoil;
    std::string part;
  };
  const std::vector<row> rows{
      {[](auto& m) { m.latencies_ms.clear(); }, "0 latencies"},
      {[](auto& m) { m.latencies_ms[1] = 0; }, "latency of 0 ms"},
      {[](auto& m) { m.latencies_ms[1] = 1e9; }, "coarser grid"},
      {[](auto& m) { m.grid_ms = 0; }, "grid of 0 ms"},
      {[](auto& m) { m.entry = 2; }, "entry model 2"},
      {[](auto& m) { m.routing.pop_back(); }, "1 rows"},
      {[](auto& m) { m.routing[1].push_back(0); }, "row 1 of the routing matrix has 3 values"},
      {[](auto& m) {
         m.routing[0] = {0.5, 0.4};
       },
       "adds up to 0.9"},
      {[](auto& m) {
         m.routing[0] = {1.5, -0.5};
       },
       "chance of 1.5"},
      {[](auto& m) { m.committed_tokens[1][0] = -1; }, "committed-tokens matrix has -1"},
  };
  for (const auto& row : rows) {
    auto model = two_models();
    BOOST_REQUIRE(apply_preset(model, "r2r", {}));
    BOOST_REQUIRE(check_routing_model(model));
    row.spoil(model);
    BOOST_TEST(refusal(check_routing_model(model)).find(row.part) != std::string::npos,
               refusal(check_routing_model(model)));
  }
}

BOOST_AUTO_TEST_CASE(latencies_become_whole_ticks) {
  routing_model model;
  model.latencies_ms = {6.0, 27.94, 0.01};
  BOOST_TEST((std::vector<std::uint32_t>{step_ticks(model, 0, 1), step_ticks(model, 1, 9),
                                         step_ticks(model, 2, 1)}) ==
                 (std::vector<std::uint32_t>{60, 279, 1}),
             boost::test_tools::per_element());
}
