#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "launch/start_table.hpp"

using namespace tokenrouter;

namespace {

rank_card card(const std::string& host, std::vector<std::int32_t> cores, std::uint32_t threads) {
  rank_card out;
  out.host = host;
  out.allowed_cores = std::move(cores);
  out.model_threads = threads;
  out.host_threads = 16;
  return out;
}

/// Two ranks of one host with a model each.
struct small_job {
  std::vector<rank_card> cards = {card("left", {0, 1, 2, 5}, 2), card("left", {6, 7}, 1)};
  job_plan plan;
  memory_shares shares;

  small_job() {
    cards[0].routes = {{}, {"ucx posix", 1.26F}};
    cards[1].routes = {{"ucx posix", 1.3F}, {}};
    cards[1].physical_cores = 1;
    for (std::uint16_t m = 0; m < 2; ++m) {
      plan.models.emplace_back();
      plan.models.back().context_tokens_max = 1000;
      shares.replicas.push_back({{model_id{m}, 0}, rank_id{m}});
      shares.shards.push_back({{{model_id{m}, 0}, 0}, rank_id{m}, m, {}});
      if (m == 1)
        shares.shards.back().gpu = 1;
      shares.models.emplace_back();
      shares.models.back().name = m == 0 ? "quick" : "reference";
      shares.models.back().shard_devices = {m};
      shares.plan.models.emplace_back();
      shares.plan.models.back().kv_tokens = 4000u + m;
    }
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_table_shows_ranks_models_and_ways) {
  const small_job job;
  const std::string table = start_table(job.cards, job.plan, job.shares);
  const std::string want =
      "rank  host             cores            device   model                 KV tokens  requests\n"
      "0     left             0-2,5            cpu      quick                      4000         4\n"
      "1     left             6-7 (1 cores)    cuda:1   reference                  4001         4\n"
      "ranks 0 and 1: ucx posix, 1.3 us one way\n";
  BOOST_TEST(table == want);
}

BOOST_AUTO_TEST_CASE(every_rank_shows_its_shard_of_a_split_model) {
  small_job job;
  job.shares.shards[1] = {{{{1}, 0}, 0}, {0}, 1, 0};
  job.shares.shards.push_back({{{{1}, 0}, 1}, {1}, 1, 1});
  job.shares.models[1].shard_devices = {0, 1};
  const std::string table = start_table(job.cards, job.plan, job.shares);
  const std::string want =
      "rank  host             cores            device   model                 KV tokens  requests\n"
      "0     left             0-2,5            cpu      quick                      4000         4\n"
      "0     left             0-2,5            cuda:0   reference shard 0          4001         4\n"
      "1     left             6-7 (1 cores)    cuda:1   reference shard 1          4001         4\n"
      "ranks 0 and 1: ucx posix, 1.3 us one way\n";
  BOOST_TEST(table == want);
}

BOOST_AUTO_TEST_CASE(many_pairs_are_summed_up_by_carrier) {
  small_job job;
  job.cards.assign(6, card("left", {0, 1}, 0));
  for (std::size_t r = 0; r < 6; ++r)
    for (std::size_t peer = 0; peer < 6; ++peer)
      job.cards[r].routes.push_back(
          {peer == 5 || r == 5 ? "ucx tcp" : "ucx posix", static_cast<float>(r + 1)});
  const std::string table = start_table(job.cards, job.plan, job.shares);
  BOOST_TEST(table.find("10 pairs of ranks: ucx posix, 1.0 us one way to 4.0 us one way\n") !=
             std::string::npos);
  BOOST_TEST(table.find("5 pairs of ranks: ucx tcp, 1.0 us one way to 5.0 us one way\n") !=
             std::string::npos);
  BOOST_TEST(table.find("2     left             0-1              -        (no model)") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_seldom_meant_is_warned_about) {
  small_job job;
  BOOST_TEST(start_warnings(job.cards).empty());
  job.cards[1].allowed_cores = {6};
  auto warnings = start_warnings(job.cards);
  BOOST_REQUIRE(warnings.size() == 1u);
  BOOST_TEST(warnings[0].starts_with("rank 1 is bound to one core (6) and has 2 threads"));
  job.cards[0].model_threads = 4;
  warnings = start_warnings(job.cards);
  BOOST_REQUIRE(warnings.size() == 2u);
  BOOST_TEST(warnings[1].starts_with("host left is oversubscribed: 7 threads on 5 cores"));
  job = small_job();
  job.cards[0].routes[1].carrier = "ucx tcp";
  warnings = start_warnings(job.cards);
  BOOST_REQUIRE(warnings.size() == 1u);
  BOOST_TEST(warnings[0].starts_with("ranks 0 and 1 share host left but talk over ucx tcp"));
  job.cards[1].host = "right";
  BOOST_TEST(start_warnings(job.cards).empty());
}
