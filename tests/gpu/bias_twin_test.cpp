#include <algorithm>
#include <random>

#include "tests/exec/cpu/test_models.hpp"
#include "tests/gpu/gpu_sequence.hpp"
#include "tests/gpu/random_numbers.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t pool_blocks = 256;

model_shape shape() {
  return {.hidden = 128,
          .mlp = 256,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 64,
          .vocab = 1000};
}

std::vector<logit_bias> random_biases(std::mt19937& random) {
  std::vector<logit_bias> biases;
  for (token_id token = 0; token < 1000; ++token)
    if (below(random, 5) == 0 && biases.size() < 300)
      biases.push_back({token, static_cast<float>(below(random, 2001)) / 100 - 10});
  return biases;
}

/// A step of some tokens of every request, several of them answered at times: as peers' tokens are
/// judged. Two rows of three have biases if any have, some a mixture or a temperature as well.
step_input biased_step(std::mt19937& random, std::vector<sequence>& requests, bool biases) {
  step_input in;
  for (auto& s : requests) {
    const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
    if (left == 0 || below(random, 4) == 0)
      continue;
    add_row(in, s, std::min(left, 1 + below(random, 6)), true);
    step_row& row = in.rows.back();
    row.answered_positions = 1 + below(random, row.token_count);
    row.signals = row.signals | signal::entropy | signal::evidence;
    row.likeliest_count = below(random, 3);
    if (biases && below(random, 3) > 0)
      row.sampling.biases = random_biases(random);
    if (below(random, 3) == 0) {
      row.sampling.temperature = 0.8f;
      row.sampling.top_p = 0.9f;
      row.sampling.seed = random();
    }
    if (below(random, 4) == 0) {
      row.mix_weight = 0.3f;
      row.mix_offset = static_cast<std::uint32_t>(in.mixes.size());
      in.mixes.resize(in.mixes.size() + shape().vocab, 1.0f / static_cast<float>(shape().vocab));
    }
  }
  return in;
}

struct tally {
  std::size_t equal = 0, all = 0;

  void add(const step_row_output& wanted, const step_row_output& found) {
    ++all;
    if (wanted.token != found.token)
      return;
    ++equal;
    BOOST_TEST(std::abs(wanted.logprob - found.logprob) < 1e-3);
    BOOST_TEST(std::abs(wanted.entropy_nats - found.entropy_nats) < 1e-3);
    BOOST_TEST(std::abs(wanted.aleatoric - found.aleatoric) < 1e-3);
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(steps_with_biases_draw_what_the_cpu_draws) {
  scratch_folder folder;
  write_random_model(folder.path(), shape(), 23);
  load_options options;
  options.model_path = folder.path();
  options.compute = compute_type::float32;
  const auto here = load(options, pool_blocks);
  for (const bool graphs : {false, true}) {
    const auto there = load_on_gpu(options, pool_blocks, graphs);
    std::mt19937 random(7);
    std::vector<sequence> requests(8);
    block_id next_block = 0;
    for (auto& s : requests) {
      for (std::uint32_t t = 60 + below(random, 150); t > 0; --t)
        s.tokens.push_back(static_cast<token_id>(below(random, shape().vocab)));
      s.blocks = blocks_for(static_cast<std::uint32_t>(s.tokens.size()), next_block);
      next_block += static_cast<block_id>(s.blocks.size());
    }
    tally draws;
    for (int step = 0; step < 80; ++step) {
      // Steps without biases in between go through graphs of the same sizes.
      const auto in = biased_step(random, requests, step % 3 > 0);
      if (in.rows.empty())
        continue;
      step_output wanted, found;
      here->step(in, wanted);
      there->step(in, found);
      for (std::size_t i = 0; i < wanted.rows.size(); ++i)
        draws.add(wanted.rows[i], found.rows[i]);
      for (std::size_t i = 0; i < wanted.earlier.size(); ++i)
        draws.add(wanted.earlier[i], found.earlier[i]);
    }
    BOOST_TEST_MESSAGE((graphs ? "graphs: " : "no graphs: ") << draws.equal << " of " << draws.all);
    BOOST_TEST(draws.all > 400u);
    BOOST_TEST(draws.equal >= draws.all - 3);
  }
}

BOOST_AUTO_TEST_CASE(a_banned_token_is_never_drawn_and_a_forced_one_always) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-xs";
  const auto model = load_on_gpu(options, 8);
  sequence s;
  s.tokens = {5, 9, 200, 31};
  s.blocks = blocks_for(4, 0);
  const auto drawn = [&](std::vector<logit_bias> biases, float temperature) {
    step_input in;
    sequence copy = s;
    add_row(in, copy, 4, true);
    in.rows[0].sampling.biases = std::move(biases);
    in.rows[0].sampling.temperature = temperature;
    return run_on_gpu(*model, in).at(0).out.token;
  };
  const token_id plain = drawn({}, 0);
  for (const float temperature : {0.0f, 1.0f}) {
    BOOST_TEST(drawn({{plain, -100.0f}}, temperature) != plain);
    BOOST_TEST(drawn({{777, 100.0f}}, temperature) == 777);
  }
  BOOST_TEST(drawn({}, 0) == plain);
}
