#include <boost/test/unit_test.hpp>

#include "tests/config/config_fixture.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;
using lines = std::vector<std::string>;

namespace {

const std::string every_role =
    "plain, r2r_slm, r2r_llm, citer_slm, citer_llm, collm_base, collm_assist, rstitch_slm, "
    "rstitch_llm, glimprouter_slm, glimprouter_llm, random_routing, query_level_routing, "
    "per_request_random_routing, speculate_slm, speculate_llm and cascade";

} // namespace

BOOST_FIXTURE_TEST_SUITE(validation, config_fixture)

BOOST_AUTO_TEST_CASE(references_that_do_not_hold_are_refused) {
  const std::pair<std::string, lines> rows[] = {
      {"system: {entry_model: big}\nmodels:\n  m: {path: a}\n",
       {"DIR/c.yaml:1: system.entry_model names no model: 'big'; there are 'm'"}},
      {"models:\n  m:\n    path: empty\n",
       {"DIR/c.yaml:3: models.m.path is not a model folder, it has no config.json: DIR/empty"}},
      {"models:\n  m:\n    path: r.safetensors\n",
       {"DIR/c.yaml:3: models.m.path is not a folder: DIR/r.safetensors"}},
      {"models:\n  m: {path: a, ranks: [1, 0], replicas: 3}\n",
       {"DIR/c.yaml:2: models.m.ranks names 2 ranks for 3 replicas; name one for each, one for "
        "all, "
        "or leave it out"}},
      {"models:\n  m: {path: a, ranks: [[0, 1]]}\n",
       {"DIR/c.yaml:2: models.m.ranks[0] must name one rank: a replica runs on one"}},
      {"models:\n  m: {path: a, one_kernel: auto}\n",
       {"DIR/c.yaml:2: models.m.one_kernel is of GPUs: set device: cuda"}},
      {"models:\n  m: {path: a, tp_size: 2}\n",
       {"DIR/c.yaml:2: models.m.tp_size splits a model over GPUs: set device: cuda"}},
      {"models:\n  m: {path: a, tp_size: 0, device: cuda}\n",
       {"DIR/c.yaml:2: models.m.tp_size must be a whole number from 1 to 64, not '0'"}},
      {"models:\n  m: {path: a, tp_size: 2, device: cuda, ranks: [0, 1, 2]}\n",
       {"DIR/c.yaml:2: models.m.ranks names 3 ranks for 1 replicas of 2 shards; name one for each, "
        "one for all, or leave it out"}},
      {"models:\n  m: {path: a, tp_size: 2, device: cuda, ranks: [[0, 1, 2]]}\n",
       {"DIR/c.yaml:2: models.m.ranks[0] must name one rank, or one for each of the 2 shards of a "
        "replica"}},
      {"models:\n  m: {path: a, delayed_batching_threshold: []}\n",
       {"DIR/c.yaml:2: models.m.delayed_batching_threshold is empty; give a threshold for each "
        "number of live requests, or leave it out"}},
      {"models:\n  m: {path: a, delayed_batching_threshold: soon}\n",
       {"DIR/c.yaml:2: models.m.delayed_batching_threshold must be a whole number from 1 to 1024, "
        "not 'soon'"}},
      {"models:\n  m: {path: a, ranks: []}\n",
       {"DIR/c.yaml:2: models.m.ranks is empty; name a rank or leave it out"}},
      {"models:\n  m: {path: a}\nsystem:\n  heartbeat_ms: 3000\n",
       {"DIR/c.yaml:4: system.heartbeat_ms leaves no room for a late heartbeat: peer_timeout_ms is "
        "5000, heartbeat_ms 3000; make it at least twice that"}},
      {"models:\n  m: {path: a}\n  n: {path: b}\n",
       {"DIR/c.yaml: system.method is missing; with several models it must be one of r2r, citer, "
        "co-llm, rstitch, glimprouter, me, query-level, random-token, random-request, speculate, "
        "cascade and custom",
        "DIR/c.yaml: system.entry_model is missing; name the model that requests start on",
        "DIR/c.yaml:2: models.m has no scheduler; give its role, one of " + every_role,
        "DIR/c.yaml:3: models.n has no scheduler; give its role, one of " + every_role}},
  };
  for (const auto& [text, expected] : rows) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(ranks_that_the_job_lacks_are_named) {
  const auto loaded = load("models:\n  quick: {path: a, ranks: [3]}\nsystem: {method: single}\n");
  BOOST_REQUIRE(loaded.faults.empty());
  const auto refused = validate_ranks(loaded.config, 2);
  BOOST_REQUIRE(refused.size() == 1u);
  BOOST_TEST(to_string(refused[0]) ==
             file.string() + ":2: models.quick.ranks: configured for rank 3, the job has 2 ranks; "
                             "start it with mpirun -np 4 or leave `ranks` out");
  BOOST_TEST(validate_ranks(loaded.config, 4).empty());
}

BOOST_AUTO_TEST_SUITE_END()
