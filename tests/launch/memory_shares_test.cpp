#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/memory_shares.hpp"
#include "runtime/core/limits.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;
using numbers = std::vector<std::uint32_t>;

namespace {

constexpr std::uint64_t mib = 1u << 20;
constexpr std::uint64_t kv_bytes_per_token = 1024;

/// Models a, b, c… and where they run, without any files.
struct job {
  job_config config;
  job_plan plan;

  /// `ranks`: of each shard, replica by replica.
  void add(const std::string& device, numbers ranks, std::uint64_t weight_mib = 100,
           std::uint32_t shards = 1) {
    const std::string name(1, static_cast<char>('a' + plan.models.size()));
    model_settings settings;
    settings.name = name;
    settings.device = parse_device(device).value();
    settings.shards_count = shards;
    settings.replicas_count = static_cast<std::uint32_t>(ranks.size()) / shards;
    config.models.push_back(settings);
    planned_model model;
    model.name = name;
    for (const auto rank : ranks)
      model.ranks.push_back({rank});
    model.shards = shards;
    model.context_tokens_max = 4096;
    model.weight_bytes = weight_mib * mib;
    model.kv_bytes_per_block = kv_bytes_per_token * limits::block_tokens;
    plan.models.push_back(model);
  }

  /// Number of the GPU of every replica that has one, model by model.
  numbers gpus(const host_layout& layout) const {
    numbers out;
    for (const auto& placed : shards_of(plan)) {
      const auto gpu = gpu_of(config, plan, placed, layout);
      BOOST_REQUIRE_MESSAGE(gpu.has_value(), (gpu ? std::string() : gpu.error().message));
      if (*gpu)
        out.push_back((*gpu)->number);
    }
    return out;
  }
};

/// Hosts with 4 GiB, and `gpus` GPUs of 1 GiB each, `ranks_per_host` ranks on each.
host_layout hosts(std::uint32_t ranks, std::uint32_t ranks_per_host, std::size_t gpus) {
  host_layout layout = equal_hosts(ranks, ranks_per_host,
                                   {"", 4096 * mib, std::vector<std::uint64_t>(gpus, 1024 * mib)});
  layout.usable_fraction = 1;
  return layout;
}

memory_shares shares_of(const job& asked, const host_layout& layout) {
  auto shares = share_memory(asked.config, asked.plan, layout);
  BOOST_REQUIRE_MESSAGE(shares.has_value(), (shares ? std::string() : shares.error().message));
  return std::move(*shares);
}

} // namespace

BOOST_AUTO_TEST_CASE(two_models_on_one_gpu_share_what_their_weights_leave) {
  job asked;
  asked.add("cuda:1", {0}, 100);
  asked.add("cuda:1", {0}, 300);
  asked.config.models[0].max_batch_rows = asked.config.models[1].max_batch_rows = 1000;
  const auto shares = shares_of(asked, hosts(1, 0, 2));

  BOOST_REQUIRE(shares.devices.size() == 3u);
  BOOST_TEST(shares.devices[0].name == "host 0");
  BOOST_TEST(shares.devices[1].name == "host 0 cuda:0");
  BOOST_TEST(shares.devices[2].name == "host 0 cuda:1");
  // Of 1024 MiB, 400 are weights; the rest is two pools of as many tokens.
  const std::uint64_t tokens = (1024 - 400) * mib / (2 * kv_bytes_per_token);
  for (const auto& model : shares.plan.models) {
    BOOST_TEST(model.kv_tokens == tokens);
    BOOST_REQUIRE(model.shards.size() == 1u);
    BOOST_TEST(model.shards[0].device == 2u);
  }
  const auto& gpu = shares.plan.devices[2];
  BOOST_TEST(gpu.weight_bytes == 400 * mib);
  BOOST_TEST(gpu.kv_bytes == 2 * tokens * kv_bytes_per_token);
  for (const std::size_t untouched : {0u, 1u}) {
    BOOST_TEST(shares.plan.devices[untouched].weight_bytes == 0u);
    BOOST_TEST(shares.plan.devices[untouched].kv_bytes == 0u);
  }
}

