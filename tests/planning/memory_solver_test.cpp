#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "runtime/planning/memory_solver.hpp"

using namespace tokenrouter;

namespace {

constexpr std::uint64_t gib = 1ull << 30, kib = 1024;

/// A card of 80 GiB of which 90 % may be used: 72 GiB.
memory_device card(std::string name) {
  return {std::move(name), 80 * gib, 0.9, 0};
}

memory_model model_of(std::string name, std::uint64_t weight_bytes,
                      std::uint64_t kv_bytes_per_token, std::vector<std::uint32_t> shard_devices) {
  memory_model model;
  model.name = std::move(name);
  model.weight_bytes = weight_bytes;
  model.kv_bytes_per_block = kv_bytes_per_token * 16;
  model.shard_devices = std::move(shard_devices);
  return model;
}

memory_plan plan_of(const std::vector<memory_device>& devices,
                    const std::vector<memory_model>& models) {
  auto plan = solve_memory(devices, models);
  BOOST_REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().message));
  for (const auto& device : plan->devices)
    BOOST_TEST(device.reserved_bytes + device.weight_bytes + device.kv_bytes +
                   device.unused_bytes ==
               device.usable_bytes);
  return *plan;
}

std::string refusal(const std::vector<memory_device>& devices,
                    const std::vector<memory_model>& models, errc code = errc::capacity) {
  const auto plan = solve_memory(devices, models);
  BOOST_REQUIRE(!plan);
  BOOST_TEST((plan.error().code == code));
  return plan.error().message;
}

} // namespace

