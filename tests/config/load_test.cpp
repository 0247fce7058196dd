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

const std::pair<std::string, lines> faulty_values[] = {
    {"", {"DIR/c.yaml: models is missing; name at least one model with its path"}},
    {"models:\n", {"DIR/c.yaml:1: models is missing; name at least one model with its path"}},
    {"models: {}\n", {"DIR/c.yaml:1: models is empty; name at least one model with its path"}},
    {"models: 7\n", {"DIR/c.yaml:1: models must be a map of keys, not '7'"}},
    {"- a\n", {"DIR/c.yaml:1: a config must be a map of keys, not a list"}},
    {"models: {m: {path: a}\n", {"DIR/c.yaml:2: is not YAML: end of map flow not found"}},
    {"models:\n  m: {path: a}\nmax_batch_row: 4\n",
     {"DIR/c.yaml:3: unknown key 'max_batch_row'; did you mean 'max_batch_rows'?"}},
    {"models:\n  m: {path: a}\nentry_model: m\n",
     {"DIR/c.yaml:3: unknown key 'entry_model'; did you mean 'system.entry_model'?"}},
    {"models:\n  m: {path: a}\nsystem: {wibble: 1}\n",
     {"DIR/c.yaml:3: unknown key 'system.wibble'; known here are entry_model, method, "
      "on_peer_loss, heartbeat_ms, peer_timeout_ms, delayed_batching_timeout_ms and log_level"}},
    {"models:\n  m:\n    path: a\n    kv_cache:\n      token: 4\n",
     {"DIR/c.yaml:5: unknown key 'models.m.kv_cache.token'; did you mean 'tokens'?"}},
    {"models:\n  m: {path: a, shceduler: plain}\n",
     {"DIR/c.yaml:2: unknown key 'models.m.shceduler'; did you mean 'scheduler'?"}},
    {"models:\n  m: {path: a}\n  m: {path: b}\n",
     {"DIR/c.yaml:3: key 'm' is given twice; keep one"}},
    {"models:\n  m:\n    ranks: [0]\n",
     {"DIR/c.yaml:2: models.m has no path; give the folder with its config.json and weights"}},
    {"models:\n  m: {path: [a]}\n", {"DIR/c.yaml:2: models.m.path must be text, not a list"}},
    {"models:\n  m: {path: }\n", {"DIR/c.yaml:2: models.m.path must be text, not nothing"}},
    {"models:\n  a b: {path: a}\n",
     {"DIR/c.yaml:2: models.a b is not a name for a model: use up to 64 letters, digits, '-', "
      "'_' and '.'"}},
    {"models:\n  m:\n    path: a\n    scheduler: slm\n",
     {"DIR/c.yaml:4: models.m.scheduler must be one of " + every_role + ", not 'slm'"}},
    {"models:\n  m:\n    path: a\n    device: cuda:x\n",
     {"DIR/c.yaml:4: models.m.device must be cpu, cuda or cuda:N with the GPU's number, not "
      "'cuda:x'"}},
    {"models:\n  m:\n    path: a\n    load_format: dummy\n",
     {"DIR/c.yaml:4: models.m.load_format dummy weights are made on a GPU: set device: cuda:0"}},
    {"models:\n  m:\n    path: a\n    compute_dtype: fp8\n",
     {"DIR/c.yaml:4: models.m.compute_dtype must be one of bfloat16 and float32, not 'fp8'"}},
    {"models:\n  m:\n    path: a\n    max_batch_rows: 0\n",
     {"DIR/c.yaml:4: models.m.max_batch_rows must be a whole number from 1 to 1024, not '0'"}},
    {"models:\n  m:\n    path: a\n    threads: -1\n",
     {"DIR/c.yaml:4: models.m.threads must be a whole number from 0 to 1024, not '-1'"}},
    {"models:\n  m:\n    path: a\n    prefill_chunk_tokens: 1.5\n",
     {"DIR/c.yaml:4: models.m.prefill_chunk_tokens must be a whole number from 1 to 1048576, "
      "not '1.5'"}},
    {"models:\n  m:\n    path: a\n    ranks: 1\n",
     {"DIR/c.yaml:4: models.m.ranks must be a list of whole numbers from 0 to 4095, not '1'"}},
    {"models:\n  m:\n    path: a\n    ranks: [0, x]\n",
     {"DIR/c.yaml:4: models.m.ranks must be a list of whole numbers from 0 to 4095, not one with "
      "'x'"}},
    {"models:\n  m:\n    path: a\n    param_num_billion: big\n",
     {"DIR/c.yaml:4: models.m.param_num_billion must be a number of at least 0, not 'big'"}},
    {"models:\n  m:\n    path: a\nkv_cache: {tokens: 100, mem_fraction: 0.5}\n",
     {"DIR/c.yaml:4: kv_cache has both tokens and mem_fraction; keep one"}},
    {"models:\n  m:\n    path: a\nkv_cache: {tokens: 15}\n",
     {"DIR/c.yaml:4: kv_cache.tokens must be a whole number from 16 to 1099511627776, not '15'"}},
    {"models:\n  m:\n    path: a\nkv_cache: {mem_fraction: .nan}\n",
     {"DIR/c.yaml:4: kv_cache.mem_fraction must be a number from 0.001 to 1, not '.nan'"}},
    {"models:\n  m:\n    path: a\nprefix_fetch: always\n",
     {"DIR/c.yaml:4: prefix_fetch must be one of auto, sent and off, not 'always'"}},
    {"models:\n  m:\n    path: a\n    prefix_fetch_min_tokens: 0\n",
     {"DIR/c.yaml:4: models.m.prefix_fetch_min_tokens must be a whole number from 1 to 1048576, "
      "not "
      "'0'"}},
    {"models:\n  m:\n    path: a\nsystem:\n  on_peer_loss: hope\n",
     {"DIR/c.yaml:5: system.on_peer_loss must be one of fail and degrade, not 'hope'"}},
    {"models:\n  m:\n    path: a\nsystem:\n  heartbeat_ms: 5\n",
     {"DIR/c.yaml:5: system.heartbeat_ms must be a whole number from 10 to 60000, not '5'"}},
    {"models:\n  m:\n    path: a\nsystem:\n  log_level: loud\n",
     {"DIR/c.yaml:5: system.log_level must be one of trace, debug, info, warn, error and off, "
      "not "
      "'loud'"}},
    {"models:\n  m:\n    path: a\nsystem: {method: cider}\n",
     {"DIR/c.yaml:4: system.method must be one of single, r2r, citer, co-llm, rstitch, "
      "glimprouter, me, query-level, random-token, random-request, speculate, cascade and custom, "
      "not 'cider'"}},
    {"models:\n  m:\n    path: a\ntrace:\n  directory: {}\n",
     {"DIR/c.yaml:5: trace.directory must be text, not a map"}},
    {"models:\n  m:\n    path: a\n? [x]\n: 1\n", {"DIR/c.yaml:4: a key must be plain text"}},
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(loading, config_fixture)

BOOST_AUTO_TEST_CASE(every_key_is_read) {
  const auto loaded = load(R"(system:
  entry_model: small.1
  method: r2r
  on_peer_loss: fail
  heartbeat_ms: 100
  peer_timeout_ms: 900
  log_level: debug
compute_dtype: float32
max_batch_rows: 32
kv_cache: {mem_fraction: 0.25}
models:
  small.1:
    path: a
    scheduler: r2r_slm
    ranks: [0]
    device: cpu
    param_num_billion: 0.5
    compute_dtype: bfloat16
    prefill_chunk_tokens: 128
    max_batch_rows: 8
    threads: 2
    kv_cache: {tokens: 4096}
  large: {path: ./b/, scheduler: r2r_llm, ranks: [[3], [1]], prefix_cache: false,
          kv_at_handoff: drop,
          delayed_batching_threshold: [1, 2, 2]}
method: {router: r.safetensors, threshold: 0.5, switching_strategy: neural}
trace: {directory: traces}
)");
  BOOST_REQUIRE(loaded.faults.empty());
  const job_config& config = loaded.config;
  BOOST_TEST(config.file == file);
  BOOST_TEST(config.system.entry_model == "small.1");
  BOOST_TEST(config.system.heartbeat_ms == 100u);
  BOOST_TEST(config.system.peer_timeout_ms == 900u);
  BOOST_TEST(config.system.log_level == "debug");
  BOOST_TEST(config.system.mark.line == 1u);
  BOOST_REQUIRE(config.models.size() == 2u);
  const model_settings& small = config.models[0];
  BOOST_TEST(small.name == "small.1");
  BOOST_TEST(small.path == folder / "a");
  BOOST_TEST(small.role == "r2r_slm");
  BOOST_TEST(small.ranks == (std::vector<std::uint32_t>{0}), tt::per_element());
  BOOST_TEST((small.compute == compute_type::bfloat16));
  BOOST_TEST(small.param_num_billion == 0.5);
  BOOST_TEST(small.prefill_chunk_tokens == 128u);
  BOOST_TEST(small.max_batch_rows == 8u);
  BOOST_TEST(small.threads == 2u);
  BOOST_TEST(small.kv_cache_tokens == 4096u);
  BOOST_TEST(small.kv_cache_mem_fraction == 0);
  const model_settings& large = config.models[1];
  BOOST_TEST(large.path == folder / "b/");
  BOOST_TEST(large.ranks == (std::vector<std::uint32_t>{3, 1}), tt::per_element());
  BOOST_TEST(large.replicas_count == 2u);
  BOOST_TEST(small.replicas_count == 1u);
  BOOST_TEST(large.delayed_batching_threshold == (std::vector<std::uint32_t>{1, 2, 2}),
             tt::per_element());
  BOOST_TEST((!large.prefix_cache && small.prefix_cache));
  BOOST_TEST((large.drop_kv && !small.drop_kv));
  BOOST_TEST((large.compute == compute_type::float32));
  BOOST_TEST(large.max_batch_rows == 32u);
  BOOST_TEST(large.prefill_chunk_tokens == 512u);
  BOOST_TEST(large.kv_cache_mem_fraction == 0.25);
  BOOST_TEST(large.mark.line == 23u);
  BOOST_TEST(config.method.name == "r2r");
  BOOST_TEST(config.method.router == folder / "r.safetensors");
  BOOST_TEST(config.method.parameters.threshold.value() == 0.5);
  BOOST_TEST(config.trace.directory == folder / "traces");
}

BOOST_AUTO_TEST_CASE(one_model_needs_nothing_but_its_path) {
  const auto loaded = load("models: {only: {path: a}}\n");
  BOOST_REQUIRE(loaded.faults.empty());
  BOOST_TEST(loaded.config.system.entry_model == "only");
  BOOST_TEST(loaded.config.method.name == "single");
  BOOST_TEST(loaded.config.models[0].role == "plain");
  BOOST_TEST((loaded.config.models[0].compute == compute_type::bfloat16));
  BOOST_TEST(loaded.config.models[0].kv_cache_tokens == 0u);
  BOOST_TEST(loaded.config.trace.directory.empty());
}

BOOST_AUTO_TEST_CASE(a_model_says_itself_whether_it_fetches_prefixes) {
  const auto loaded = load("prefix_fetch: off\nmodels:\n  a: {path: a, scheduler: r2r_slm}\n"
                           "  b: {path: a, scheduler: r2r_llm, prefix_fetch: auto,\n"
                           "      prefix_fetch_min_tokens: 48}\n"
                           "system: {method: r2r, entry_model: a}\n");
  BOOST_REQUIRE(loaded.config.models.size() == 2u);
  BOOST_TEST((loaded.config.models[0].prefix_fetch == kv_fetch::off));
  BOOST_TEST(loaded.config.models[0].prefix_fetch_min_tokens == 64u);
  BOOST_TEST((loaded.config.models[1].prefix_fetch == kv_fetch::any_way));
  BOOST_TEST(loaded.config.models[1].prefix_fetch_min_tokens == 48u);
}

BOOST_AUTO_TEST_CASE(single_values_are_refused_with_line_and_reason) {
  for (const auto& [text, expected] : faulty_values) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(all_faults_are_reported_at_once_in_the_order_of_lines) {
  BOOST_TEST(faults(R"(system: {entry_modle: x, method: r2r}
max_batch_rows: many
models:
  m: {path: a, scheduler: r2r_slm, device: tpu}
  n: {path: nowhere, scheduler: r2r_llm}
method:
  switching_strategy: momentun
)") == (lines{"DIR/c.yaml:1: unknown key 'system.entry_modle'; did you mean "
              "'entry_model'?",
              "DIR/c.yaml:1: system.entry_model is missing; name the model that requests "
              "start on",
              "DIR/c.yaml:2: max_batch_rows must be a whole number from 1 to 1024, not "
              "'many'",
              "DIR/c.yaml:4: models.m.device must be cpu, cuda or cuda:N with the GPU's "
              "number, not 'tpu'",
              "DIR/c.yaml:5: models.n.path is not a folder: DIR/nowhere",
              "DIR/c.yaml:7: method.switching_strategy must be one of immediate, entropy, "
              "momentum, single_rolling_window, duo_rolling_window, neural, "
              "neural_rolling_window, neural_multi_input and random, not 'momentun'"}),
             tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_a_fault) {
  const auto loaded = load_config("no/such.yaml", {});
  BOOST_REQUIRE(loaded.faults.size() == 1u);
  BOOST_TEST(to_string(loaded.faults[0]) ==
             "no/such.yaml: cannot be read; give the path of a config file");
}

BOOST_AUTO_TEST_SUITE_END()
