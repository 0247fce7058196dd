#include <boost/test/unit_test.hpp>

#include "tests/config/config_fixture.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;
using lines = std::vector<std::string>;

namespace {

const std::string r2r_models = "system: {entry_model: s, method: r2r}\n"
                               "models:\n"
                               "  s: {path: a, scheduler: r2r_slm}\n"
                               "  l: {path: b, scheduler: r2r_llm}\n";
const std::string cascade_models = "system: {entry_model: x, method: cascade}\n"
                                   "models:\n"
                                   "  x: {path: a}\n"
                                   "  y: {path: b}\n";

} // namespace

BOOST_FIXTURE_TEST_SUITE(validation, config_fixture)

BOOST_AUTO_TEST_CASE(complete_configs_have_no_faults) {
  for (const std::string& text :
       {r2r_models + "method: {router: r.safetensors}\n",
        r2r_models + "method: {router: r.safetensors, threshold: 1}\n",
        r2r_models + "method: {switching_strategy: entropy, threshold: 1.5}\n",
        r2r_models + "method: {switching_strategy: entropy, threshold: 0, router: r.safetensors}\n",
        cascade_models + "method: {thresholds: [0.5]}\n",
        std::string("system: {method: single, entry_model: m}\nmodels:\n  m: {path: a}\n")})
    BOOST_TEST(faults(text) == lines{}, tt::per_element());
}

BOOST_AUTO_TEST_CASE(references_that_do_not_hold_are_refused) {
  const std::pair<std::string, lines> rows[] = {
      {"system: {entry_model: big}\nmodels:\n  m: {path: a}\n",
       {"DIR/c.yaml:1: system.entry_model names no model: 'big'; there are 'm'"}},
      {"models:\n  m:\n    path: empty\n",
       {"DIR/c.yaml:3: models.m.path is not a model folder, it has no config.json: DIR/empty"}},
      {"models:\n  m:\n    path: r.safetensors\n",
       {"DIR/c.yaml:3: models.m.path is not a folder: DIR/r.safetensors"}},
      {"models:\n  m: {path: a, ranks: [1, 1]}\n",
       {"DIR/c.yaml:2: models.m.ranks names a rank twice; keep one"}},
      {"models:\n  m: {path: a, ranks: [1, 0]}\n",
       {"DIR/c.yaml:2: models.m.ranks names 2 ranks, but a model runs on one; keep one"}},
      {"models:\n  m: {path: a, ranks: []}\n",
       {"DIR/c.yaml:2: models.m.ranks is empty; name a rank or leave it out"}},
      {"models:\n  m: {path: a}\nsystem:\n  heartbeat_ms: 3000\n",
       {"DIR/c.yaml:4: system.heartbeat_ms leaves no room for a late heartbeat: peer_timeout_ms is "
        "5000, heartbeat_ms 3000; make it at least twice that"}},
      {"models:\n  m: {path: a}\n  n: {path: b}\n",
       {"DIR/c.yaml: system.method is missing; with several models it must be one of r2r and "
        "cascade",
        "DIR/c.yaml: system.entry_model is missing; name the model that requests start on",
        "DIR/c.yaml:2: models.m has no scheduler; give its role, one of plain, r2r_slm, r2r_llm "
        "and "
        "cascade",
        "DIR/c.yaml:3: models.n has no scheduler; give its role, one of plain, r2r_slm, r2r_llm "
        "and "
        "cascade"}},
  };
  for (const auto& [text, expected] : rows) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(methods_refuse_what_they_can_not_run) {
  const std::pair<std::string, lines> rows[] = {
      {"system: {method: single, entry_model: m}\nmodels:\n  m: {path: a}\n  n: {path: b}\n",
       {"DIR/c.yaml:2: models has 2 entries, but method single runs one; set system.method to r2r "
        "or cascade, or remove the others"}},
      {"system: {method: single}\nmodels:\n  m: {path: a, scheduler: r2r_slm}\n",
       {"DIR/c.yaml:3: models.m.scheduler is r2r_slm, but method single has plain"}},
      {r2r_models + "method: {threshold: 0.5}\n",
       {"DIR/c.yaml:5: method needs router, the weights of the routing head, for "
        "switching_strategy neural; or choose entropy"}},
      {r2r_models + "method:\n  router: gone.safetensors\n",
       {"DIR/c.yaml:6: method.router is not a file: DIR/gone.safetensors"}},
      {r2r_models + "method:\n  router: r.safetensors\n  threshold: 2\n",
       {"DIR/c.yaml:7: method.threshold must be a number from 0 to 1 for switching_strategy "
        "neural"}},
      {r2r_models + "method: {switching_strategy: entropy}\n",
       {"DIR/c.yaml:5: method needs threshold, in nats, for switching_strategy entropy"}},
      {r2r_models + "method: {switching_strategy: entropy, threshold: -1}\n",
       {"DIR/c.yaml:5: method.threshold must be a number of at least 0, not '-1'"}},
      {r2r_models + "method: {router: r.safetensors, thresholds: [1]}\n",
       {"DIR/c.yaml:5: method.thresholds has no effect: system.method is r2r, only cascade reads "
        "it"}},
      {"system: {entry_model: l, method: r2r}\nmodels:\n  s: {path: a, scheduler: r2r_slm}\n"
       "  l: {path: b, scheduler: r2r_llm}\nmethod: {router: r.safetensors}\n",
       {"DIR/c.yaml:1: system.entry_model must be the r2r_slm, 's', not 'l'"}},
      {"system: {entry_model: s, method: r2r}\nmodels:\n  s: {path: a, scheduler: r2r_slm}\n"
       "  t: {path: b, scheduler: r2r_slm}\n  l: {path: b, scheduler: cascade}\n"
       "method: {router: r.safetensors}\n",
       {"DIR/c.yaml:2: models must have exactly one model with scheduler r2r_slm, not 2",
        "DIR/c.yaml:2: models must have exactly one model with scheduler r2r_llm, not 0",
        "DIR/c.yaml:5: models.l.scheduler is cascade, but method r2r has r2r_slm and r2r_llm"}},
      {cascade_models,
       {"DIR/c.yaml: method needs thresholds with 1 numbers, one for each model but "
        "the last, not 0"}},
      {cascade_models + "method:\n  thresholds: [0.1, 0.2]\n",
       {"DIR/c.yaml:6: method.thresholds needs thresholds with 1 numbers, one for each model but "
        "the "
        "last, not 2"}},
      {cascade_models + "method:\n  thresholds: 0.1\n",
       {"DIR/c.yaml:6: method.thresholds must be a list of numbers of at least 0, not '0.1'"}},
      {cascade_models + "method: {thresholds: [0.1], threshold: 0.3, router: r.safetensors}\n",
       {"DIR/c.yaml:5: method.router has no effect: system.method is cascade, only r2r reads it",
        "DIR/c.yaml:5: method.threshold has no effect: system.method is cascade, only r2r reads "
        "it"}},
      {"system: {entry_model: y, method: cascade}\nmodels:\n  x: {path: a}\n  y: {path: b}\n"
       "method: {thresholds: [0.5]}\n",
       {"DIR/c.yaml:1: system.entry_model must be the first model of a cascade, 'x', not 'y'"}},
      {"system: {method: cascade}\nmodels:\n  x: {path: a}\n",
       {"DIR/c.yaml:2: models has 1 entry, but method cascade needs at least two"}},
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
