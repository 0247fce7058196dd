#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "gpu/device_memory.hpp"
#include "gpu/nccl/communicator.hpp"
#include "tests/exec/cpu/test_models.hpp"
#include "tests/gpu/gpu_sequence.hpp"
#include "tests/gpu/shard_team.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;
namespace tt = boost::test_tools;

namespace {

constexpr std::uint32_t pool_blocks = 256;

model_shape split_shape() {
  return {.hidden = 256,
          .mlp = 512,
          .layers = 3,
          .heads = 8,
          .kv_heads = 2,
          .head_dim = 64,
          .vocab = 1004}; // the shards' parts of the logits overlap
}

std::unique_ptr<shard_team> load_team(const load_options& options, std::uint32_t shards,
                                      std::uint32_t blocks, bool graphs = true) {
  auto team = shard_team::load(options, shards, graphs);
  BOOST_REQUIRE_MESSAGE(team.has_value(), (team ? std::string() : team.error().message));
  BOOST_REQUIRE((*team)->allocate_kv(blocks).has_value());
  poison(**team, blocks);
  return std::move(*team);
}

std::vector<sequence> some_requests(std::uint32_t vocab) {
  std::mt19937 random(11);
  std::vector<sequence> all(6);
  block_id next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto length = static_cast<std::uint32_t>(i == 0 ? 300 : 10 + random() % 90);
    for (std::uint32_t t = 0; t < length; ++t)
      all[i].tokens.push_back(static_cast<token_id>(random() % vocab));
    all[i].blocks = blocks_for(length, next);
    next += static_cast<block_id>(all[i].blocks.size());
  }
  return all;
}

/// The worst distance of hidden states and logits between a split model and a whole one, over
/// prefill chunks, extends and decodes that share steps.
double split_against_whole(const load_options& options, std::uint32_t vocab, std::uint32_t shards,
                           bool graphs) {
  const auto whole = load_on_gpu(options, pool_blocks);
  const auto team = load_team(options, shards, pool_blocks, graphs);
  auto requests = some_requests(vocab);
  std::mt19937 random(5);
  double worst = 0;
  for (int step = 0; step < 200; ++step) {
    step_input in;
    for (auto& s : requests) {
      const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
      const auto wish = static_cast<std::uint32_t>(step % 3 == 0 ? 1 + random() % 60 : 1);
      if (left > 0 && random() % 4 != 0)
        add_row(in, s, std::min(left, wish), true);
    }
    if (in.rows.empty())
      continue;
    const auto wanted = run_on_gpu(*whole, in);
    step_output out;
    team->step(in, out);
    BOOST_REQUIRE_EQUAL(out.failure, "");
    for (const auto& [row, record] : wanted) {
      const auto end = static_cast<std::uint32_t>(row); // every row answers one position
      worst = std::max({worst, distance(gpu::logits_of(team->leader(), end), record.logits),
                        distance(gpu::hidden_of(team->leader(), end), record.hidden)});
    }
  }
  return worst;
}

double random_model_split(compute_type compute, bool graphs) {
  scratch_folder folder;
  write_random_model(folder.path(), split_shape(), 31);
  load_options options;
  options.model_path = folder.path();
  options.compute = compute;
  return split_against_whole(options, split_shape().vocab, 2, graphs);
}

} // namespace

BOOST_AUTO_TEST_CASE(one_member_alone_sums_and_gathers_to_what_it_has,
                     *boost::unit_test::precondition(has_gpus{1})) {
  const auto id = gpu::make_group_id();
  BOOST_REQUIRE_MESSAGE(id.has_value(), (id ? std::string() : id.error().message));
  cudaSetDevice(0);
  auto alone = gpu::communicator::join({0, 1, *id, nullptr}, 0);
  BOOST_REQUIRE_MESSAGE(alone.has_value(), (alone ? std::string() : alone.error().message));
  auto memory = gpu::device_memory::allocate(4 * sizeof(float));
  BOOST_REQUIRE(memory.has_value());
  const std::vector<float> given = {1, -2, 3.5, 0};
  cudaMemcpy(memory->as(), given.data(), 16, cudaMemcpyHostToDevice);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  (*alone)->sum(memory->as<float>(), 4, stream);
  (*alone)->gather(memory->as<float>(), 4, stream);
  BOOST_TEST((*alone)->wait(stream).has_value());
  std::vector<float> found(4);
  cudaMemcpy(found.data(), memory->as(), 16, cudaMemcpyDeviceToHost);
  BOOST_TEST(found == given, tt::per_element());
  cudaStreamDestroy(stream);
}

BOOST_AUTO_TEST_CASE(an_id_of_another_length_is_refused) {
  const auto refused = gpu::communicator::join({0, 2, std::vector<std::byte>(3), nullptr}, 0);
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST(refused.error().message.find("3 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(whoever_waits_for_shards_that_never_come_stops_when_told,
                     *boost::unit_test::precondition(has_gpus{1})) {
  const auto id = gpu::make_group_id();
  BOOST_REQUIRE(id.has_value());
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    *stop = true;
  });
  const auto refused = gpu::communicator::join({0, 2, *id, stop}, 0);
  later.join();
  BOOST_TEST(!refused.has_value());
}

BOOST_AUTO_TEST_CASE(two_shards_say_in_float32_what_the_whole_model_says,
                     *boost::unit_test::precondition(has_gpus{2})) {
  const double worst = random_model_split(compute_type::float32, true);
  BOOST_TEST_MESSAGE("worst distance " << worst);
  BOOST_TEST(worst < 1e-5);
}

BOOST_AUTO_TEST_CASE(two_shards_say_in_bfloat16_nearly_what_the_whole_model_says,
                     *boost::unit_test::precondition(has_gpus{2})) {
  const double graphs = random_model_split(compute_type::bfloat16, true);
  const double none = random_model_split(compute_type::bfloat16, false);
  BOOST_TEST_MESSAGE("worst distance " << graphs << ", without graphs " << none);
  BOOST_TEST(graphs < 1e-2);
  BOOST_TEST(none < 1e-2);
}

BOOST_AUTO_TEST_CASE(shards_of_random_weights_are_parts_of_the_same_model,
                     *boost::unit_test::precondition(has_gpus{2})) {
  load_options options;
  options.model_path = "tests/bench/gpu/shapes/qwen3-0.6b";
  options.dummy_weights = true;
  const double worst = split_against_whole(options, 1000, 2, true);
  BOOST_TEST_MESSAGE("worst distance " << worst);
  BOOST_TEST(worst < 2e-2);
}

BOOST_AUTO_TEST_CASE(a_step_whose_other_shard_is_gone_fails_once_the_group_is_stopped,
                     *boost::unit_test::precondition(has_gpus{2})) {
  scratch_folder folder;
  write_random_model(folder.path(), split_shape(), 31);
  load_options options;
  options.model_path = folder.path();
  const auto team = load_team(options, 2, pool_blocks);
  auto requests = some_requests(split_shape().vocab);
  step_input in;
  add_row(in, requests[1], 4, true);
  step_output out;
  team->step(in, out);
  BOOST_REQUIRE_EQUAL(out.failure, "");
  team->lose(1);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    team->stop();
  });
  step_input next;
  add_row(next, requests[1], 1, true);
  team->step(next, out);
  later.join();
  BOOST_TEST(!out.failure.empty());
}
