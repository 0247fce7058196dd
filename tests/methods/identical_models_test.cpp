#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/plain/plain.hpp"
#include "runtime/methods/random/route_draw.hpp"
#include "runtime/methods/topology.hpp"
#include "tests/methods/thinking_words.hpp"
#include "tests/methods/toy_job.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

struct method_case {
  std::vector<std::string> roles;
  std::function<void(method_parameters&)> set;
};

std::vector<method_case> every_method() {
  std::vector<method_case> out;
  for (const char* strategy :
       {"immediate", "entropy", "momentum", "single_rolling_window", "duo_rolling_window", "neural",
        "neural_rolling_window", "neural_multi_input", "random"})
    out.push_back({{"r2r_slm", "r2r_llm"}, [strategy](method_parameters& p) {
                     p.switching_strategy = strategy;
                     p.threshold = 0.5;
                     p.aleatoric_threshold = 0.5;
                   }});
  const auto half = [](method_parameters& p) { p.threshold = 0.5; };
  out.push_back({{"citer_slm", "citer_llm"}, half});
  for (const char* schedule : {"constant", "cosine"})
    out.push_back({{"collm_base", "collm_assist"}, [=](method_parameters& p) {
                     half(p);
                     p.schedule = schedule;
                   }});
  for (const char* on_return : {"keep_llm", "keep_own"})
    out.push_back({{"rstitch_slm", "rstitch_llm"}, [=](method_parameters& p) {
                     half(p);
                     p.on_return = on_return;
                   }});
  for (const char* answer_by : {"large", "small", "same"})
    out.push_back({{"glimprouter_slm", "glimprouter_llm"}, [=](method_parameters& p) {
                     half(p);
                     p.answer_by = answer_by;
                   }});
  for (const char* mode : {"r2r", "markov", "ensemble"})
    out.push_back({{"random_routing", "random_routing"}, [=](method_parameters& p) {
                     p.random_mode = mode;
                     p.weights = {0.5, 0.5};
                   }});
  out.push_back({std::vector<std::string>(2, "per_request_random_routing"), [](auto&) {}});
  for (const char* source : {"request", "hash", "entropy", "head"})
    out.push_back({std::vector<std::string>(2, "query_level_routing"), [=](method_parameters& p) {
                     half(p);
                     p.score_source = source;
                   }});
  out.push_back({{"speculate_slm", "speculate_llm"}, [](auto&) {}});
  out.push_back({std::vector<std::string>(3, "cascade"), [](method_parameters& p) {
                   p.thresholds = {0.3, 0.6};
                 }});
  return out;
}

/// Signals that look random but depend on the sequence alone.
void noisy_signals(std::span<const token_id> sequence, route_input& in) {
  std::uint64_t hash = 99;
  for (const token_id token : sequence)
    hash = hash * 31 + static_cast<std::uint64_t>(token);
  in.entropy_nats = route_draw(hash, 1);
  in.entropy_normalised = route_draw(hash, 2);
  in.entropy_top20_nats = route_draw(hash, 3);
  in.aleatoric = route_draw(hash, 4);
  in.epistemic = route_draw(hash, 5);
  in.head_score = route_draw(hash, 6);
}

} // namespace

BOOST_AUTO_TEST_CASE(models_that_are_alike_write_what_one_of_them_writes_whoever_routes) {
  for (const method_case& m : every_method()) {
    bool both_wrote = false;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      toy_job job;
      job.seed = seed;
      job.prompt = {static_cast<token_id>(seed), 3};
      job.parameters.token_bytes = thinking_words::all();
      job.topology = {m.roles, {0}};
      m.set(job.parameters);
      toy_model model = hashing_model(5);
      model.signals = noisy_signals;
      job.models.assign(m.roles.size(), model);
      const auto routed = job.run();
      BOOST_REQUIRE_MESSAGE(routed.ended, m.roles[0]);
      const double share = routed.share_of({0});
      both_wrote |= share > 0 && share < 1;

      toy_job single = job;
      single.topology = {{"plain"}, {0}};
      single.models = {model};
      BOOST_TEST_INFO(m.roles[0] << " seed " << seed);
      BOOST_TEST(routed.tokens() == single.run().tokens(), tt::per_element());
    }
    const bool by_request =
        m.roles[0] == "per_request_random_routing" || m.roles[0] == "query_level_routing";
    BOOST_TEST((both_wrote || by_request), m.roles[0] << " never used both models");
  }
}
