#include <boost/test/unit_test.hpp>

#include "runtime/ingress/metrics.hpp"

using namespace tokenrouter;

namespace {

bool has_line(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(figures_stand_under_our_names_and_vllms) {
  engine_facts facts;
  facts.models = {{"xs", "plain", {0}, 100}};
  engine_counts counts;
  counts.running = 3;
  counts.waiting = 2;
  counts.models = {{11, 22, 33, 13, 1000, 0.25, 2}};
  counts.lost_ranks = {3};
  metrics m;
  m.note_first_token(30'000);
  m.note_tokens(4, 0);
  m.note_tokens(2, 8'000);
  m.note_end(finish_reason::stop, 70'000);
  m.note_reply(200);
  const auto page = m.page(facts, counts, "a\"b");
  const std::string label = "{model_name=\"a\\\"b\"}";
  for (const std::string& line :
       {"tokenrouter_requests_running" + label + " 3", "vllm:num_requests_running" + label + " 3",
        "vllm:num_requests_waiting" + label + " 2", "vllm:kv_cache_usage_perc" + label + " 0.25",
        "vllm:generation_tokens_total" + label + " 6",
        std::string("tokenrouter_model_kv_usage_ratio{model=\"xs\"} 0.25"),
        std::string("tokenrouter_lost_ranks 1"),
        std::string("tokenrouter_model_lost_replicas{model=\"xs\"} 2"),
        std::string("tokenrouter_model_generated_tokens_total{model=\"xs\"} 11"),
        std::string("tokenrouter_model_fetched_tokens_total{model=\"xs\"} 13"),
        std::string("tokenrouter_http_replies_total{status=\"200\"} 1"),
        std::string(
            "vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\",le=\"0.025\"} 0"),
        std::string("vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\",le=\"0.05\"} 1"),
        std::string("vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\",le=\"+Inf\"} 1"),
        std::string(
            "vllm:inter_token_latency_seconds_bucket{model_name=\"a\\\"b\",le=\"0.005\"} 2"),
        "vllm:inter_token_latency_seconds_sum" + label + " 0.008",
        std::string(
            "vllm:request_success_total{model_name=\"a\\\"b\",finished_reason=\"stop\"} 1")})
    BOOST_TEST(has_line(page, line), line);
}
