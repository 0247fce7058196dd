#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/gpu/gpu_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

using json = nlohmann::json;

json read(const std::string& name) {
  std::ifstream in("tests/data/oracle/" + name);
  BOOST_REQUIRE_MESSAGE(in.good(), "run from the source root: " << name);
  return json::parse(in);
}

struct agreement {
  std::size_t positions = 0;
  std::size_t equal = 0;
};

/// Feeds the oracle's tokens to all requests at once, one step a token, and counts what the model
/// says. Near ties of the oracle are left out.
agreement follow(const std::string& size, compute_type compute, std::uint32_t shards = 1,
                 std::optional<bool> one_kernel = {}) {
  const json prompts = read("prompts.json")["prompts"];
  const json items = read("greedy-abacus-" + size + ".json")["items"];
  load_options options;
  options.model_path = "examples/models/abacus/abacus-" + size;
  options.compute = compute;
  std::unique_ptr<backend> model;
  if (shards == 1) {
    model = load_on_gpu(options, 2048, true, one_kernel);
  } else {
    auto team = shard_team::load(options, shards);
    BOOST_REQUIRE_MESSAGE(team.has_value(), (team ? std::string() : team.error().message));
    BOOST_REQUIRE((*team)->allocate_kv(2048).has_value());
    model = std::move(*team);
  }
  std::vector<sequence> all;
  std::vector<std::vector<token_id>> outputs;
  std::vector<std::set<std::size_t>> ties;
  block_id next_block = 0;
  for (const auto& item : items)
    for (const auto& prompt : prompts)
      if (prompt["index"] == item["index"]) {
        sequence s;
        s.tokens = prompt["prompt_ids"].get<std::vector<token_id>>();
        outputs.push_back(item["output_ids"].get<std::vector<token_id>>());
        s.blocks = blocks_for(static_cast<std::uint32_t>(s.tokens.size() + outputs.back().size()),
                              next_block);
        next_block += static_cast<block_id>(s.blocks.size());
        all.push_back(s);
        ties.emplace_back();
        for (const auto& tie : item["near_ties"])
          ties.back().insert(tie["pos"].get<std::size_t>());
      }
  agreement result;
  for (std::size_t at = 0;; ++at) {
    step_input in;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (at < outputs[i].size()) {
        add_row(in, all[i], static_cast<std::uint32_t>(all[i].tokens.size()) - all[i].computed,
                true);
        who.push_back(i);
      }
    if (who.empty())
      return result;
    step_output out;
    model->step(in, out);
    for (std::size_t row = 0; row < who.size(); ++row) {
      const std::size_t i = who[row];
      if (!ties[i].contains(at)) {
        ++result.positions;
        result.equal += out.rows[row].token == outputs[i][at];
      }
      all[i].tokens.push_back(outputs[i][at]);
    }
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(in_float32_the_oracle_is_met_token_for_token) {
  for (const char* size : {"xs", "s", "m"}) {
    const auto result = follow(size, compute_type::float32);
    BOOST_TEST_MESSAGE(size << ": " << result.equal << " of " << result.positions);
    BOOST_TEST(result.positions > 100u);
    BOOST_TEST(result.equal == result.positions);
  }
}

BOOST_AUTO_TEST_CASE(two_shards_meet_the_oracle_in_float32,
                     *boost::unit_test::precondition(has_gpus{2})) {
  for (const char* size : {"s", "m"}) {
    const auto result = follow(size, compute_type::float32, 2);
    BOOST_TEST_MESSAGE(size << ": " << result.equal << " of " << result.positions);
    BOOST_TEST(result.positions > 100u);
    BOOST_TEST(result.equal == result.positions);
  }
}

BOOST_AUTO_TEST_CASE(bfloat16_stays_near_the_oracle) {
  for (const bool one_kernel : {false, true})
    for (const char* size : {"xs", "s", "m"}) {
      const auto result = follow(size, compute_type::bfloat16, 1, one_kernel);
      BOOST_TEST_MESSAGE(size << (one_kernel ? ", one kernel: " : ": ") << result.equal << " of "
                              << result.positions);
      BOOST_TEST(static_cast<double>(result.equal) >= 0.98 * static_cast<double>(result.positions));
    }
}
