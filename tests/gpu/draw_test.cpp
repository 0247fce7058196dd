#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <boost/test/unit_test.hpp>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/kernels/draw.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/core/signal_set.hpp"
#include "runtime/exec/likelihood.hpp"
#include "runtime/exec/mixture.hpp"
#include "runtime/exec/sampler.hpp"
#include "runtime/exec/signals.hpp"
#include "tests/gpu/random_numbers.hpp"

using namespace tokenrouter;
using namespace tokenrouter::gpu;
using namespace tokenrouter::test;

namespace {

template <class T>
device_memory to_device(const std::vector<T>& values) {
  auto memory = device_memory::allocate(values.size() * sizeof(T)).value();
  cuda_check(
      cudaMemcpy(memory.as(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

struct drawn {
  std::vector<drawn_row> rows;
  std::vector<likely_token> likeliest;
  std::vector<float> top;
  std::vector<float> distributions;
};

/// `biases`: what those of the orders are offsets into.
drawn draw(const std::vector<float>& logits, std::uint32_t vocab, std::uint32_t top_wanted,
           const std::vector<draw_order>& orders, const std::vector<float>& mixes = {0},
           const std::vector<std::int32_t>& biases = {}) {
  prepare_draws();
  const auto count = orders.size();
  const auto on_device = to_device(logits);
  const auto orders_there = to_device(orders);
  const auto mixes_there = to_device(mixes);
  const auto biases_there = to_device(biases);
  const auto poisoned = to_device(std::vector<float>(count * kept_logits_max, NAN));
  const auto out = to_device(
      std::vector<drawn_row>(count, drawn_row{-7, NAN, NAN, NAN, NAN, NAN, NAN, NAN, {}}));
  const auto likeliest = to_device(std::vector<likely_token>(count * likeliest_max, {-9, NAN}));
  const auto distributions = to_device(std::vector<float>(count * vocab, NAN));
  draw_rows({.logits = on_device.as<float>(),
             .stride = vocab,
             .count = vocab,
             .orders = orders_there.as<draw_order>(),
             .has_biases = !biases.empty(),
             .tables = biases_there.as<std::int32_t>(),
             .rows = static_cast<std::uint32_t>(count),
             .top_wanted = top_wanted,
             .top_of_all = false,
             .top = poisoned.as<float>(),
             .mixes = mixes_there.as<float>(),
             .distributions = distributions.as<float>(),
             .out = out.as<drawn_row>(),
             .likeliest = likeliest.as<likely_token>()},
            nullptr);
  drawn d{std::vector<drawn_row>(count), std::vector<likely_token>(count * likeliest_max),
          std::vector<float>(count * kept_logits_max), std::vector<float>(count * vocab)};
  cuda_check(cudaMemcpy(d.rows.data(), out.as(), out.bytes(), cudaMemcpyDeviceToHost));
  cuda_check(cudaMemcpy(d.top.data(), poisoned.as(), poisoned.bytes(), cudaMemcpyDeviceToHost));
  cuda_check(
      cudaMemcpy(d.likeliest.data(), likeliest.as(), likeliest.bytes(), cudaMemcpyDeviceToHost));
  cuda_check(cudaMemcpy(d.distributions.data(), distributions.as(), distributions.bytes(),
                        cudaMemcpyDeviceToHost));
  std::vector<float> after(logits.size());
  cuda_check(cudaMemcpy(after.data(), on_device.as(), on_device.bytes(), cudaMemcpyDeviceToHost));
  BOOST_TEST(std::memcmp(after.data(), logits.data(), on_device.bytes()) == 0,
             "the logits are as they were");
  return d;
}

draw_order greedy() {
  draw_order o{};
  o.top_p = 1;
  o.mix = o.distribution = o.scored = -1;
  o.signals = signal::entropy | signal::top_entropy | signal::evidence | signal::heads;
  return o;
}

bool near(double a, double b, double tolerance) {
  return (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

void expect_signals(std::span<const float> row, const drawn_row& found) {
  step_row_output wanted;
  std::vector<float> scratch;
  fill_signals(row, signal::entropy | signal::top_entropy | signal::evidence, scratch, wanted);
  BOOST_TEST(near(found.entropy_nats, wanted.entropy_nats, 1e-5));
  BOOST_TEST(near(found.entropy_normalised, wanted.entropy_normalised, 1e-5));
  BOOST_TEST(near(found.entropy_top20_nats, wanted.entropy_top20_nats, 1e-5));
  BOOST_TEST(near(found.aleatoric, wanted.aleatoric, 1e-5));
  BOOST_TEST(near(found.epistemic, wanted.epistemic, 1e-5));
}

void expect_top(std::span<const float> row, std::uint32_t wanted, const float* found) {
  std::vector<float> largest;
  top_logits(row, wanted, largest);
  for (std::size_t i = 0; i < largest.size(); ++i)
    BOOST_TEST((found[i] == largest[i] || (std::isnan(found[i]) && std::isnan(largest[i]))),
               "logit " << i << " is " << found[i] << ", not " << largest[i]);
}

std::vector<float> random_row(std::mt19937& random, std::uint32_t vocab, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> row(vocab);
  for (auto& z : row)
    z = normal(random);
  return row;
}

} // namespace

BOOST_AUTO_TEST_CASE(greedy_tokens_signals_and_largest_logits_are_those_of_the_host) {
  std::mt19937 random(3);
  for (const std::uint32_t vocab : {5u, 83u, 1024u, 32000u, 151936u}) {
    std::vector<float> logits;
    std::vector<draw_order> orders;
    for (int i = 0; i < 9; ++i) {
      const auto row = random_row(random, vocab, 0.5f + static_cast<float>(i));
      logits.insert(logits.end(), row.begin(), row.end());
      orders.push_back(greedy());
    }
    const auto found = draw(logits, vocab, 100, orders);
    sampler_scratch scratch;
    for (std::size_t i = 0; i < orders.size(); ++i)
      BOOST_TEST_CONTEXT("vocabulary " << vocab << ", row " << i) {
        const std::span row(logits.data() + i * vocab, vocab);
        const auto wanted = sample_token(row, {}, 0, 0, scratch);
        BOOST_TEST(found.rows[i].token == wanted.token);
        BOOST_TEST(near(found.rows[i].logprob, wanted.logprob, 1e-5));
        expect_signals(row, found.rows[i]);
        expect_top(row, std::min(100u, vocab), found.top.data() + i * kept_logits_max);
      }
  }
}

BOOST_AUTO_TEST_CASE(ties_go_to_the_smallest_token_and_equal_rows_are_uniform) {
  const std::uint32_t vocab = 30000;
  std::vector<float> logits(2 * vocab, 1.5f);
  logits[vocab + 7000] = logits[vocab + 29999] = 3;
  const auto found = draw(logits, vocab, 128, {greedy(), greedy()});
  BOOST_TEST(found.rows[0].token == 0);
  BOOST_TEST(found.rows[1].token == 7000);
  BOOST_TEST(near(found.rows[0].entropy_normalised, 1, 1e-6));
  for (int row = 0; row < 2; ++row)
    expect_top({logits.data() + row * vocab, vocab}, 128, found.top.data() + row * kept_logits_max);
}

BOOST_AUTO_TEST_CASE(nan_and_infinite_logits_behave_as_on_the_host) {
  const std::uint32_t vocab = 700;
  std::mt19937 random(9);
  std::vector<float> logits;
  for (int i = 0; i < 3; ++i) {
    const auto row = random_row(random, vocab, 2);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  logits[50] = logits[90] = NAN;
  logits[vocab + 40] = -INFINITY;
  logits[2 * vocab + 300] = INFINITY;
  const auto found = draw(logits, vocab, 30, {greedy(), greedy(), greedy()});
  sampler_scratch scratch;
  for (int i = 0; i < 3; ++i)
    BOOST_TEST_CONTEXT("row " << i) {
      const std::span row(logits.data() + i * vocab, vocab);
      BOOST_TEST(found.rows[i].token == sample_token(row, {}, 0, 0, scratch).token);
      if (i < 2) {
        expect_signals(row, found.rows[i]);
        expect_top(row, 30, found.top.data() + i * kept_logits_max);
      }
    }
}

BOOST_AUTO_TEST_CASE(draws_are_those_of_the_host_for_all_truncations) {
  std::mt19937 random(21);
  const std::uint32_t vocab = 20000;
  std::size_t equal = 0, all = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<float> logits;
    std::vector<draw_order> orders;
    std::vector<sampling_params> params;
    for (int i = 0; i < 32; ++i) {
      const auto row = random_row(random, vocab, round % 3 == 0 ? 0.3f : 3.0f);
      logits.insert(logits.end(), row.begin(), row.end());
      sampling_params p;
      p.temperature = 0.2f + static_cast<float>(below(random, 30)) / 10;
      p.top_k = below(random, 3) == 0 ? 1 + below(random, 300) : 0;
      p.top_p = below(random, 3) == 0 ? 0.1f + static_cast<float>(below(random, 90)) / 100 : 1.0f;
      p.min_p = below(random, 3) == 0 ? static_cast<float>(below(random, 50)) / 100 : 0.0f;
      p.seed = random();
      draw_order o = greedy();
      o.temperature = p.temperature;
      o.top_k = static_cast<int>(p.top_k);
      o.top_p = p.top_p;
      o.min_p = p.min_p;
      o.uniform = uniform_draw(p.seed, 1, 77);
      orders.push_back(o);
      params.push_back(p);
    }
    const auto found = draw(logits, vocab, 0, orders);
    sampler_scratch scratch;
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const auto wanted =
          sample_token({logits.data() + i * vocab, vocab}, params[i], 1, 77, scratch);
      equal += wanted.token == found.rows[i].token;
      ++all;
    }
  }
  // Sums of thousands of weights differ in their last bits, so a draw next to a border may too.
  BOOST_TEST_MESSAGE(equal << " of " << all << " draws are the host's");
  BOOST_TEST(equal >= all - 3);
}

BOOST_AUTO_TEST_CASE(mixtures_and_distributions_are_those_of_the_host) {
  std::mt19937 random(5);
  const std::uint32_t vocab = 1024;
  const auto logits = random_row(random, vocab, 2);
  std::vector<float> other(vocab);
  probabilities(random_row(random, vocab, 2), other);
  draw_order o = greedy();
  o.mix = 0;
  o.mix_weight = 0.35f;
  o.distribution = 0;
  const auto found = draw(logits, vocab, 0, {o}, other);
  const auto wanted = most_likely_of_mixture(logits, other, 0.35f);
  BOOST_TEST(found.rows[0].token == wanted.token);
  BOOST_TEST(near(found.rows[0].logprob, wanted.logprob, 1e-5));
  std::vector<float> shares(vocab);
  probabilities(logits, shares);
  for (std::size_t i = 0; i < vocab; ++i)
    BOOST_TEST(near(found.distributions[i], shares[i], 1e-5));
}

BOOST_AUTO_TEST_CASE(likelihoods_are_those_of_the_host) {
  std::mt19937 random(8);
  for (const std::uint32_t vocab : {12u, 1024u, 151936u}) {
    const auto logits = random_row(random, vocab, 3);
    draw_order o = greedy();
    o.scored = static_cast<int>(below(random, vocab));
    o.likeliest = 20;
    const auto found = draw(logits, vocab, 0, {o});
    step_row_output wanted;
    std::vector<token_likelihood> likeliest(20);
    fill_likelihoods(logits, o.scored, wanted, likeliest);
    BOOST_TEST(near(found.rows[0].scored_logprob, wanted.scored_logprob, 1e-5));
    for (int i = 0; i < 20; ++i) {
      BOOST_TEST(found.likeliest[i].token == likeliest[i].token);
      BOOST_TEST(near(found.likeliest[i].logprob, likeliest[i].logprob, 1e-5));
    }
  }
}

namespace {

/// Biases of up to 300 tokens, the likeliest of the row among them; some bans, some that force.
std::vector<logit_bias> random_biases(std::mt19937& random, std::span<const float> row) {
  const auto vocab = static_cast<std::uint32_t>(row.size());
  std::vector<token_id> tokens{static_cast<token_id>(std::ranges::max_element(row) - row.begin())};
  for (std::uint32_t i = below(random, std::min(vocab, 300u)); i > 0; --i)
    tokens.push_back(static_cast<token_id>(below(random, vocab)));
  std::ranges::sort(tokens);
  tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  std::vector<logit_bias> biases;
  for (const token_id token : tokens) {
    const float spread = below(random, 4) == 0 ? 100.0f : 4.0f;
    biases.push_back({token, spread * (static_cast<float>(below(random, 2001)) / 1000 - 1)});
  }
  return biases;
}

void add_biases(draw_order& order, const std::vector<logit_bias>& biases,
                std::vector<std::int32_t>& tables) {
  order.biases = static_cast<int>(tables.size());
  order.bias_count = static_cast<int>(biases.size());
  for (const auto& one : biases) {
    tables.push_back(one.token);
    tables.push_back(std::bit_cast<std::int32_t>(one.bias));
  }
}

sampling_params random_params(std::mt19937& random) {
  sampling_params p;
  p.temperature = below(random, 3) == 0 ? 0.0f : 0.2f + static_cast<float>(below(random, 30)) / 10;
  p.top_k = below(random, 3) == 0 ? 1 + below(random, 300) : 0;
  p.top_p = below(random, 3) == 0 ? 0.1f + static_cast<float>(below(random, 90)) / 100 : 1.0f;
  p.min_p = below(random, 3) == 0 ? static_cast<float>(below(random, 50)) / 100 : 0.0f;
  p.seed = random();
  return p;
}

draw_order order_of(const sampling_params& p) {
  draw_order o = greedy();
  o.temperature = p.temperature;
  o.top_k = static_cast<int>(p.top_k);
  o.top_p = p.top_p;
  o.min_p = p.min_p;
  o.uniform = p.temperature > 0 ? uniform_draw(p.seed, 1, 77) : 0.0f;
  return o;
}

} // namespace

BOOST_AUTO_TEST_CASE(biased_draws_are_those_of_the_host_and_signals_those_of_raw_logits) {
  std::mt19937 random(31);
  std::size_t equal = 0, all = 0;
  for (const std::uint32_t vocab : {5u, 83u, 1024u, 32000u, 151936u}) {
    std::vector<float> logits;
    std::vector<draw_order> orders;
    std::vector<sampling_params> params;
    std::vector<std::int32_t> tables{-1, -1, -1}; // as behind block ids
    for (int i = 0; i < 40; ++i) {
      auto row = random_row(random, vocab, i % 3 == 0 ? 0.3f : 3.0f);
      if (i % 10 == 9)
        row[below(random, vocab)] = NAN;
      params.push_back(random_params(random));
      orders.push_back(order_of(params.back()));
      if (i % 4 != 3) // others of the same step have none
        params.back().biases = random_biases(random, row);
      add_biases(orders.back(), params.back().biases, tables);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    const auto found = draw(logits, vocab, 100, orders, {0}, tables);
    sampler_scratch scratch;
    for (std::size_t i = 0; i < orders.size(); ++i)
      BOOST_TEST_CONTEXT("vocabulary " << vocab << ", row " << i) {
        const std::span row(logits.data() + i * vocab, vocab);
        const auto wanted = sample_token(row, params[i], 1, 77, scratch);
        ++all;
        equal += wanted.token == found.rows[i].token;
        if (params[i].temperature <= 0)
          BOOST_TEST(found.rows[i].token == wanted.token);
        if (found.rows[i].token == wanted.token)
          BOOST_TEST(near(found.rows[i].logprob, wanted.logprob, 1e-5));
        expect_signals(row, found.rows[i]);
        expect_top(row, std::min(100u, vocab), found.top.data() + i * kept_logits_max);
      }
  }
  BOOST_TEST_MESSAGE(equal << " of " << all << " draws are the host's");
  BOOST_TEST(equal >= all - 3);
}

BOOST_AUTO_TEST_CASE(biases_that_level_logits_leave_the_smallest_token) {
  const std::uint32_t vocab = 4096;
  std::vector<float> logits(vocab, 1.0f);
  logits[9] = 3;
  logits[4000] = 2;
  std::vector<std::int32_t> tables;
  draw_order o = greedy();
  add_biases(o, {{9, -1.0f}, {70, -100.0f}, {3000, 1.0f}, {5000, 100.0f}}, tables);
  const auto found = draw(logits, vocab, 0, {o}, {0}, tables);
  BOOST_TEST(found.rows[0].token == 9); // as likely as 3000 and 4000; 5000 is no token
}

BOOST_AUTO_TEST_CASE(biased_mixtures_are_those_of_the_host) {
  std::mt19937 random(41);
  for (const std::uint32_t vocab : {83u, 1024u, 151936u}) {
    std::vector<float> logits, mixes;
    std::vector<draw_order> orders;
    std::vector<std::vector<logit_bias>> biases;
    std::vector<std::int32_t> tables;
    for (int i = 0; i < 8; ++i) {
      const auto row = random_row(random, vocab, 2);
      std::vector<float> other(vocab);
      probabilities(random_row(random, vocab, 2), other);
      draw_order o = greedy();
      o.mix = static_cast<int>(mixes.size());
      o.mix_weight = 0.1f + static_cast<float>(below(random, 80)) / 100;
      biases.push_back(random_biases(random, row));
      add_biases(o, biases.back(), tables);
      orders.push_back(o);
      logits.insert(logits.end(), row.begin(), row.end());
      mixes.insert(mixes.end(), other.begin(), other.end());
    }
    const auto found = draw(logits, vocab, 0, orders, mixes, tables);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const auto wanted = most_likely_of_mixture({logits.data() + i * vocab, vocab},
                                                 {mixes.data() + i * vocab, vocab},
                                                 orders[i].mix_weight, biases[i]);
      BOOST_TEST(found.rows[i].token == wanted.token);
      BOOST_TEST(near(found.rows[i].logprob, wanted.logprob, 1e-5));
    }
  }
}