BOOST_AUTO_TEST_CASE(models_on_cpus_and_gpus_take_memory_of_their_own_device) {
  job asked;
  asked.add("cpu", {0}, 100);
  asked.add("cuda:0", {0}, 300);
  const auto shares = shares_of(asked, hosts(1, 0, 1));
  BOOST_TEST(shares.plan.devices[0].weight_bytes == 100 * mib);
  BOOST_TEST(shares.plan.devices[1].weight_bytes == 300 * mib);
  BOOST_TEST(
      !gpu_of(asked.config, asked.plan, shards_of(asked.plan).front(), hosts(1, 0, 1)).value());
}

BOOST_AUTO_TEST_CASE(a_share_of_the_memory_is_of_the_gpu_of_the_model) {
  job asked;
  asked.add("cuda:0", {0}, 224);
  asked.config.models[0].kv_cache_mem_fraction = 0.125;
  // An eighth of the 800 MiB that the weights leave of 1024.
  BOOST_TEST(shares_of(asked, hosts(1, 0, 1)).plan.models[0].kv_tokens ==
             100 * mib / kv_bytes_per_token);
}

BOOST_AUTO_TEST_CASE(the_gpus_of_a_host_go_round_among_its_ranks_with_gpu_models) {
  // Four ranks on each of two hosts with two GPUs; rank 1 and rank 6 run no GPU model.
  job asked;
  asked.add("cuda", {0, 2, 3, 4, 5, 7});
  asked.add("cpu", {1, 6});
  asked.add("cuda", {2, 7}); // models of one rank share its GPU
  const auto layout = hosts(8, 4, 2);
  const numbers wanted = {0, 1, 0, 0, 1, 0, 1, 0};
  BOOST_TEST(asked.gpus(layout) == wanted, tt::per_element());

  const auto shares = shares_of(asked, layout);
  // Hosts 0 and 1, then the GPUs of host 0, then those of host 1.
  const numbers devices_wanted = {2, 3, 2, 4, 5, 4, 0, 1, 3, 4};
  numbers devices;
  for (const auto& model : shares.models)
    devices.push_back(model.shard_devices.front());
  BOOST_TEST(devices == devices_wanted, tt::per_element());
  BOOST_TEST(shares.devices[5].name == "host 1 cuda:1");
}

BOOST_AUTO_TEST_CASE(a_number_is_the_same_gpu_on_every_rank) {
  job asked;
  asked.add("cuda:1", {0, 1, 2, 3});
  const numbers wanted = {1, 1, 1, 1};
  BOOST_TEST(asked.gpus(hosts(4, 2, 2)) == wanted, tt::per_element());
}

BOOST_AUTO_TEST_CASE(a_gpu_that_is_not_there_is_refused_by_model_rank_and_host) {
  struct row {
    std::string device;
    std::size_t gpus;
    std::string message;
  };
  const row rows[] = {
      {"cuda:2", 2, "model 'b' wants cuda:2 on rank 3, which sees 2 GPUs of host host 1"},
      {"cuda:0", 0, "model 'b' wants cuda:0 on rank 3, which sees 0 GPUs of host host 1"},
      {"cuda", 0, "model 'b' wants cuda:0 on rank 3, which sees 0 GPUs of host host 1"},
  };
  for (const auto& [device, gpus, message] : rows) {
    job asked;
    asked.add("cpu", {0});
    asked.add(device, {3});
    const auto shares = share_memory(asked.config, asked.plan, hosts(4, 2, gpus));
    BOOST_REQUIRE(!shares.has_value());
    BOOST_TEST((shares.error().code == errc::not_found), device);
    BOOST_TEST(shares.error().message == message);
  }
}

