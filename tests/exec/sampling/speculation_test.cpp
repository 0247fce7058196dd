#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/core/philox.hpp"
#include "runtime/exec/sampler.hpp"
#include "runtime/methods/registry.hpp"

using namespace tokenrouter;

namespace {

constexpr std::size_t vocab = 6;
constexpr std::uint32_t prompt_tokens = 1;

using toy_logits = std::array<float, vocab>;

/// Two bigram models over six tokens that agree only partly.
toy_logits logits_of(bool large, token_id after) {
  toy_logits z{};
  for (std::size_t i = 0; i < vocab; ++i) {
    const auto base = static_cast<float>((i * 7 + static_cast<std::size_t>(after) * 3) % 5);
    z[i] = 0.6f * base + (large ? 0.0f : 0.9f * static_cast<float>(i % 2));
  }
  return z;
}

token_id draw(bool large, std::span<const token_id> tokens, const sampling_params& sampling) {
  sampler_scratch scratch;
  const auto z = logits_of(large, tokens.back());
  return sample_token(z, sampling, sample_stream(0), static_cast<std::uint32_t>(tokens.size()),
                      scratch)
      .token;
}

struct speculation {
  std::vector<token_id> tokens{2};
  std::size_t drafted = 0, accepted = 0;
};

/// Drafts and judges with the product's roles until `length` tokens are committed.
speculation run(const sampling_params& sampling, std::size_t length) {
  const method_topology topology{{"speculate_slm", "speculate_llm"}, {0}};
  method_parameters parameters;
  parameters.draft_tokens = 3;
  const auto small = make_role({0}, topology, parameters).value();
  const auto large = make_role({1}, topology, parameters).value();
  speculation out;
  method_state state;
  while (out.tokens.size() < length) {
    std::vector<token_id> text = out.tokens;
    route_input in;
    in.prompt_tokens = prompt_tokens;
    for (bool goes = false; !goes;) {
      in.position = static_cast<std::uint32_t>(text.size());
      in.tentative_tokens = static_cast<std::uint32_t>(text.size() - out.tokens.size());
      in.proposed = draw(false, text, sampling);
      goes = small->route(in, state).action == route_action::go_tentative;
      text.push_back(in.proposed);
    }
    std::vector<token_id> own;
    for (std::size_t n = out.tokens.size(); n <= text.size(); ++n)
      own.push_back(draw(true, std::span(text).first(n), sampling));
    const std::span drafts = std::span(text).subspan(out.tokens.size());
    const std::uint32_t accepted =
        large->receive({static_cast<std::uint32_t>(out.tokens.size()), drafts, own}, state);
    out.drafted += drafts.size();
    out.accepted += accepted;
    text.resize(out.tokens.size() + accepted);
    text.push_back(own[accepted]);
    out.tokens = text;
  }
  out.tokens.resize(length);
  return out;
}

std::array<double, vocab> exact(bool large, token_id after, double temperature) {
  const auto z = logits_of(large, after);
  std::array<double, vocab> p{};
  double sum = 0;
  for (std::size_t i = 0; i < vocab; ++i)
    sum += p[i] = std::exp(z[i] / temperature);
  for (double& x : p)
    x /= sum;
  return p;
}

} // namespace

// 36 pairs of tokens, 35 degrees of freedom: chi-square is above 66.6 with probability 0.001.
BOOST_AUTO_TEST_CASE(speculation_samples_exactly_what_the_large_model_would) {
  for (const float temperature : {1.0f, 0.6f}) {
    constexpr std::size_t runs = 20000;
    std::array<std::array<std::size_t, vocab>, vocab> counts{};
    std::size_t drafted = 0, accepted = 0;
    for (std::size_t seed = 0; seed < runs; ++seed) {
      sampling_params sampling;
      sampling.temperature = temperature;
      sampling.seed = seed;
      const auto got = run(sampling, 3);
      ++counts[static_cast<std::size_t>(got.tokens[1])][static_cast<std::size_t>(got.tokens[2])];
      drafted += got.drafted;
      accepted += got.accepted;
    }
    double chi_square = 0;
    const auto first = exact(true, 2, temperature);
    for (std::size_t a = 0; a < vocab; ++a)
      for (std::size_t b = 0; b < vocab; ++b) {
        const double want = runs * first[a] * exact(true, static_cast<token_id>(a), temperature)[b];
        const double off = static_cast<double>(counts[a][b]) - want;
        chi_square += off * off / want;
      }
    BOOST_TEST(chi_square < 66.6);
    BOOST_TEST(accepted > 0u);
    BOOST_TEST(accepted < drafted);
  }
}

// Independent draws would agree with probability Σ p·q; no coupling agrees more than Σ min(p, q).
BOOST_AUTO_TEST_CASE(equal_draws_make_drafts_agree_more_often_than_chance) {
  constexpr std::size_t runs = 20000;
  std::size_t agreed = 0;
  for (std::size_t seed = 0; seed < runs; ++seed) {
    sampling_params sampling;
    sampling.temperature = 1;
    sampling.seed = seed;
    const std::vector<token_id> text{2};
    agreed += draw(false, text, sampling) == draw(true, text, sampling);
  }
  double independent = 0, best = 0;
  const auto p = exact(true, 2, 1.0), q = exact(false, 2, 1.0);
  for (std::size_t i = 0; i < vocab; ++i) {
    independent += p[i] * q[i];
    best += std::min(p[i], q[i]);
  }
  const double noise = 5 * std::sqrt(static_cast<double>(runs));
  BOOST_TEST(static_cast<double>(agreed) > independent * runs + noise);
  BOOST_TEST(static_cast<double>(agreed) < best * runs + noise);
}

BOOST_AUTO_TEST_CASE(speculation_gives_the_large_models_own_tokens_for_a_seed) {
  for (const float temperature : {0.0f, 0.8f})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      sampling_params sampling;
      sampling.temperature = temperature;
      sampling.seed = seed;
      std::vector<token_id> alone{2};
      while (alone.size() < 12)
        alone.push_back(draw(true, alone, sampling));
      BOOST_TEST(run(sampling, 12).tokens == alone, boost::test_tools::per_element());
    }
}
