#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/exec/safetensors.hpp"
#include "tests/exec/heads/head_folder.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;
using doubles = std::vector<double>;

namespace {

std::unique_ptr<routing_head> load(const head_spec& spec, std::uint32_t hidden_size) {
  auto head = load_head(spec, hidden_size);
  BOOST_REQUIRE_MESSAGE(head.has_value(), (head ? std::string() : head.error().message));
  return std::move(*head);
}

tensors random_citer(unsigned seed) {
  return {{"mlp.0.weight", random_tensor({48, 24}, seed)},
          {"mlp.0.bias", random_tensor({48}, seed + 1)},
          {"mlp.1.weight", random_tensor({48}, seed + 2, -2, 2)},
          {"mlp.1.bias", random_tensor({48}, seed + 3)},
          {"mlp.1.running_mean", random_tensor({48}, seed + 4, -3, 3)},
          {"mlp.1.running_var", random_tensor({48}, seed + 5, 0.1f, 6)},
          {"mlp.4.weight", random_tensor({24, 48}, seed + 6, -0.3f, 0.3f)},
          {"mlp.4.bias", random_tensor({24}, seed + 7)},
          {"linear.weight", random_tensor({1, 24}, seed + 8, -0.3f, 0.3f)},
          {"linear.bias", random_tensor({1}, seed + 9)}};
}

/// weight · x + bias in double.
doubles dense(const tensors& t, const std::string& name, const doubles& x) {
  const tensor& weight = t.at(name + ".weight");
  doubles out;
  for (std::size_t o = 0; o < static_cast<std::size_t>(weight.shape[0]); ++o) {
    double sum = double{t.at(name + ".bias").values[o]};
    for (std::size_t i = 0; i < x.size(); ++i)
      sum += double{weight.values[o * x.size() + i]} * x[i];
    out.push_back(sum);
  }
  return out;
}

doubles layer_norm(const tensors& t, const std::string& name, const doubles& x) {
  double mean = 0, variance = 0;
  for (const double v : x)
    mean += v / static_cast<double>(x.size());
  for (const double v : x)
    variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  doubles out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) *
                      double{t.at(name + ".weight").values[i]} +
                  double{t.at(name + ".bias").values[i]});
  return out;
}

double r2r_by_definition(const tensors& t, const doubles& hidden, const doubles& embedding,
                         const doubles& logits) {
  doubles joined = hidden;
  joined.insert(joined.end(), embedding.begin(), embedding.end());
  const doubles projected = dense(t, "logits_projection", logits);
  joined.insert(joined.end(), projected.begin(), projected.end());
  doubles x = dense(t, "backbone.input_projection", dense(t, "combined_projection", joined));
  doubles wide =
      dense(t, "backbone.blocks.0.mlp.0", layer_norm(t, "backbone.blocks.0.layer_norm", x));
  for (double& v : wide)
    v = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
  const doubles added = dense(t, "backbone.blocks.0.mlp.3", wide);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] += added[i];
  const double logit =
      dense(t, "backbone.output_layer.1", layer_norm(t, "backbone.output_layer.0", x))[0];
  return 1 / (1 + std::exp(-logit));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(more_heads, head_folder)

BOOST_AUTO_TEST_CASE(citer_folded_equals_citer_layer_by_layer) {
  bool spread = false;
  for (unsigned seed = 1; seed < 8; ++seed) {
    const head_spec folded = write("citer", random_citer(100 * seed), R"({"kind": "citer"})");
    head_spec unfolded = folded;
    unfolded.kind = "citer_unfolded";
    const auto a = load(folded, 24), b = load(unfolded, 24);
    for (unsigned row = 0; row < 20; ++row) {
      const auto hidden = random_values(24, 1000 * seed + row, -2, 2);
      const float score = a->score({hidden, {}, {}});
      BOOST_TEST(std::abs(score - b->score({hidden, {}, {}})) < 1e-5);
      spread |= score > 0.2f && score < 0.8f;
    }
    BOOST_TEST(a->weight_bytes() < b->weight_bytes());
  }
  BOOST_TEST(spread); // not only the flat ends of the sigmoid were compared
}