BOOST_AUTO_TEST_CASE(weights_that_a_gpu_cannot_hold_are_refused_by_its_name) {
  job asked;
  asked.add("cuda:0", {0}, 700);
  asked.add("cuda:0", {0}, 700);
  const auto shares = share_memory(asked.config, asked.plan, hosts(1, 0, 2));
  BOOST_REQUIRE(!shares.has_value());
  BOOST_TEST((shares.error().code == errc::capacity));
  BOOST_TEST(shares.error().message.find("'host 0 cuda:0'") != std::string::npos,
             shares.error().message);
}

BOOST_AUTO_TEST_CASE(shards_split_weights_and_kv_over_their_gpus) {
  job asked;
  asked.add("cuda:0", {0}, 100);
  asked.add("cuda", {0, 1}, 600, 2);
  asked.config.models[0].max_batch_rows = asked.config.models[1].max_batch_rows = 1000;
  const auto shares = shares_of(asked, hosts(2, 0, 2));
  BOOST_TEST(asked.gpus(hosts(2, 0, 2)) == (numbers{0, 0, 1}), tt::per_element());
  BOOST_REQUIRE(shares.shards.size() == 3u);
  BOOST_TEST(shares.shards[2].device() == "cuda:1");
  BOOST_TEST(shares.shards[2].rank.value == 1u);
  BOOST_TEST(shares.name_of(shares.shards[0]) == "a");
  BOOST_TEST(shares.name_of(shares.shards[2]) == "b shard 1");
  BOOST_TEST(shares.is_shared(shares.shards[0]));
  BOOST_TEST(shares.is_shared(shares.shards[1]));
  BOOST_TEST(!shares.is_shared(shares.shards[2]));
  BOOST_TEST(shares.is_lightest(shares.shards[0]));
  BOOST_TEST(!shares.is_lightest(shares.shards[1])); // 300 of 600 are there, beside 100
  BOOST_TEST(shares.is_lightest(shares.shards[2]));
  // The first GPU holds a and half of b, and decides: every token is one of a and half of one of b.
  const std::uint64_t tokens = (1024 - 100 - 300) * mib / (kv_bytes_per_token * 3 / 2);
  for (const auto& model : shares.plan.models)
    BOOST_TEST(model.kv_tokens == tokens / limits::block_tokens * limits::block_tokens);
  BOOST_TEST(shares.plan.devices[1].weight_bytes == 400 * mib);
  BOOST_TEST(shares.plan.devices[2].weight_bytes == 300 * mib);
}

