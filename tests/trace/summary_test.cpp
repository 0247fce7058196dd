#include <boost/test/unit_test.hpp>

#include "runtime/trace/summary.hpp"

using namespace tokenrouter;

namespace {

trace_file file_of(std::string host, std::vector<std::string> models = {"quick", "reference"}) {
  trace_file x;
  x.origin.host = std::move(host);
  x.origin.model_names = std::move(models);
  return x;
}

handoff_event handed(handoff_side side, std::uint64_t time_us, std::uint64_t request,
                     std::uint32_t turn, std::uint16_t from, std::uint16_t to) {
  handoff_event x;
  x.side = side;
  x.time_us = time_us;
  x.request = request;
  x.turn = turn;
  x.from_model = from;
  x.to_model = to;
  return x;
}

token_event made_by(std::uint16_t model) {
  token_event x;
  x.model = model;
  return x;
}

step_event step_of(std::uint16_t model, std::uint32_t rows, std::uint32_t tokens,
                   std::uint32_t prefill_tokens) {
  step_event x;
  x.model = model;
  x.rows = rows;
  x.tokens = tokens;
  x.prefill_tokens = prefill_tokens;
  x.wait_us = 10;
  x.plan_us = 20;
  x.turnaround_us = 130;
  x.step_us = 100;
  x.route_us = 5;
  return x;
}

request_event ended(std::uint32_t output_tokens, std::uint32_t ttft_us) {
  request_event x;
  x.output_tokens = output_tokens;
  x.ttft_us = ttft_us;
  return x;
}

constexpr auto sent = handoff_side::sent;
constexpr auto received = handoff_side::received;
using durations = std::vector<std::uint64_t>;

} // namespace

BOOST_AUTO_TEST_CASE(tokens_steps_and_requests_of_all_files_are_added_up) {
  auto a = file_of("here"), b = file_of("here");
  a.events.tokens = {made_by(0), made_by(0), made_by(0), made_by(9)}; // 9: no such model
  b.events.tokens = {made_by(1)};
  a.events.steps = {step_of(0, 3, 12, 10), step_of(0, 1, 1, 0), step_of(9, 1, 1, 1)};
  b.events.steps = {step_of(1, 2, 2, 0)};
  b.events.steps[0].turnaround_us = 90; // the clock of another thread: less than the step itself
  a.events.requests = {ended(5, 400), ended(0, 0), ended(3, 100)};
  const auto s = summarise({a, b}).value();
  BOOST_TEST(s.model_names == (std::vector<std::string>{"quick", "reference"}));
  BOOST_TEST(s.output_tokens == 5u);
  BOOST_TEST(s.requests == 3u);
  BOOST_TEST(s.ttft_us == (durations{100, 400})); // none of a request without a token
  BOOST_REQUIRE(s.models.size() == 2u);
  BOOST_TEST(s.models[0].tokens == 3u);
  BOOST_TEST(s.models[0].steps == 2u);
  BOOST_TEST(s.models[0].rows == 4u);
  BOOST_TEST(s.models[0].computed_tokens == 13u);
  BOOST_TEST(s.models[0].prefill_tokens == 10u);
  BOOST_TEST(s.models[0].stages.wait_us == 20u);
  BOOST_TEST(s.models[0].stages.plan_us == 40u);
  BOOST_TEST(s.models[0].stages.hop_us == 60u);
  BOOST_TEST(s.models[0].stages.step_us == 200u);
  BOOST_TEST(s.models[0].stages.route_us == 10u);
  BOOST_TEST(s.models[1].tokens == 1u);
  BOOST_TEST(s.models[1].computed_tokens == 2u);
  BOOST_TEST(s.models[1].stages.hop_us == 0u);
}

