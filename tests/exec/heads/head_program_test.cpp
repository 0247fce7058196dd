#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/exec/heads/head_folder.hpp"

using namespace tokenrouter;

namespace {

std::unique_ptr<routing_head> load(const head_spec& spec, std::uint32_t hidden_size) {
  auto head = load_head(spec, hidden_size);
  BOOST_REQUIRE_MESSAGE(head.has_value(), (head ? std::string() : head.error().message));
  return std::move(*head);
}

double activated(head_step::activation how, double x) {
  switch (how) {
  case head_step::activation::relu:
    return std::max(x, 0.0);
  case head_step::activation::gelu:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  default:
    return x;
  }
}

/// The output of one step for its input, both in full, before what stands at `to` is added.
std::vector<double> output_of(const head_step& step, const std::vector<double>& x) {
  std::vector<double> y;
  if (step.what == head_step::kind::dense) {
    for (std::size_t o = 0; o < step.dense->out; ++o) {
      double sum = step.dense->bias.empty() ? 0 : double{step.dense->bias[o]};
      for (std::size_t i = 0; i < step.dense->in; ++i)
        sum += x[i] * double{step.dense->weight[i * step.dense->out + o]};
      y.push_back(sum);
    }
  } else if (step.what == head_step::kind::layer_norm) {
    const auto count = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double v : x)
      mean += v / count;
    for (const double v : x)
      variance += (v - mean) * (v - mean) / count;
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back((x[i] - mean) / std::sqrt(variance + double{step.eps}) * double{step.scale[i]} +
                  double{step.shift[i]});
  } else {
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back((x[i] - double{step.mean[i]}) * double{step.scale[i]} + double{step.shift[i]});
  }
  for (double& v : y)
    v = activated(step.after, v);
  return y;
}

std::size_t inputs_of(const head_step& step) {
  return step.what == head_step::kind::dense ? step.dense->in : step.scale.size();
}

/// What head_program says it means, in double: nothing is shared with the heads' own kernels.
class interpreter {
 public:
  explicit interpreter(const head_program& program) : program_(program) {}

  double score(const head_input& in) {
    // What a step reads before anything wrote it spoils the score.
    values_.assign(program_.floats, std::nan(""));
    write(program_.hidden_at, in.hidden);
    write(program_.embedding_at, in.proposed_embedding);
    write(program_.top_logits_at, in.top_logits);
    for (const auto& step : program_.steps)
      run(step);
    return 1 / (1 + std::exp(-values_.at(program_.output_at)));
  }

 private:
  void write(std::int32_t at, std::span<const float> values) {
    if (at == head_program::unused)
      return;
    for (std::size_t i = 0; i < values.size(); ++i)
      values_.at(static_cast<std::size_t>(at) + i) = double{values[i]};
  }

  void run(const head_step& step) {
    std::vector<double> x;
    for (std::size_t i = 0; i < inputs_of(step); ++i)
      x.push_back(values_.at(step.from + i));
    const auto y = output_of(step, x);
    for (std::size_t i = 0; i < y.size(); ++i) {
      double& to = values_.at(step.to + i);
      to = step.accumulate ? to + y[i] : y[i];
    }
  }

  const head_program& program_;
  std::vector<double> values_;
};

/// head_input::window of such hidden states and logits; sorts the logits of each position.
std::vector<float> window_of(std::size_t positions, std::span<const float> hidden,
                             std::span<float> top) {
  std::vector<float> out;
  const std::size_t floats = hidden.size() / positions, logits = top.size() / positions;
  for (std::size_t i = 0; i < positions; ++i) {
    const auto state = hidden.subspan(i * floats, floats);
    const auto largest = top.subspan(i * logits, logits);
    std::ranges::sort(largest, std::greater{});
    out.insert(out.end(), state.begin(), state.end());
    out.insert(out.end(), largest.begin(), largest.end());
  }
  return out;
}

