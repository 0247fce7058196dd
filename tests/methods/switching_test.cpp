#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/methods/r2r/defaults.hpp"
#include "runtime/methods/r2r/immediate_switching.hpp"
#include "runtime/methods/r2r/momentum_switching.hpp"
#include "runtime/methods/r2r/multi_input_switching.hpp"
#include "runtime/methods/r2r/random_switching.hpp"
#include "runtime/methods/r2r/switching.hpp"
#include "runtime/methods/r2r/threshold_switching.hpp"
#include "runtime/methods/r2r/window_switching.hpp"

using namespace tokenrouter;

namespace {

const float nan_value = std::nanf("");

route_input with(float aleatoric, float entropy = 0, float head = 0, float epistemic = 0) {
  route_input in;
  in.aleatoric = aleatoric;
  in.entropy_nats = entropy;
  in.head_score = head;
  in.epistemic = epistemic;
  return in;
}

/// One letter a position: L for large.
std::string decisions(const switching_strategy& strategy, const std::vector<route_input>& inputs,
                      method_state state = {}) {
  std::string out;
  for (const route_input& in : inputs)
    out += strategy.decide(in, state).to_large ? 'L' : 'S';
  return out;
}

std::unique_ptr<switching_strategy> made(const std::string& name,
                                         std::optional<double> threshold = {}) {
  method_parameters parameters;
  parameters.switching_strategy = name;
  parameters.threshold = threshold;
  return make_switching_strategy(parameters).value();
}

std::vector<route_input> aleatorics(const std::vector<float>& values) {
  std::vector<route_input> out;
  for (const float x : values)
    out.push_back(with(x));
  return out;
}

std::vector<route_input> heads(const std::vector<float>& values) {
  std::vector<route_input> out;
  for (const float x : values)
    out.push_back(with(0, 0, x));
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(neural_and_entropy_go_at_the_threshold_and_for_nan) {
  BOOST_TEST(decisions(*made("neural", 0.25), heads({0, 0.2499f, 0.25f, 1, nan_value})) == "SSLLL");
  BOOST_TEST(decisions(*made("entropy", 0.5),
                       {with(9, 0.4999f, 9), with(0, 0.5f), with(0, nan_value)}) == "SLL");
  BOOST_TEST(decisions(*made("entropy"), {with(0, 0.4499f), with(0, 0.4501f)}) == "SL");
}

BOOST_AUTO_TEST_CASE(immediate_goes_where_every_metric_reaches_its_threshold) {
  const immediate_switching by_default({}, {}, {});
  BOOST_TEST(decisions(by_default, aleatorics({2.2749f, 2.2751f, nan_value})) == "SLL");
  const immediate_switching all(2.0, 0.05, 0.5);
  BOOST_TEST(decisions(all, {with(2, 0.5f, 0, 0.0500001f), with(1.9f, 9, 0, 9), with(9, 0.4f, 0, 9),
                             with(9, 9, 0, 0.04f), with(1, nan_value, 0, 9)}) == "LSSSL");
  const immediate_switching one({}, {}, 0.5);
  BOOST_TEST(decisions(one, {with(nan_value, 0.4f), with(0, 0.5f)}) == "SL");
}

BOOST_AUTO_TEST_CASE(momentum_returns_after_three_simple_tokens_and_goes_after_four_hard_ones) {
  const auto strategy = made("momentum");
  BOOST_TEST(decisions(*strategy, aleatorics({1, 1, 1, 1, 1, 1})) == "LLLSSS");
  // Forty simple tokens bring m to 1 within 1e-6; four hard ones to 0.240.
  std::vector<float> values(40, 1.0f);
  values.insert(values.end(), {3, 3, 3, 3, 3});
  BOOST_TEST(decisions(*strategy, aleatorics(values)).substr(40) == "SSSLL");
  BOOST_TEST(decisions(*strategy, aleatorics({2.275f, 2.276f, 2.274f, 2.274f, 2.274f, 2.274f,
                                              nan_value})) == "LLLLLSL");
}

BOOST_AUTO_TEST_CASE(a_single_window_opens_with_the_value_that_went) {
  const auto strategy = made("single_rolling_window");
  // From reset: the first value decides alone.
  BOOST_TEST(decisions(*strategy, {with(2.2f, 1)}) == "S");
  BOOST_TEST(decisions(*strategy, {with(2.3f, 1)}) == "L");
  // S; 3.0 goes; window 3.0 1.0 (mean 2.0) returns; a hard token with little entropy stays.
  BOOST_TEST(decisions(*strategy, {with(1, 1), with(3, 1), with(1, 1), with(3, 0.01f)}) == "SLSS");
  // Window 3.0 2.0 (mean 2.5) stays, 3.0 2.0 1.9 (2.3) stays, 2.0 1.9 1.9 returns.
  BOOST_TEST(decisions(*strategy, {with(1, 1), with(3, 1), with(2, 1), with(1.9f, 1),
                                   with(1.9f, 1)}) == "SLLLS");
  BOOST_TEST(decisions(*strategy, {with(1, 1), with(nan_value, 0)}) == "SL");
  BOOST_TEST(decisions(*strategy, {with(1, 1), with(1, nan_value)}) == "SL");
}

BOOST_AUTO_TEST_CASE(a_duo_window_leaves_out_the_value_that_went_and_reads_no_entropy) {
  const auto strategy = made("duo_rolling_window");
  BOOST_TEST(decisions(*strategy, {with(1, 1), with(3, 0), with(2, 1), with(3, 0)}) == "SLSL");
  // Window 3.0 stays, 3.0 1.0 returns.
  BOOST_TEST(decisions(*strategy, aleatorics({1, 3, 3, 1, 1})) == "SLLSS");
  BOOST_TEST(decisions(*strategy, aleatorics({1, nan_value, nan_value})) == "SLL");
}

BOOST_AUTO_TEST_CASE(a_neural_window_averages_the_heads_scores) {
  const auto strategy = made("neural_rolling_window", 0.5);
  BOOST_TEST(decisions(*strategy, heads({0.4f, 0.5f, 0.5f, 0.49f, 0.4f})) == "SLLSS");
  // 0.9 0.3 (0.6) 0.3 (0.5) stay, 0.3 0.3 0.4 returns.
  BOOST_TEST(decisions(*strategy, heads({0.4f, 0.9f, 0.3f, 0.3f, 0.4f, 0.4f})) == "SLLLSS");
  BOOST_TEST(decisions(*strategy, heads({nan_value})) == "L");
}

BOOST_AUTO_TEST_CASE(windows_of_requests_do_not_touch_each_other) {
  const std::vector<float> a{1, 3, 2, 1.9f, 1, 3, 1, 1}, b{3, 3, 1, 1, 1, 2.2f, 3, 2};
  for (const char* name : {"momentum", "single_rolling_window", "duo_rolling_window"}) {
    const auto strategy = made(name);
    method_state one, other;
    std::string got_a, got_b;
    for (std::size_t i = 0; i < a.size(); ++i) {
      got_a += strategy->decide(with(a[i], 1), one).to_large ? 'L' : 'S';
      got_b += strategy->decide(with(b[i], 1), other).to_large ? 'L' : 'S';
    }
    std::vector<route_input> alone_a, alone_b;
    for (std::size_t i = 0; i < a.size(); ++i) {
      alone_a.push_back(with(a[i], 1));
      alone_b.push_back(with(b[i], 1));
    }
    BOOST_TEST(got_a == decisions(*strategy, alone_a), name);
    BOOST_TEST(got_b == decisions(*strategy, alone_b), name);
    BOOST_TEST(got_a != got_b, name);
  }
}

BOOST_AUTO_TEST_CASE(a_window_of_many_positions_fits_the_state) {
  method_parameters parameters;
  parameters.switching_strategy = "duo_rolling_window";
  parameters.window_tokens = r2r_defaults::window_tokens_max;
  const auto strategy = make_switching_strategy(parameters).value();
  std::vector<float> values(100, 3.0f);
  BOOST_TEST(decisions(*strategy, aleatorics(values)) == std::string(100, 'L'));
}

BOOST_AUTO_TEST_CASE(multi_input_is_large_until_its_window_is_full) {
  const multi_input_switching strategy(3, 0.5);
  method_state state;
  std::string out;
  for (std::uint32_t position = 10; position < 16; ++position) {
    route_input in = with(0, 0, position == 14 ? 0.5f : position == 15 ? nan_value : 0.49f);
    in.prompt_tokens = 10;
    in.position = position;
    out += strategy.decide(in, state).to_large ? 'L' : 'S';
  }
  BOOST_TEST(out == "LLSSLL");
  BOOST_TEST(strategy.needs().head_window_positions == 3u);
  BOOST_TEST(strategy.needs().heads == std::vector<std::string>{"r2r_multi"});
}

BOOST_AUTO_TEST_CASE(random_goes_at_its_share_and_repeats_itself) {
  const random_switching strategy(0.3);
  method_state state;
  int larges = 0;
  for (std::uint32_t position = 0; position < 4000; ++position) {
    route_input in;
    in.seed = 42;
    in.position = position;
    const auto first = strategy.decide(in, state);
    larges += first.to_large;
    BOOST_REQUIRE(first.to_large == strategy.decide(in, state).to_large);
  }
  // Four standard errors: 4 · sqrt(4000 · 0.3 · 0.7) = 116.
  BOOST_TEST(std::abs(larges - 1200) < 116);
  BOOST_TEST(decisions(random_switching(0), {{}, {}}) == "SS");
  BOOST_TEST(decisions(random_switching(1), {{}, {}}) == "LL");
}

BOOST_AUTO_TEST_CASE(each_strategy_asks_for_the_signals_it_reads) {
  struct row {
    std::string name;
    signal_set signals;
    std::vector<std::string> heads;
  };
  for (const auto& [name, signals, kinds] :
       std::vector<row>{{"immediate", to_set(signal::evidence), {}},
                        {"entropy", to_set(signal::entropy), {}},
                        {"momentum", to_set(signal::evidence), {}},
                        {"single_rolling_window", signal::evidence | signal::entropy, {}},
                        {"duo_rolling_window", to_set(signal::evidence), {}},
                        {"neural", to_set(signal::heads), {"r2r"}},
                        {"neural_rolling_window", to_set(signal::heads), {"r2r"}},
                        {"neural_multi_input", to_set(signal::heads), {"r2r_multi"}},
                        {"random", 0, {}}}) {
    const auto needs = made(name, 0.5)->needs();
    BOOST_TEST(needs.signals == signals, name);
    BOOST_TEST(needs.heads == kinds, name);
  }
  BOOST_TEST(immediate_switching({}, {}, 0.5).needs().signals == to_set(signal::entropy));
}

BOOST_AUTO_TEST_CASE(strategies_that_can_not_be_made_are_refused) {
  struct row {
    std::string name;
    std::uint32_t window_tokens;
    std::string part;
  };
  for (const auto& [name, window, part] :
       std::vector<row>{{"nueral", 3, "unknown strategy 'nueral'; known: immediate, entropy"},
                        {"neural", 3, "method.threshold: r2r needs one"},
                        {"neural_rolling_window", 3, "method.threshold: r2r needs one"},
                        {"single_rolling_window", 0, "method.window_tokens: must be 1 to 16"},
                        {"duo_rolling_window", 17, "not 17"},
                        {"neural_multi_input", 0, "not 0"}}) {
    method_parameters parameters;
    parameters.switching_strategy = name;
    parameters.window_tokens = window;
    const auto refused = make_switching_strategy(parameters);
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().message.find(part) != std::string::npos, refused.error().message);
  }
}
