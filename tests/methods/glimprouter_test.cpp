#include <boost/test/unit_test.hpp>

#include <cmath>

#include "runtime/methods/glimprouter/glimprouter.hpp"
#include "tests/methods/thinking_words.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
using namespace tokenrouter::thinking_words;
namespace tt = boost::test_tools;
using ids = std::vector<token_id>;
using makers = std::vector<int>;

namespace {

/// Says `script` from the start of the output, then the end.
toy_model scripted(ids script, std::size_t prompt_tokens = 1) {
  return {[script = std::move(script), prompt_tokens](auto sequence) {
            const std::size_t at = sequence.size() - prompt_tokens;
            return at < script.size() ? script[at] : eos;
          },
          {}};
}

/// Both models say the same, so only who writes differs. `hard`: output positions at which the
/// small model's entropy reaches the threshold.
toy_job job_of(const ids& script, const std::vector<std::size_t>& hard) {
  toy_job job;
  job.topology = {{"glimprouter_slm", "glimprouter_llm"}, {0}};
  job.parameters.token_bytes = all();
  job.parameters.end_of_thinking = {line, end_mark, gap};
  job.models = {scripted(script), scripted(script)};
  job.models[0].signals = [hard](auto sequence, route_input& in) {
    in.entropy_top20_nats = 0.89f;
    for (const std::size_t at : hard)
      if (at == sequence.size() - 1)
        in.entropy_top20_nats = 0.91f;
  };
  return job;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_hard_first_token_gives_the_step_to_the_large_model) {
  const ids script{a, b, gap, b, a, gap, a, a, gap};
  // Position 4 is inside a step: nobody looks.
  toy_job job = job_of(script, {3, 4});
  const auto result = job.run();
  BOOST_TEST(result.tokens() == (ids{a, b, gap, b, a, gap, a, a, gap, eos}), tt::per_element());
  BOOST_TEST(result.makers() == (makers{0, 0, 0, 1, 1, 1, 0, 0, 0, 0}), tt::per_element());
  for (const routed_step& step : result.steps) {
    const bool looks = step.model.value == 0 && (step.position - 1) % 3 == 0;
    BOOST_TEST(std::isnan(step.decision.score) == !looks);
  }
  // The small model looks again right after the large one's step.
  job = job_of(script, {0, 3, 6});
  BOOST_TEST(job.run().makers() == (makers{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(equality_and_nan_go_to_the_large_model) {
  for (const auto& [entropy, maker] :
       {std::pair{0.5f, 1}, std::pair{0.4999f, 0}, std::pair{std::nanf(""), 1}}) {
    toy_job job = job_of({a}, {});
    job.parameters.threshold = 0.5;
    job.models[0].signals = [e = entropy](auto, route_input& in) { in.entropy_top20_nats = e; };
    BOOST_TEST(job.run().makers()[0] == maker);
  }
}

BOOST_AUTO_TEST_CASE(the_answer_belongs_to_the_chosen_model) {
  struct row {
    const char* answer_by;
    std::vector<std::size_t> hard;
    makers wanted;
  };
  const ids script{a, end_mark, gap, b, b};
  for (const auto& [answer_by, hard, wanted] :
       std::vector<row>{{"large", {}, {0, 0, 1, 1, 1, 1}},
                        {"large", {0}, {1, 1, 1, 1, 1, 1}},
                        {"small", {}, {0, 0, 0, 0, 0, 0}},
                        {"small", {0}, {1, 1, 0, 0, 0, 0}},
                        {"same", {}, {0, 0, 0, 0, 0, 0}},
                        {"same", {0}, {1, 1, 1, 1, 1, 1}}}) {
    toy_job job = job_of(script, hard);
    job.parameters.answer_by = answer_by;
    const auto result = job.run();
    BOOST_TEST(result.makers() == wanted, tt::per_element());
    BOOST_TEST(result.tokens() == (ids{a, end_mark, gap, b, b, eos}), tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(spent_thinking_is_closed_and_the_answerer_goes_on) {
  struct row {
    const char* answer_by;
    std::vector<std::size_t> hard;
    makers wanted; ///< of the closing mark and what follows
  };
  // Three equal steps, the third of which spends the thinking; then two tokens of answer.
  const ids script{a, gap, a, gap, a, gap, b, b, b, b, b};
  for (const auto& [answer_by, hard, wanted] : std::vector<row>{{"large", {}, {1, 1, 1, 1, 1, 1}},
                                                                {"large", {4}, {1, 1, 1, 1, 1, 1}},
                                                                {"small", {4}, {0, 0, 0, 0, 0, 0}},
                                                                {"same", {4}, {1, 1, 1, 1, 1, 1}},
                                                                {"same", {}, {0, 0, 0, 0, 0, 0}}}) {
    toy_job job = job_of(script, hard);
    job.parameters.answer_by = answer_by;
    const auto result = job.run();
    BOOST_TEST(result.tokens() == (ids{a, gap, a, gap, a, gap, line, end_mark, gap, b, b, eos}),
               tt::per_element());
    const auto all_makers = result.makers();
    BOOST_TEST(makers(all_makers.begin() + 6, all_makers.end()) == wanted, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_budget_closes_the_thinking_in_the_middle_of_a_step) {
  toy_job job = job_of({a, b, a, b, a, b, a, b}, {});
  job.parameters.thinking_tokens_max = 3;
  BOOST_TEST(job.run().tokens() == (ids{a, b, a, line, end_mark, gap, a, b, eos}),
             tt::per_element());
}

BOOST_AUTO_TEST_CASE(without_a_mark_the_answer_just_begins) {
  toy_job job = job_of({a, b, a, b, a}, {});
  job.parameters.thinking_tokens_max = 2;
  job.parameters.end_of_thinking = {};
  const auto result = job.run();
  BOOST_TEST(result.tokens() == (ids{a, b, a, b, a, eos}), tt::per_element());
  BOOST_TEST(result.makers() == (makers{0, 0, 1, 1, 1, 1}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(an_end_inside_the_thinking_ends_the_request) {
  BOOST_TEST(job_of({a, gap}, {}).run().tokens() == (ids{a, gap, eos}), tt::per_element());
  // A small model's end at a hard boundary is dropped as any other token.
  toy_job job = job_of({a, gap}, {2});
  job.models[1] = scripted({a, gap, b, b});
  BOOST_TEST(job.run().tokens() == (ids{a, gap, b, b, eos}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(first_steps_may_be_the_small_models_unasked) {
  toy_job job = job_of({a, gap, b, gap, a, gap}, {0, 2, 4});
  job.parameters.first_small_steps_count = 2;
  BOOST_TEST(job.run().makers() == (makers{0, 0, 0, 0, 1, 1, 0}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(thinking_begins_where_the_config_says) {
  struct row {
    const char* thinking;
    const char* answer_by;
    ids prompt;
    int first_maker;
  };
  const ids open{a, open_mark, line}, closed{a, open_mark, gap, end_mark, gap};
  for (const auto& [thinking, answer_by, prompt, first_maker] :
       std::vector<row>{{"output_start", "large", closed, 0},
                        {"prompt", "large", open, 0},
                        {"prompt", "large", closed, 1},
                        {"prompt", "small", closed, 0},
                        {"prompt", "same", closed, 0},
                        {"never", "large", open, 1},
                        {"never", "small", open, 0}}) {
    toy_job job = job_of({}, {});
    job.parameters.thinking = thinking;
    job.parameters.answer_by = answer_by;
    job.prompt = prompt;
    // Two steps: an answer is not cut.
    job.models = {scripted({a, gap, b}, prompt.size()), scripted({a, gap, b}, prompt.size())};
    job.models[0].signals = [&](auto sequence, route_input& in) {
      in.entropy_top20_nats = sequence.size() > prompt.size() ? 2.0f : 0.0f;
    };
    const bool thinks =
        thinking == std::string("output_start") || (thinking[0] == 'p' && prompt == open);
    const auto result = job.run();
    BOOST_TEST(result.makers() == (thinks ? makers{0, 0, 1, 1} : makers(4, first_maker)),
               tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(glimprouters_that_can_not_be_made_are_refused) {
  struct row {
    std::function<void(method_parameters&)> spoil;
    const char* part;
  };
  const row rows[] = {
      {[](method_parameters& p) { p.token_bytes = nullptr; }, "the text of tokens is not known"},
      {[](method_parameters& p) { p.answer_by = "both"; }, "must be large, small or same"},
      {[](method_parameters& p) { p.thinking = "always"; },
       "must be output_start, prompt or never"},
      {[](method_parameters& p) { p.step_tokens_max = 0; }, "must be at least 1"},
  };
  for (const row& r : rows) {
    toy_job job = job_of({}, {});
    r.spoil(job.parameters);
    const auto refused = make_entry(job.topology, job.parameters);
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().message.find(r.part) != std::string::npos, refused.error().message);
  }
}