BOOST_AUTO_TEST_CASE(placements_share_memory_so_that_all_models_hold_as_many_tokens) {
  struct row {
    std::string name;
    std::vector<memory_device> devices;
    std::vector<memory_model> models;
    std::vector<std::uint64_t> kv_tokens;
  };
  const auto small = [](std::vector<std::uint32_t> at) {
    return model_of("small", 2 * gib, 112 * kib, std::move(at));
  };
  const auto large = [](std::vector<std::uint32_t> at) {
    return model_of("large", 62 * gib, 256 * kib, std::move(at));
  };
  // Expected: free bytes by bytes per token on the tightest device, whole blocks of 16.
  const auto tokens = [](std::uint64_t free_bytes, std::uint64_t bytes_per_token) {
    return free_bytes / bytes_per_token / 16 * 16;
  };
  const std::vector<row> rows{
      {"alone", {card("a")}, {small({0})}, {tokens(70 * gib, 112 * kib)}},
      {"together: 8 GiB for both",
       {card("a")},
       {small({0}), large({0})},
       {tokens(8 * gib, 368 * kib), tokens(8 * gib, 368 * kib)}},
      {"apart: the large model's 10 GiB bind, the small one's card is left mostly empty",
       {card("a"), card("b")},
       {small({0}), large({1})},
       {tokens(10 * gib, 256 * kib), tokens(10 * gib, 256 * kib)}},
      {"small on one of the two cards that the large one is split over",
       {card("a"), card("b")},
       {small({0}), large({0, 1})},
       {tokens(39 * gib, 240 * kib), tokens(39 * gib, 240 * kib)}},
      {"both split over both",
       {card("a"), card("b")},
       {small({0, 1}), large({0, 1})},
       {tokens(40 * gib, 184 * kib), tokens(40 * gib, 184 * kib)}},
  };
  for (const auto& row : rows) {
    const auto plan = plan_of(row.devices, row.models);
    for (std::size_t m = 0; m < row.models.size(); ++m) {
      BOOST_TEST(plan.models[m].kv_tokens == row.kv_tokens[m], row.name);
      BOOST_TEST(plan.models[m].kv_tokens == plan.models[m].kv_blocks * 16, row.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_split_weights_and_kv_evenly) {
  const auto plan =
      plan_of({card("a"), card("b")}, {model_of("small", 2 * gib, 112 * kib, {0}),
                                       model_of("large", 62 * gib, 256 * kib, {0, 1})});
  const auto& large = plan.models[1];
  BOOST_REQUIRE(large.shards.size() == 2u);
  for (std::uint32_t s = 0; s < 2; ++s) {
    BOOST_TEST(large.shards[s].device == s);
    BOOST_TEST(large.shards[s].weight_bytes == 31 * gib);
    BOOST_TEST(large.shards[s].kv_bytes == large.kv_tokens * 128 * kib);
    BOOST_TEST(large.shards[s].kv_fraction ==
               static_cast<double>(large.shards[s].kv_bytes) / static_cast<double>(80 * gib));
  }
  BOOST_TEST(plan.devices[0].weight_bytes == 33 * gib);
  BOOST_TEST(plan.devices[1].weight_bytes == 31 * gib);
  // Less than a block of each is left where it binds.
  BOOST_TEST(plan.devices[0].unused_bytes < 16 * 240 * kib);
  BOOST_TEST(plan.devices[1].unused_bytes > 10 * gib);
}

BOOST_AUTO_TEST_CASE(a_share_that_comes_out_even_is_used_to_the_last_block) {
  for (std::uint64_t blocks : {1ull, 3ull, 7ull, 1000ull, 999'999ull}) {
    const auto plan = plan_of({{"host", 1000 + blocks * 480, 1, 500}},
                              {model_of("a", 300, 10, {0}), model_of("b", 200, 20, {0})});
    BOOST_TEST(plan.models[0].kv_blocks == blocks);
    BOOST_TEST(plan.models[1].kv_blocks == blocks);
    BOOST_TEST(plan.devices[0].unused_bytes == 0u);
  }
}

BOOST_AUTO_TEST_CASE(weights_fixed_tokens_and_bounds_shift_the_shares) {
  // 4800 bytes for KV; a needs 10 a token, b 20.
  const std::vector<memory_device> host{{"host", 4800, 1, 0}};
  struct row {
    std::string name;
    double weight_b;
    std::uint64_t fixed_a, fixed_b, max_a, max_b, tokens_a, tokens_b;
  };
  const std::vector<row> rows{
      {"equal", 1, 0, 0, 0, 0, 160, 160},
      {"b holds two for each of a", 2, 0, 0, 0, 0, 96, 192},
      {"b is fixed: a gets the rest", 1, 0, 32, 0, 0, 416, 32},
      {"fixed tokens are rounded up to a block", 1, 0, 17, 0, 0, 416, 32},
      {"both fixed", 1, 16, 32, 0, 0, 16, 32},
      {"a has enough: b gets the rest", 1, 0, 0, 80, 0, 80, 192},
      {"a bound above the share does not bind", 1, 0, 0, 320, 0, 160, 160},
      {"both have enough", 1, 0, 0, 32, 48, 32, 48},
      {"b's bound frees memory for a, whose own bound then binds", 1, 0, 0, 320, 16, 320, 16},
  };
  for (const auto& row : rows) {
    auto a = model_of("a", 0, 10, {0}), b = model_of("b", 0, 20, {0});
    b.tokens_weight = row.weight_b;
    a.fixed_tokens = row.fixed_a;
    b.fixed_tokens = row.fixed_b;
    a.max_tokens = row.max_a;
    b.max_tokens = row.max_b;
    const auto plan = plan_of(host, {a, b});
    BOOST_TEST(plan.models[0].kv_tokens == row.tokens_a, row.name);
    BOOST_TEST(plan.models[1].kv_tokens == row.tokens_b, row.name);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_device_and_figures) {
  const auto weights =
      refusal({card("cuda:0"), card("cuda:1")},
              {model_of("small", 2 * gib, 1, {0}), model_of("large", 150 * gib, 1, {0, 1})});
  for (const auto* part :
       {"cuda:0", "72.000 GiB", "80.000 GiB", "77.000 GiB", "'small'", "'large'", "75.000 GiB"})
    BOOST_TEST(weights.find(part) != std::string::npos, part << " in: " << weights);

  auto asking = model_of("small", 2 * gib, 112 * kib, {0});
  asking.fixed_tokens = 1'000'000;
  const auto fixed = refusal({card("cuda:0")}, {asking});
  BOOST_TEST(fixed.find("tokens asked for") != std::string::npos, fixed);
  BOOST_TEST(fixed.find("KV 106.") != std::string::npos, fixed);

  const auto reserved =
      refusal({{"cuda:0", 80 * gib, 0.9, 71 * gib}}, {model_of("small", 2 * gib, 1, {0})});
  BOOST_TEST(reserved.find("71.000 GiB are reserved") != std::string::npos, reserved);

  const auto no_block = refusal({{"host", 1159, 1, 0}}, {model_of("small", 1000, 10, {0})});
  BOOST_TEST(no_block.find("needs 160 bytes, device 'host' has 159 left") != std::string::npos,
             no_block);
}

BOOST_AUTO_TEST_CASE(values_out_of_range_are_refused) {
  const auto model = model_of("a", 0, 10, {0});
  for (double fraction : {0.0, -1.0, 1.1})
    refusal({{"host", 4800, fraction, 0}}, {model}, errc::invalid_argument);
  auto weightless = model;
  weightless.tokens_weight = 0;
  refusal({{"host", 4800, 1, 0}}, {weightless}, errc::invalid_argument);
}

BOOST_AUTO_TEST_CASE(requests_take_whole_blocks_in_every_model) {
  auto a = model_of("a", 0, 10, {0}), b = model_of("b", 0, 20, {0});
  a.fixed_tokens = 160;
  b.fixed_tokens = 96;
  const std::vector<memory_model> models{a, b};
  const auto plan = plan_of({{"host", 4800, 1, 0}}, models);
  struct row {
    std::uint64_t context_tokens, of_a, of_both;
  };
  for (const auto& row :
       std::vector<row>{{1, 10, 6}, {16, 10, 6}, {17, 5, 3}, {96, 1, 1}, {97, 1, 0}, {200, 0, 0}}) {
    BOOST_TEST(concurrent_requests(a, plan.models[0], row.context_tokens) == row.of_a);
    BOOST_TEST(concurrent_requests(models, plan, row.context_tokens) == row.of_both);
  }
  auto twice = b;
  twice.tokens_weight = 2;
  BOOST_TEST(concurrent_requests(twice, plan.models[1], 16) == 3u);
}
