#include <boost/test/unit_test.hpp>

#include <random>

#include "runtime/methods/registry.hpp"
#include "tests/methods/thinking_words.hpp"

using namespace tokenrouter;

namespace {

struct row {
  std::vector<std::string> roles;
  std::function<void(method_parameters&)> set;
  double largest = 0; ///< what a request's threshold may be; 0: there is none
};

method_parameters parameters_of(const row& x, double threshold) {
  method_parameters out;
  out.threshold = threshold;
  x.set(out);
  return out;
}

/// Decisions of every role, in turn, on the same random signals: one letter a position and role.
std::string decisions(const row& x, double jobs, std::optional<double> own) {
  const auto parameters = parameters_of(x, jobs);
  std::mt19937 random(7);
  const auto share = [&] { return static_cast<float>(random() % 1000) / 1000.0f; };
  std::string out;
  const std::vector<token_id> prompt{1, 2, 1, 2};
  method_state state = make_entry({x.roles, {0}}, parameters).value()->start({1, prompt}).state;
  for (std::uint16_t model = 0; model < x.roles.size(); ++model) {
    const auto role = make_role({model}, {x.roles, {0}}, parameters).value();
    for (std::uint32_t n = 0; n < 200; ++n) {
      route_input in;
      in.prompt_tokens = 4;
      in.position = x.roles[0] == "query_level_routing" ? 4 : 4 + n;
      in.threshold = own;
      in.proposed = thinking_words::gap;
      in.entropy_nats = in.entropy_normalised = in.entropy_top20_nats = share();
      in.head_score = share();
      in.aleatoric = in.epistemic = share();
      out += static_cast<char>('a' + static_cast<int>(role->route(in, state).action));
    }
  }
  return out;
}

std::string starts(const row& x, double jobs, std::optional<double> own) {
  const auto entry = make_entry({x.roles, {0}}, parameters_of(x, jobs)).value();
  std::string out;
  for (token_id n = 0; n < 50; ++n) {
    const std::vector<token_id> prompt{n, 3};
    out += static_cast<char>('0' + entry->start({1, prompt, 0.3f, own}).model.value);
  }
  return out;
}

const std::vector<std::string> r2r{"r2r_slm", "r2r_llm"}, citer{"citer_slm", "citer_llm"},
    collm{"collm_base", "collm_assist"}, rstitch{"rstitch_slm", "rstitch_llm"},
    glimpse{"glimprouter_slm", "glimprouter_llm"},
    query{"query_level_routing", "query_level_routing"};

auto strategy(const char* name) {
  return [name](method_parameters& x) { x.switching_strategy = name; };
}
auto source(const char* name) {
  return [name](method_parameters& x) { x.score_source = name; };
}

} // namespace

BOOST_AUTO_TEST_CASE(a_requests_threshold_decides_as_the_jobs_would) {
  const std::vector<row> rows{
      {r2r, strategy("neural"), 1},
      {r2r, strategy("entropy"), nats_max},
      {r2r, strategy("neural_rolling_window"), 1},
      {r2r, strategy("neural_multi_input"), 1},
      {citer, [](auto&) {}, 1},
      {collm, [](auto&) {}, 1},
      {collm, [](auto& x) { x.schedule = "linear"; }, 1},
      {rstitch, [](auto&) {}, 1},
      {rstitch, [](auto& x) { x.entropy_unit = "nats"; }, nats_max},
      {glimpse, [](auto& x) { x.token_bytes = thinking_words::all(); }, 3.0},
      {query, source("entropy"), 1},
      {query, source("head"), 1},
      {query, source("request"), 1},
      {query, source("hash"), 1}};
  for (const row& x : rows) {
    const auto needs = make_role({0}, {x.roles, {0}}, parameters_of(x, 0.8)).value()->needs();
    const std::string name = x.roles[0] + " " + parameters_of(x, 0).switching_strategy + " " +
                             parameters_of(x, 0).score_source;
    BOOST_TEST(needs.request_threshold_max == x.largest, name);
    BOOST_TEST(decisions(x, 0.8, 0.2) == decisions(x, 0.2, {}), name);
    BOOST_TEST(starts(x, 0.8, 0.2) == starts(x, 0.2, {}), name);
    BOOST_TEST(decisions(x, 0.8, {}) + starts(x, 0.8, {}) !=
                   decisions(x, 0.2, {}) + starts(x, 0.2, {}),
               name);
  }
}

BOOST_AUTO_TEST_CASE(methods_without_one_threshold_say_so) {
  for (const row& x :
       std::vector<row>{{r2r, strategy("immediate")},
                        {r2r, strategy("momentum")},
                        {r2r, strategy("single_rolling_window")},
                        {r2r, strategy("random")},
                        {{"plain"}, [](auto&) {}},
                        {{"cascade", "cascade"}, [](auto& p) { p.thresholds = {0.5}; }},
                        {{"query_level_routing", "query_level_routing", "query_level_routing"},
                         [](auto& p) {
                           p.score_source = "hash";
                           p.thresholds = {0.3, 0.6};
                         }},
                        {{"random_routing", "random_routing"}, [](auto&) {}}})
    for (std::uint16_t model = 0; model < x.roles.size(); ++model)
      BOOST_TEST(make_role({model}, {x.roles, {0}}, parameters_of(x, 0.5))
                     .value()
                     ->needs()
                     .request_threshold_max == 0);
}
