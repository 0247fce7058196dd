#include <boost/test/unit_test.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/safetensors.hpp"

using namespace tokenrouter;

namespace {

constexpr std::uint32_t hidden_size = 64;
const std::string routers = "examples/models/abacus/routers/";

std::unique_ptr<routing_head> load(const std::string& kind) {
  auto head = load_head({kind, routers + kind + ".safetensors"}, hidden_size);
  BOOST_REQUIRE_MESSAGE(head.has_value(), (head ? std::string() : head.error().message));
  return std::move(*head);
}

/// The recorded steps of the oracle, with the embedding of the proposed token looked up.
struct recorded_step {
  std::vector<float> hidden, embedding, top_logits;
  double r2r, citer, collm;

  head_input input() const { return {hidden, embedding, top_logits}; }
};

std::vector<recorded_step> recorded_steps() {
  std::ifstream stream("tests/data/oracle/heads.json");
  const auto root = nlohmann::json::parse(stream);
  auto files = weight_files::open("examples/models/abacus/abacus-xs");
  BOOST_REQUIRE(files);
  const auto embeddings = to_float(*files->find("model.embed_tokens.weight"));
  std::vector<recorded_step> out;
  for (const auto& item : root["items"])
    for (const auto& step : item["steps"]) {
      const auto row = embeddings.begin() + step["proposed"].get<std::ptrdiff_t>() * hidden_size;
      out.push_back({step["hidden"],
                     {row, row + hidden_size},
                     step["top_logits"],
                     step["r2r"],
                     step["citer"],
                     step["collm"]});
    }
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(heads_agree_with_the_recorded_scores) {
  const auto r2r = load("r2r"), citer = load("citer"), collm = load("collm");
  const auto steps = recorded_steps();
  BOOST_TEST(steps.size() == 24u);
  for (const auto& step : steps) {
    BOOST_TEST(std::abs(r2r->score(step.input()) - step.r2r) < 1e-5);
    BOOST_TEST(std::abs(citer->score(step.input()) - step.citer) < 1e-5);
    BOOST_TEST(std::abs(collm->score(step.input()) - step.collm) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(a_score_does_not_depend_on_the_row_before) {
  const auto steps = recorded_steps();
  for (const char* kind : {"r2r", "citer", "collm"}) {
    const auto fresh = load(kind), used = load(kind);
    const float want = fresh->score(steps[3].input());
    used->score(steps[9].input());
    BOOST_TEST(used->score(steps[3].input()) == want);
  }
}

BOOST_AUTO_TEST_CASE(heads_say_what_they_read) {
  BOOST_TEST(load("r2r")->top_logits_wanted() == 100u);
  BOOST_TEST(load("r2r")->wants_proposed_embedding());
  for (const char* kind : {"citer", "collm"}) {
    BOOST_TEST(load(kind)->top_logits_wanted() == 0u);
    BOOST_TEST(!load(kind)->wants_proposed_embedding());
  }
  BOOST_TEST(load("collm")->weight_bytes() == 4u * (64 + 1));
  BOOST_TEST(load("citer")->weight_bytes() == 4u * (128 * 64 + 128 + 128 + 1));
  BOOST_TEST(load("r2r")->weight_bytes() > 4u * 55000);
}

BOOST_AUTO_TEST_CASE(a_nan_in_the_hidden_state_gives_a_nan_score) {
  auto step = recorded_steps()[0];
  step.hidden[5] = std::numeric_limits<float>::quiet_NaN();
  for (const char* kind : {"r2r", "citer", "collm"})
    BOOST_TEST(std::isnan(load(kind)->score(step.input())), kind);
}

BOOST_AUTO_TEST_CASE(thresholds_are_those_of_the_descriptions) {
  BOOST_TEST(head_threshold({"r2r", routers + "r2r.safetensors"}).value() == 0.04);
  BOOST_TEST(head_threshold({"citer", routers + "citer.safetensors"}).value() == 0.995);
  BOOST_TEST(head_threshold({"collm", routers + "collm.safetensors"}).value() == 0.01);
}
