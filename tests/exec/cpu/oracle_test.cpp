#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "tests/exec/cpu/test_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

using json = nlohmann::json;

constexpr double tolerance = 1e-3;

json read(const std::string& name) {
  std::ifstream in("tests/data/oracle/" + name);
  BOOST_REQUIRE_MESSAGE(in.good(), "run from the source root: " << name);
  return json::parse(in);
}

load_options options_of(const std::string& size, compute_type compute) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-" + size;
  options.compute = compute;
  return options;
}

double distance(const std::vector<float>& a, const std::vector<double>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

void check_top5(const std::vector<float>& logits, const json& top5) {
  for (std::size_t i = 0; i < top5[0].size(); ++i) {
    const double found = logits.at(top5[0][i].get<std::size_t>());
    BOOST_TEST(std::abs(found - top5[1][i].get<double>()) < tolerance);
  }
}

/// Follows the oracle's tokens and compares what the model says at each. Tokens are fed from the
/// oracle, so one fault does not hide those after it.
void follow(backend& model, const json& prompt, const json& expected) {
  sequence s;
  s.tokens = prompt["prompt_ids"].get<std::vector<token_id>>();
  const auto output = expected["output_ids"].get<std::vector<token_id>>();
  std::set<std::size_t> ties;
  for (const auto& tie : expected["near_ties"])
    ties.insert(tie["pos"].get<std::size_t>());
  s.blocks = blocks_for(static_cast<std::uint32_t>(s.tokens.size() + output.size()), 0);
  row_record record = finish_prompt(model, s);
  if (expected.contains("last_prompt_hidden"))
    BOOST_TEST(distance(record.hidden, expected["last_prompt_hidden"].get<std::vector<double>>()) <
               tolerance);
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (!ties.contains(i))
      BOOST_REQUIRE_EQUAL(record.out.token, output[i]);
    if (expected.contains("top5"))
      check_top5(record.logits, expected["top5"][i]);
    s.tokens.push_back(output[i]);
    if (i + 1 < output.size())
      record = finish_prompt(model, s);
  }
}

void follow_prompts(const std::string& size, std::size_t prompt_count) {
  const json prompts = read("prompts.json")["prompts"];
  const json items = read("greedy-abacus-" + size + ".json")["items"];
  const auto model = load(options_of(size, compute_type::float32), 128);
  std::size_t followed = 0;
  for (const auto& item : items)
    for (const auto& prompt : prompts)
      if (prompt["index"] == item["index"] && followed < prompt_count) {
        BOOST_TEST_CONTEXT("prompt " << item["index"]) {
          follow(*model, prompt, item);
        }
        ++followed;
      }
  BOOST_TEST(followed == prompt_count);
}

} // namespace

BOOST_AUTO_TEST_CASE(xs_in_float32_meets_the_oracle_token_for_token) {
  follow_prompts("xs", 32);
}
BOOST_AUTO_TEST_CASE(s_in_float32_meets_the_oracle_token_for_token) {
  follow_prompts("s", 32);
}
BOOST_AUTO_TEST_CASE(m_in_float32_meets_the_oracle_token_for_token) {
  follow_prompts("m", 32);
}

BOOST_AUTO_TEST_CASE(bfloat16_stays_near_the_oracle) {
  const json prompts = read("prompts.json")["prompts"];
  const json items = read("greedy-abacus-m.json")["items"];
  const auto model = load(options_of("m", compute_type::bfloat16), 128);
  std::size_t positions = 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto output = items[i]["output_ids"].get<std::vector<token_id>>();
    sequence s;
    s.tokens = prompts[i]["prompt_ids"].get<std::vector<token_id>>();
    s.blocks = blocks_for(static_cast<std::uint32_t>(s.tokens.size() + output.size()), 0);
    for (const token_id wanted : output) {
      equal += finish_prompt(*model, s).out.token == wanted;
      ++positions;
      s.tokens.push_back(wanted);
    }
  }
  BOOST_TEST_MESSAGE("bf16 agrees at " << equal << " of " << positions << " positions");
  BOOST_TEST(static_cast<double>(equal) >= 0.98 * static_cast<double>(positions));
}