/// Runs the head's program beside the head on random rows, hidden states within ±`spread`.
void expect_equal_scores(routing_head& head, const std::string& name, std::uint32_t hidden_size,
                         float spread) {
  const auto program = head.program();
  BOOST_TEST((program.top_logits_at != head_program::unused) == (head.top_logits_wanted() > 0),
             name);
  BOOST_TEST((program.embedding_at != head_program::unused) == head.wants_proposed_embedding(),
             name);
  interpreter plain(program);
  std::size_t undecided_count = 0;
  const std::size_t positions = head.window_positions();
  for (unsigned row = 0; row < 50; ++row) {
    const auto hidden = random_values(positions * hidden_size, 3 * row, -spread, spread);
    const auto embedding = random_values(hidden_size, 3 * row + 1);
    auto top = random_values(positions * head.top_logits_wanted(), 3 * row + 2, -4, 12);
    const auto window = window_of(positions, hidden, top);
    const head_input in{hidden, embedding, top}, seen{{}, embedding, {}, window};
    const double wanted = double{head.score(positions > 1 ? seen : in)}, got = plain.score(in);
    BOOST_TEST(std::abs(got - wanted) < 1e-5,
               name << " row " << row << ": " << got << ", the head " << wanted);
    undecided_count += wanted > 0.01 && wanted < 0.99;
  }
  // The flat ends of the sigmoid would hide a wrong logit.
  BOOST_TEST(undecided_count >= 5u, name << ": " << undecided_count << " rows");
}

tensors random_rstitch() {
  return {{"mlp.0.weight", random_tensor({32, 24}, 1)},
          {"mlp.0.bias", random_tensor({32}, 2)},
          {"linear.weight", random_tensor({1, 32}, 3, -0.2f, 0.2f)},
          {"linear.bias", random_tensor({1}, 4)}};
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(head_programs, head_folder)

BOOST_AUTO_TEST_CASE(programs_of_shipped_heads_give_their_scores) {
  struct row {
    std::string kind, file;
  };
  for (const auto& [kind, file] : std::vector<row>{
           {"r2r", "r2r"}, {"citer", "citer"}, {"citer_unfolded", "citer"}, {"collm", "collm"}}) {
    const std::string weights = "examples/models/abacus/routers/" + file + ".safetensors";
    expect_equal_scores(*load({kind, weights}, 64), kind, 64, 4);
  }
}

BOOST_AUTO_TEST_CASE(the_program_of_a_row_of_the_lm_head_gives_its_scores) {
  head_spec spec{"collm_row", "examples/models/abacus/abacus-xs"};
  for (const std::int32_t token : {0, 512, 1023}) {
    spec.row = token;
    expect_equal_scores(*load(spec, 64), "collm_row " + std::to_string(token), 64, 4);
  }
}

BOOST_AUTO_TEST_CASE(programs_of_random_heads_give_their_scores) {
  expect_equal_scores(*load(write("rstitch", random_rstitch(), R"({"kind": "rstitch"})"), 24),
                      "rstitch", 24, 2);
  for (const char* kind : {"r2r", "r2r_multi"}) // of one position: the same
    expect_equal_scores(*load(write(kind, random_r2r(1, 8, 10), "{}"), 8), kind, 8, 2);
}

BOOST_AUTO_TEST_CASE(the_eps_of_the_description_is_in_the_program) {
  expect_equal_scores(*load(write("r2r", random_r2r(1, 8, 10), R"({"layer_norm_eps": 0.5})"), 8),
                      "r2r", 8, 2);
}

BOOST_AUTO_TEST_CASE(programs_of_heads_with_a_window_give_their_scores) {
  head_spec spec = write("r2r_multi", random_r2r(3, 4, 15), R"({"kind": "r2r_multi"})");
  spec.window_positions = 3;
  expect_equal_scores(*load(spec, 4), "r2r_multi", 4, 2);
  const head_spec shipped{"r2r_multi", "examples/models/abacus/routers/r2r_multi.safetensors", 3,
                          -1};
  expect_equal_scores(*load(shipped, 64), "shipped r2r_multi", 64, 4);
}

BOOST_AUTO_TEST_SUITE_END()
