#include <boost/test/unit_test.hpp>

#include "tests/config/config_fixture.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;
using lines = std::vector<std::string>;

namespace {

const std::string two_models = "system: {entry_model: q-0.6b, method: r2r}\n"
                               "models:\n"
                               "  q-0.6b: {path: a, scheduler: r2r_slm, max_batch_rows: 3,"
                               " kv_cache: {mem_fraction: 0.5}}\n"
                               "  l: {path: b, scheduler: r2r_llm}\n"
                               "method: {router: r.safetensors}\n";

} // namespace

BOOST_FIXTURE_TEST_SUITE(overriding, config_fixture)

BOOST_AUTO_TEST_CASE(dotted_keys_reach_values_of_models_whose_names_hold_dots) {
  const auto loaded = load(two_models, {"models.q-0.6b.max_batch_rows=8", "models.l.ranks=[2]",
                                        "method.threshold=0.25", "trace.directory=t"});
  BOOST_REQUIRE(loaded.faults.empty());
  BOOST_TEST(loaded.config.models[0].max_batch_rows == 8u);
  BOOST_TEST(loaded.config.models[1].max_batch_rows == 64u);
  BOOST_TEST(loaded.config.models[1].ranks == (std::vector<std::uint32_t>{2}), tt::per_element());
  BOOST_TEST(loaded.config.method.parameters.threshold.value() == 0.25);
  BOOST_TEST(loaded.config.trace.directory == std::filesystem::current_path() / "t");
  BOOST_TEST(loaded.config.models[0].name == "q-0.6b");
}

BOOST_AUTO_TEST_CASE(job_wide_names_replace_what_models_say) {
  const auto loaded = load(two_models, {"max_batch_rows=5", "kv_cache.tokens=1024",
                                        "compute_dtype=float32", "models.l.max_batch_rows=6"});
  BOOST_REQUIRE(loaded.faults.empty());
  BOOST_TEST(loaded.config.models[0].max_batch_rows == 5u);
  BOOST_TEST(loaded.config.models[1].max_batch_rows == 6u);
  for (const model_settings& model : loaded.config.models) {
    BOOST_TEST(model.kv_cache_tokens == 1024u);
    BOOST_TEST(model.kv_cache_mem_fraction == 0);
    BOOST_TEST((model.compute == compute_type::float32));
  }
  const auto last = load(two_models, {"models.l.max_batch_rows=6", "max_batch_rows=5"});
  BOOST_TEST(last.config.models[1].max_batch_rows == 5u);
}

BOOST_AUTO_TEST_CASE(an_override_can_add_what_the_file_lacks) {
  const auto loaded = load("", {"models.m.path=" + (folder / "a").string()});
  BOOST_REQUIRE(loaded.faults.empty());
  BOOST_TEST(loaded.config.models[0].path == folder / "a");
}

BOOST_AUTO_TEST_CASE(faults_of_overrides_name_the_override) {
  const std::pair<lines, lines> rows[] = {
      {{"max_batch_rows"},
       {"--set max_batch_rows: an override must be key=value, e.g. max_batch_rows=8"}},
      {{"=3"}, {"--set =3: an override must be key=value, e.g. max_batch_rows=8"}},
      {{"method..threshold=1"},
       {"--set method..threshold=1: a key must be names with single dots between them"}},
      {{"method.threshold=[1"},
       {"--set method.threshold=[1: the value is not YAML: end of sequence flow not found"}},
      {{"max_batch_rows=many"},
       {"--set max_batch_rows=many: max_batch_rows must be a whole number from 1 to 1024, not "
        "'many'"}},
      {{"models.l.max_batch_rows=0"},
       {"--set models.l.max_batch_rows=0: models.l.max_batch_rows must be a whole number from 1 to "
        "1024, not '0'"}},
      {{"methud.threshold=1"},
       {"--set methud.threshold=1: unknown key 'methud'; did you mean 'method'?"}},
      {{"models.l.treads=2"},
       {"--set models.l.treads=2: unknown key 'models.l.treads'; did you mean 'threads'?"}},
      {{"system.entry_model=x"},
       {"--set system.entry_model=x: system.entry_model names no model: 'x'; there are 'q-0.6b', "
        "'l'"}},
      {{"method.threshold=3"},
       {"--set method.threshold=3: method.threshold must be a number from 0 to 1 for "
        "switching_strategy neural"}},
      {{"models.l.path=/nowhere"},
       {"--set models.l.path=/nowhere: models.l.path is not a folder: /nowhere"}},
  };
  for (const auto& [overrides, expected] : rows)
    BOOST_TEST(faults(two_models, overrides) == expected, tt::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