BOOST_AUTO_TEST_CASE(shards_that_share_a_rank_get_gpus_one_after_the_other) {
  job asked;
  asked.add("cuda", {0, 0, 1, 1}, 100, 2); // two replicas, each on a rank of its own
  BOOST_TEST(asked.gpus(hosts(2, 0, 4)) == (numbers{0, 1, 2, 3}), tt::per_element());
  job numbered;
  numbered.add("cuda:1", {0, 0}, 100, 2);
  BOOST_TEST(numbered.gpus(hosts(1, 0, 4)) == (numbers{1, 2}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(two_shards_of_a_replica_on_one_gpu_are_refused) {
  job asked;
  asked.add("cuda", {0, 0}, 100, 2);
  const auto shares = share_memory(asked.config, asked.plan, hosts(1, 0, 1));
  BOOST_REQUIRE(!shares.has_value());
  BOOST_TEST((shares.error().code == errc::invalid_argument));
  BOOST_TEST(shares.error().message.find("shards 0 and 1 of model 'a' would both run on host 0 "
                                         "cuda:0") == 0u,
             shares.error().message);
}

BOOST_AUTO_TEST_CASE(a_fraction_of_memory_is_of_the_gpu_with_the_least_room) {
  job asked;
  asked.add("cuda:0", {0}, 400);
  asked.add("cuda", {0, 1}, 200, 2);
  asked.config.models[0].kv_cache_tokens = 4096;
  asked.config.models[1].kv_cache_mem_fraction = 0.5;
  asked.config.models[1].max_batch_rows = 1000;
  const auto shares = shares_of(asked, hosts(2, 0, 2));
  // The first GPU has 1024 − 400 − 100 MiB left; half of that is half of b's tokens.
  BOOST_TEST(shares.plan.models[1].kv_tokens == 524 * mib / 2 * 2 / kv_bytes_per_token);
}

namespace {

/// Hosts x and y with two GPUs each; what ranks see of them.
host_layout hosts_seen_as(const std::vector<std::vector<std::string>>& seen) {
  host_layout layout;
  for (const auto& ids : seen) {
    std::vector<visible_gpu> gpus;
    for (const std::string& id : ids)
      gpus.push_back({id, 1024 * mib});
    add_rank(layout, ids.empty() ? "z" : ids[0].substr(0, 1), 4096 * mib, gpus);
  }
  layout.usable_fraction = 1;
  return layout;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_launcher_may_show_each_rank_a_gpu_of_its_own) {
  // Slurm with --gpus-per-task: every rank has a cuda:0, and no two are the same.
  const auto layout = hosts_seen_as({{"x0"}, {"x1"}, {"y0"}, {"y1"}});
  BOOST_REQUIRE(layout.hosts.size() == 2u);
  BOOST_TEST(layout.hosts[0].gpu_bytes.size() == 2u);
  job split;
  split.add("cuda", {0, 1}, 300, 2);
  split.add("cuda:0", {2, 3}, 300, 2);
  BOOST_TEST(split.gpus(layout) == numbers({0, 0, 0, 0}), tt::per_element());
  const auto shares = shares_of(split, layout); // each shard has a whole GPU
  BOOST_TEST(shares.models[0].shard_devices == numbers({2, 3}), tt::per_element());
  BOOST_TEST(shares.models[1].shard_devices == numbers({4, 5}), tt::per_element());
  BOOST_TEST(!shares.is_shared(shares.shards[0]));
}

BOOST_AUTO_TEST_CASE(ranks_that_see_the_same_gpus_take_turns_whatever_their_order) {
  const auto layout = hosts_seen_as({{"x0", "x1"}, {"x1", "x0"}, {"x0", "x1"}, {"x0", "x1"}});
  job each;
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    each.add("cuda", {rank});
  BOOST_TEST(each.gpus(layout) == numbers({0, 0, 1, 0}), tt::per_element());
  const auto shares = shares_of(each, layout);
  BOOST_TEST(shares.models[0].shard_devices == numbers({1}), tt::per_element());
  BOOST_TEST(shares.models[1].shard_devices == numbers({2}), tt::per_element()); // its cuda:0
  BOOST_TEST(shares.models[2].shard_devices == numbers({2}), tt::per_element());
}

BOOST_AUTO_TEST_CASE(two_ranks_that_see_one_gpu_share_it_and_can_not_split_a_model_over_it) {
  const auto layout = hosts_seen_as({{"x0"}, {"x0"}, {}});
  job both;
  both.add("cuda", {0});
  both.add("cuda", {1});
  BOOST_TEST(shares_of(both, layout).models[1].shard_devices == numbers({2}), tt::per_element());
  job split;
  split.add("cuda", {0, 1}, 300, 2);
  const auto refused = share_memory(split.config, split.plan, layout);
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST(refused.error().message.find("would both run on x cuda:0") != std::string::npos,
             refused.error().message);
  job blind;
  blind.add("cuda", {2});
  const auto none = share_memory(blind.config, blind.plan, layout);
  BOOST_REQUIRE(!none.has_value());
  BOOST_TEST(none.error().message ==
             "model 'a' wants cuda:0 on rank 2, which sees 0 GPUs of host z");
}