BOOST_AUTO_TEST_CASE(the_shipped_citer_is_the_same_in_both_forms) {
  const std::string file = "examples/models/abacus/routers/citer.safetensors";
  const auto a = load({"citer", file}, 64), b = load({"citer_unfolded", file}, 64);
  for (unsigned row = 0; row < 20; ++row) {
    const auto hidden = random_values(64, row, -4, 4);
    BOOST_TEST(std::abs(a->score({hidden, {}, {}}) - b->score({hidden, {}, {}})) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(several_positions_are_read_oldest_first) {
  constexpr std::size_t window = 3, hidden = 4, logits = 5;
  const tensors t = random_r2r(window, hidden, window * logits);
  head_spec spec = write("r2r_multi", t, R"({"kind": "r2r_multi"})");
  spec.window_positions = window;
  const auto head = load(spec, hidden);
  BOOST_TEST(head->window_positions() == window);
  BOOST_TEST(head->top_logits_wanted() == logits);
  BOOST_TEST(head->wants_proposed_embedding());
  const auto read = head_window_of(spec).value();
  BOOST_TEST(read.positions == window);
  BOOST_TEST(read.top_logits == logits);
  for (unsigned row = 0; row < 10; ++row) {
    const auto in = random_values(window * (hidden + logits), 50 + row);
    const auto embedding = random_values(hidden, 80 + row);
    doubles states, tops;
    for (std::size_t w = 0; w < window; ++w) {
      const auto at = in.begin() + static_cast<std::ptrdiff_t>(w * (hidden + logits));
      states.insert(states.end(), at, at + hidden);
      tops.insert(tops.end(), at + hidden, at + hidden + logits);
    }
    const double wanted = r2r_by_definition(t, states, {embedding.begin(), embedding.end()}, tops);
    const float got = head->score(
        {.hidden = {}, .proposed_embedding = embedding, .top_logits = {}, .window = in});
    BOOST_TEST(std::abs(double{got} - wanted) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(a_window_of_one_position_is_the_plain_head) {
  const tensors t = random_r2r(1, 4, 6);
  const auto hidden = random_values(4, 1), embedding = random_values(4, 2),
             top = random_values(6, 3);
  const auto plain = load(write("r2r", t, "{}"), 4);
  const auto multi = load(write("r2r_multi", t, "{}"), 4);
  BOOST_TEST(multi->window_positions() == 1u);
  BOOST_TEST(head_window_of(write("r2r_multi", t, "{}")).value().positions == 1u);
  BOOST_TEST(multi->score({hidden, embedding, top}) == plain->score({hidden, embedding, top}));
}

BOOST_AUTO_TEST_CASE(windows_that_do_not_fit_the_tensors_are_refused) {
  head_spec spec = write("r2r_multi", random_r2r(3, 4, 15), "{}");
  spec.window_positions = 2;
  BOOST_TEST(load_head(spec, 4).error().message ==
             spec.weights.string() +
                 ": tensor 'logits_projection.weight' has shape [12, 15], wanted [8, 15]");
  spec = write("r2r_multi", random_r2r(3, 4, 16), "{}");
  spec.window_positions = 3;
  BOOST_TEST(load_head(spec, 4).error().message ==
             spec.weights.string() +
                 ": tensor 'logits_projection.weight' takes 16 logits, which do "
                 "not divide over a window of 3 positions");
  BOOST_TEST(head_window_of(spec).error().message == load_head(spec, 4).error().message);
  spec.window_positions = 0;
  BOOST_TEST((load_head(spec, 4).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(rstitch_is_one_hidden_layer) {
  const tensors t{{"mlp.0.weight", random_tensor({8, 4}, 1)},
                  {"mlp.0.bias", random_tensor({8}, 2)},
                  {"linear.weight", random_tensor({1, 8}, 3)},
                  {"linear.bias", random_tensor({1}, 4)}};
  const auto head = load(write("rstitch", t, R"({"kind": "rstitch"})"), 4);
  const auto hidden = random_values(4, 5, -2, 2);
  doubles wide = dense(t, "mlp.0", {hidden.begin(), hidden.end()});
  for (double& v : wide)
    v = std::max(v, 0.0);
  const double wanted = 1 / (1 + std::exp(-dense(t, "linear", wide)[0]));
  BOOST_TEST(std::abs(double{head->score({hidden, {}, {}})} - wanted) < 1e-6);
  BOOST_TEST(head->weight_bytes() == 4u * (8 * 4 + 8 + 8 + 1));
}

BOOST_AUTO_TEST_CASE(a_deferral_row_is_one_of_the_models_own) {
  const std::string model = "examples/models/abacus/abacus-xs";
  head_spec spec{"collm_row", model};
  spec.row = 1023;
  const auto head = load(spec, 64);
  const auto files = weight_files::open(model).value();
  const auto table = to_float(*files.find("model.embed_tokens.weight"));
  const auto hidden = random_values(64, 1, -4, 4);
  double logit = 0;
  for (std::size_t i = 0; i < 64; ++i)
    logit += double{hidden[i]} * double{table[1023 * 64 + i]};
  BOOST_TEST(std::abs(double{head->score({hidden, {}, {}})} - 1 / (1 + std::exp(-logit))) < 1e-6);
  BOOST_TEST(head_memory_bytes(spec).value() == 0u);

  spec.row = 1024;
  BOOST_TEST(load_head(spec, 64).error().message.find("has 1024 rows, wanted row 1024") !=
             std::string::npos);
  spec.row = -1;
  BOOST_TEST((load_head(spec, 64).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(descriptions_are_checked_by_kind) {
  head_spec spec = write("citer", random_citer(1), R"({"kind": "citer", "threshold": 0.5})");
  BOOST_TEST(check_head_description(spec).has_value());
  spec.kind = "citer_unfolded";
  BOOST_TEST(check_head_description(spec).has_value());
  spec.kind = "r2r";
  BOOST_TEST(!check_head_description(spec).has_value());
  spec.kind = "";
  BOOST_TEST(head_threshold(spec).value() == 0.5);
  BOOST_TEST(head_memory_bytes(spec).value() == 4u * (48 * 24 + 5 * 48 + 24 * 48 + 24 + 24 + 1));
}

BOOST_AUTO_TEST_SUITE_END()
