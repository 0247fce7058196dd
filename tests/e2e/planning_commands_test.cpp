#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"

using namespace tokenrouter::test;
using json = nlohmann::json;

namespace {

const std::string r2r_config = "configs/r2r/abacus-xs_abacus-m.yaml";

command_result tokenrouter_with(const std::string& arguments) {
  return run_command(program() + " " + arguments);
}

json json_of(const std::string& arguments) {
  const auto run = tokenrouter_with(arguments + " --json");
  BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  return json::parse(run.output);
}

void expect_text(const command_result& run, const std::string& part) {
  BOOST_TEST(run.output.find(part) != std::string::npos, part << " in: " << run.output);
}

struct refusal {
  std::string arguments, message_part;
};

void expect_refusals(const std::vector<refusal>& refusals) {
  for (const auto& one : refusals) {
    const auto run = tokenrouter_with(one.arguments);
    BOOST_TEST(run.exit_code == 2, one.arguments << ": " << run.output);
    expect_text(run, one.message_part);
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(the_best_thresholds_are_printed_with_the_lines_to_paste) {
  const auto run = tokenrouter_with("optimize-batching --latency-ms 6.0 27.9 --preset r2r "
                                    "--share 0.35 --live 8 --names quick reference");
  BOOST_TEST(run.exit_code == 0, run.output);
  expect_text(run, "1,5                   399.0        1.081       51  best");
  expect_text(run, "369.2");
  expect_text(run, "# under models.reference:\n  delayed_batching_threshold: 5\n");
  const auto lists = tokenrouter_with("optimize-batching --latency-ms 6.0 27.9 --preset r2r "
                                      "--live 1..5 --names quick reference");
  expect_text(lists, "# under models.reference:\n  delayed_batching_threshold: [1, 2, 2, 3, 4]\n");
}

BOOST_AUTO_TEST_CASE(a_preset_and_its_matrices_written_out_agree) {
  const std::string latencies = "optimize-batching --latency-ms 6.0 27.9 --live 4 ";
  struct row {
    std::string preset, matrices;
  };
  for (const auto& row : std::vector<row>{
           {"r2r --share 0.2", "0.8,0.2 1,0 --committed-tokens 1,0 1,0"},
           {"rstitch --share 0.2 --return-share 0.3", "0.8,0.2 0.3,0.7 --committed-tokens 1,0 1,1"},
           {"ensemble --weights 0.6 0.4", "0.6,0.4 0.6,0.4 --committed-tokens 1,1 1,1"}}) {
    const auto preset = json_of(latencies + "--preset " + row.preset);
    BOOST_TEST(preset == json_of(latencies + "--routing " + row.matrices), row.preset);
    BOOST_TEST(preset["choices"].size() == 10u);
    BOOST_TEST(preset["best"]["ratio_to_no_delay"].get<double>() >= 1);
  }
}

BOOST_AUTO_TEST_CASE(batching_that_cannot_be_computed_is_refused) {
  const std::string two = "optimize-batching --latency-ms 6.0 27.9 ";
  expect_refusals({{two, "give --preset, or --routing"},
                   {two + "--preset r2d2", "r2d2"},
                   {two + "--preset r2r --live 0", "--live 0"},
                   {two + "--preset r2r --live 2..8", "--live 2..8"},
                   {two + "--preset r2r --share 1.2", "--share"},
                   {two + "--preset r2r --names one", "1 names for 2 latencies"},
                   {two + "--preset ensemble", "0 weights for 2 latencies"},
                   {two + "--routing 1,0 1,0", "--committed-tokens"},
                   {two + "--routing 1,0 1, --committed-tokens 1,0 1,0", "--routing 1,"},
                   {two + "--routing 0.5,0.4 1,0 --committed-tokens 1,0 1,0", "adds up to 0.9"},
                   {"optimize-batching --latency-ms 6 12 27 --preset r2r", "for 2 models"},
                   {"optimize-batching --latency-ms 6.1 12.3 27.7 --preset ensemble --weights 0.5 "
                    "0.3 0.2 --live 12",
                    "coarser time grid"}});
}

BOOST_AUTO_TEST_CASE(memory_is_shared_so_that_all_models_hold_as_many_tokens) {
  const auto plan =
      json_of("plan-memory --config " + r2r_config + " --memory-gib 0.25 --context-tokens 500");
  BOOST_REQUIRE(plan["models"].size() == 2u);
  BOOST_TEST(plan["models"][0]["kv_tokens"] == plan["models"][1]["kv_tokens"]);
  const auto tokens = plan["models"][0]["kv_tokens"].get<std::uint64_t>();
  BOOST_TEST(plan["concurrent_requests"] == tokens / 16 / 32);
  BOOST_TEST(plan["devices"].size() == 1u);
  const auto& host = plan["devices"][0];
  std::uint64_t kv_bytes = 0, weight_bytes = 0;
  for (const auto& model : plan["models"]) {
    kv_bytes += tokens * model["kv_bytes_per_token"].get<std::uint64_t>();
    weight_bytes += model["weight_bytes"].get<std::uint64_t>();
  }
  BOOST_TEST(host["kv_bytes"] == kv_bytes);
  BOOST_TEST(host["weight_bytes"] == weight_bytes);
  BOOST_TEST(host["unused_bytes"].get<std::uint64_t>() < 16 * kv_bytes / tokens);

  const auto apart = json_of("plan-memory --config " + r2r_config +
                             " --memory-gib 0.25 --ranks 2 --ranks-per-host 1");
  BOOST_TEST(apart["devices"].size() == 2u);
  BOOST_TEST(apart["models"][0]["kv_tokens"] == apart["models"][1]["kv_tokens"]);
  BOOST_TEST(apart["models"][0]["kv_tokens"].get<std::uint64_t>() > tokens);
}

BOOST_AUTO_TEST_CASE(what_the_config_asks_for_comes_first) {
  const auto plan = json_of("plan-memory --config " + r2r_config +
                            " --memory-gib 0.25 --set models.abacus-xs.kv_cache.tokens=1000");
  BOOST_TEST(plan["models"][0]["kv_tokens"] == 1008);
  BOOST_TEST(plan["models"][1]["kv_tokens"].get<std::uint64_t>() > 1008u);
  const auto half = json_of("plan-memory --config " + r2r_config +
                            " --memory-gib 0.25 --set "
                            "models.abacus-m.kv_cache.mem_fraction=0.5");
  const auto& host = half["devices"][0];
  const double room = host["usable_bytes"].get<double>() - host["weight_bytes"].get<double>();
  BOOST_TEST(std::abs(half["models"][1]["shards"][0]["kv_bytes"].get<double>() - room / 2) <=
             16.0 * half["models"][1]["kv_bytes_per_token"].get<double>());
}

BOOST_AUTO_TEST_CASE(gpus_that_hosts_would_have_are_listed) {
  const std::string plan = "plan-memory --config " + r2r_config + " --memory-gib 0.25 ";
  const auto run = tokenrouter_with(plan + "--gpus-per-host 2 --gpu-memory-gib 24");
  BOOST_TEST(run.exit_code == 0, run.output);
  for (const char* gpu : {"cuda:0", "cuda:1"})
    expect_text(run, std::string("host 0 ") + gpu +
                         ": 24576.0 MiB free, 22118.4 MiB of them to use: weights 0.0, KV 0.0, "
                         "reserved 0.0, unused 22118.4\n");
  const auto apart = json_of(plan + "--gpus-per-host 1 --ranks 2 --ranks-per-host 1");
  std::vector<std::string> names;
  for (const auto& device : apart["devices"])
    names.push_back(device["name"]);
  const std::vector<std::string> wanted = {"host 0", "host 1", "host 0 cuda:0", "host 1 cuda:0"};
  BOOST_TEST(names == wanted, boost::test_tools::per_element());
  BOOST_TEST(apart["devices"][2]["memory_bytes"] == std::uint64_t{80} << 30);
}

BOOST_AUTO_TEST_CASE(models_on_gpus_are_planned_where_there_is_no_gpu) {
  const std::string both =
      "plan-memory --config " + r2r_config +
      " --gpus-per-host 2 --gpu-memory-gib 24 --set models.abacus-xs.device=cuda:1 "
      "--set models.abacus-m.device=cuda:1";
  const std::string gone = "plan-memory --config " + r2r_config +
                           " --gpus-per-host 2 --set models.abacus-m.device=cuda:2";
#if TOKENROUTER_HAS_CUDA
  const auto plan = json_of(both);
  for (const auto& model : plan["models"])
    BOOST_TEST(model["shards"][0]["device"] == "host 0 cuda:1");
  BOOST_TEST(plan["models"][0]["kv_tokens"].get<std::uint64_t>() > 0u);
  for (const std::size_t untouched : {0u, 1u})
    BOOST_TEST(plan["devices"][untouched]["weight_bytes"] == 0u);
  BOOST_TEST(plan["devices"][2]["weight_bytes"].get<std::uint64_t>() ==
             plan["models"][0]["weight_bytes"].get<std::uint64_t>() +
                 plan["models"][1]["weight_bytes"].get<std::uint64_t>());
  expect_refusals({{gone, "model 'abacus-m' wants cuda:2 on rank 0, which sees 2 GPUs of "
                          "host host 0"}});
#else
  expect_refusals({{both, "built without CUDA"}, {gone, "built without CUDA"}});
#endif
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_shared_is_refused) {
  const std::string plan = "plan-memory --config " + r2r_config;
  expect_refusals({{"plan-memory --config nothing.yaml", "nothing.yaml"},
                   {"plan-memory", "--config"},
                   {plan + " --memory-gib 0.01", "'host 0' can't hold the weights"},
                   {plan + " --memory-gib 0.1 --set kv_cache.tokens=100000", "tokens asked for"},
                   {plan + " --usable-fraction 0", "--usable-fraction"},
                   {plan + " --context-tokens 0", "--context-tokens"}});
}

BOOST_AUTO_TEST_CASE(a_threshold_is_calibrated_from_numbers_and_json_lines) {
  const scratch_folder scratch;
  write_file(scratch.file("scores"), "0.1\n 0.2 \r\n{\"score\": 0.5}\n\n"
                                     "{\"id\": \"a\", \"scores\": [0.5, null, 0.9]}\n7e-1\n");
  const std::string calibrate = "calibrate --scores " + scratch.file("scores");
  const auto third = json_of(calibrate + " --large-share 0.3");
  BOOST_TEST(third["scores_count"] == 6);
  BOOST_TEST(third["threshold"] == 0.7);
  BOOST_TEST(third["sent_count"] == 2);
  const auto half = tokenrouter_with(calibrate + " --large-share 0.5");
  BOOST_TEST(half.exit_code == 0);
  expect_text(half, "threshold     0.5\n");
  expect_text(half, "4 of 6 scores reach it, a share of 0.6667");
  expect_text(half, "2 scores equal it; a threshold of 0.7 leaves them out");
}

BOOST_AUTO_TEST_CASE(scores_that_cannot_be_read_are_refused) {
  const scratch_folder scratch;
  const auto file_of = [&scratch](const std::string& name, const std::string& text) {
    write_file(scratch.file(name), text);
    return "calibrate --large-share 0.3 --scores " + scratch.file(name);
  };
  expect_refusals({{file_of("word", "0.5\nabc\n"), "word:2: no score"},
                   {file_of("tail", "0.5 0.6\n"), "tail:1: no score"},
                   {file_of("nan", "nan\n"), "nan:1: no score"},
                   {file_of("json", "{\"score\": \"high\"}\n"), "json:1: no score"},
                   {file_of("torn", "{\"score\": 0.5\n"), "torn:1: no score"},
                   {file_of("other", "{\"text\": \"a\"}\n"), "other:1: no score"},
                   {file_of("empty", "\n"), "has no scores"},
                   {"calibrate --large-share 0.3 --scores " + scratch.file("missing"), "missing"},
                   {file_of("fine", "0.5\n") + " --large-share 2", "--large-share"}});
}