BOOST_AUTO_TEST_CASE(handoffs_are_counted_once_by_their_senders) {
  auto a = file_of("here"), b = file_of("here");
  a.events.handoffs = {handed(sent, 100, 1, 2, 0, 1), handed(received, 190, 1, 3, 1, 0),
                       handed(sent, 200, 1, 4, 0, 1)};
  b.events.handoffs = {handed(received, 103, 1, 2, 0, 1), handed(sent, 180, 1, 3, 1, 0),
                       handed(received, 201, 1, 4, 0, 1)};
  const auto s = summarise({a, b}).value();
  BOOST_TEST(s.handoffs.size() == 2u);
  BOOST_TEST(s.handoffs.at({0, 1}) == 2u);
  BOOST_TEST(s.handoffs.at({1, 0}) == 1u);
  BOOST_TEST(s.handoff_us == (durations{1, 3, 10}));
}

BOOST_AUTO_TEST_CASE(a_handoff_is_timed_only_where_both_ends_share_a_clock) {
  struct row {
    const char* what;
    std::string receiver_host;
    handoff_event arrival;
    durations times_us;
  };
  const std::vector<row> rows{
      {"same host", "here", handed(received, 105, 1, 2, 0, 1), {5}},
      {"another host", "there", handed(received, 105, 1, 2, 0, 1), {}},
      {"another turn", "here", handed(received, 105, 1, 3, 0, 1), {}},
      {"another request", "here", handed(received, 105, 2, 2, 0, 1), {}},
      {"before it was sent", "here", handed(received, 99, 1, 2, 0, 1), {}},
      {"at once", "here", handed(received, 100, 1, 2, 0, 1), {0}},
  };
  for (const auto& r : rows) {
    auto a = file_of("here"), b = file_of(r.receiver_host);
    a.events.handoffs = {handed(sent, 100, 1, 2, 0, 1)};
    b.events.handoffs = {r.arrival};
    // The order of the files on the command line is the user's.
    BOOST_TEST(summarise({a, b}).value().handoff_us == r.times_us, r.what);
    BOOST_TEST(summarise({b, a}).value().handoff_us == r.times_us, r.what);
  }
}

BOOST_AUTO_TEST_CASE(files_of_different_jobs_are_refused) {
  for (const auto& models : {std::vector<std::string>{"quick"},
                             {"reference", "quick"},
                             {"quick", "reference", "third"},
                             {}}) {
    const auto s = summarise({file_of("here"), file_of("here", models)});
    BOOST_REQUIRE(!s.has_value());
    BOOST_TEST((s.error().code == errc::mismatch));
    BOOST_TEST(s.error().message.find("models") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(no_files_and_empty_files_have_an_empty_summary) {
  BOOST_TEST(summarise({}).value().models.empty());
  const auto s = summarise({file_of("here"), file_of("there")}).value();
  BOOST_TEST(s.models.size() == 2u);
  BOOST_TEST(s.output_tokens == 0u);
  BOOST_TEST(s.requests == 0u);
  BOOST_TEST(to_text(s).find("0 requests, 0 tokens, 0 handoffs") != std::string::npos);
  BOOST_TEST(to_text(s).find("nan") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_text_names_models_and_gives_shares_and_quantiles) {
  auto a = file_of("here");
  for (int i = 0; i < 3; ++i)
    a.events.tokens.push_back(made_by(0));
  a.events.tokens.push_back(made_by(1));
  a.events.steps = {step_of(0, 3, 12, 10), step_of(0, 1, 1, 0)};
  a.events.requests = {ended(4, 2500)};
  a.events.handoffs = {handed(sent, 100, 1, 2, 0, 1), handed(received, 107, 1, 2, 0, 1),
                       handed(sent, 200, 1, 3, 1, 9)};
  const auto text = to_text(summarise({a}).value());
  for (const std::string piece :
       {"quick", "reference", "75.0 %", "25.0 %", "2.00", "handoffs quick -> reference: 1",
        "handoffs reference -> 9: 1", "1 requests, 4 tokens, 2 handoffs",
        "handoff p50 7 us, p99 7 us", "TTFT p50 2.5 ms, p99 2.5 ms"})
    BOOST_TEST(text.find(piece) != std::string::npos, piece << " is not in\n" << text);
}
