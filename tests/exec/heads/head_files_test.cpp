#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/exec/heads/head_folder.hpp"

using namespace tokenrouter;
namespace fs = std::filesystem;
namespace tt = boost::test_tools;

namespace {

tensors small_r2r() {
  return {{"logits_projection.weight", filled({4, 3})},
          {"logits_projection.bias", filled({4})},
          {"combined_projection.weight", filled({5, 12})},
          {"combined_projection.bias", filled({5})},
          {"backbone.input_projection.weight", filled({6, 5})},
          {"backbone.input_projection.bias", filled({6})},
          {"backbone.blocks.0.layer_norm.weight", filled({6})},
          {"backbone.blocks.0.layer_norm.bias", filled({6})},
          {"backbone.blocks.0.mlp.0.weight", filled({7, 6})},
          {"backbone.blocks.0.mlp.0.bias", filled({7})},
          {"backbone.blocks.0.mlp.3.weight", filled({6, 7})},
          {"backbone.blocks.0.mlp.3.bias", filled({6})},
          {"backbone.output_layer.0.weight", filled({6})},
          {"backbone.output_layer.0.bias", filled({6})},
          {"backbone.output_layer.1.weight", filled({1, 6})},
          {"backbone.output_layer.1.bias", filled({1}, 0.5f)}};
}

tensors small_citer() {
  return {{"mlp.0.weight", filled({3, 4})},    {"mlp.0.bias", filled({3})},
          {"mlp.1.weight", filled({3})},       {"mlp.1.bias", filled({3})},
          {"mlp.1.running_mean", filled({3})}, {"mlp.1.running_var", filled({3})},
          {"mlp.4.weight", filled({2, 3})},    {"mlp.4.bias", filled({2})},
          {"linear.weight", filled({1, 2})},   {"linear.bias", filled({1})}};
}

std::string message_of(const result<std::unique_ptr<routing_head>>& loaded) {
  return loaded ? "loaded"
                : std::string(to_string(loaded.error().code)) + ": " + loaded.error().message;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(head_files, head_folder)

BOOST_AUTO_TEST_CASE(sizes_come_from_the_tensors) {
  const auto r2r = load_head(write("r2r", small_r2r(), "{}"), 4);
  BOOST_REQUIRE_MESSAGE(r2r, message_of(r2r));
  BOOST_TEST((*r2r)->top_logits_wanted() == 3u);
  const std::vector<float> hidden(4, 1.0f), top{3, 2, 1};
  // All features are equal, so the layer norms leave only their shifts: the output's logit is
  // 0.5 + Σ 6 · 0.01 · 0.01.
  BOOST_TEST((*r2r)->score({hidden, hidden, top}) == 1.0f / (1 + std::exp(-0.5006f)),
             tt::tolerance(1e-5f));
  BOOST_TEST(load_head(write("citer", small_citer(), "{}"), 4).has_value());
}

BOOST_AUTO_TEST_CASE(a_deferral_row_may_have_a_bias) {
  tensors all{{"defer.weight", {{1, 2}, {1.0f, -2.0f}}}};
  const std::vector<float> hidden{3, 1};
  auto head = load_head(write("collm", all, "{}"), 2);
  BOOST_REQUIRE_MESSAGE(head, message_of(head));
  BOOST_TEST((*head)->score({hidden, {}, {}}) == 1.0f / (1 + std::exp(-1.0f)),
             tt::tolerance(1e-6f));
  all["defer.bias"] = {{1}, {-1.0f}};
  head = load_head(write("collm", all, "{}"), 2);
  BOOST_REQUIRE_MESSAGE(head, message_of(head));
  BOOST_TEST((*head)->score({hidden, {}, {}}) == 0.5f, tt::tolerance(1e-6f));
}

BOOST_AUTO_TEST_CASE(faulty_tensors_are_refused_by_name) {
  struct row {
    const char* kind;
    std::function<void(tensors&)> spoil;
    const char* expected; // after the path
  };
  const row rows[] = {
      {"r2r", [](tensors& t) { t.erase("logits_projection.weight"); },
       ": tensor 'logits_projection.weight' is missing; it should have 2 dimensions"},
      {"r2r", [](tensors& t) { t.erase("backbone.output_layer.1.bias"); },
       ": tensor 'backbone.output_layer.1.bias' is missing, wanted with shape [1]"},
      {"r2r",
       [](tensors& t) {
         t["backbone.output_layer.1.weight"] = filled({3, 6});
       },
       ": tensor 'backbone.output_layer.1.weight' has shape [3, 6], wanted [1, 6]"},
      {"r2r",
       [](tensors& t) {
         t["combined_projection.weight"] = filled({5, 8});
       },
       ": tensor 'combined_projection.weight' has shape [5, 8], wanted [5, 12]"},
      {"r2r", [](tensors& t) { t["backbone.blocks.0.mlp.0.weight"] = filled({42}); },
       ": tensor 'backbone.blocks.0.mlp.0.weight' has 1 dimensions, wanted 2"},
      {"r2r", [](tensors& t) { t.erase("backbone.blocks.0.layer_norm.weight"); },
       ": tensor 'backbone.blocks.0.layer_norm.weight' is missing"},
      {"r2r",
       [](tensors& t) {
         t["backbone.blocks.0.dim_change.weight"] = filled({6, 6});
       },
       ": tensor 'backbone.blocks.0.dim_change.weight': blocks that change width are not "
       "supported"},
      {"r2r",
       [](tensors& t) {
         t["logits_projection.weight"] = filled({4, 129});
       },
       ": tensor 'logits_projection.weight' wants 129 logits, at most 128 are supported"},
      {"citer", [](tensors& t) { t["mlp.1.running_var"] = filled({4}); },
       ": tensor 'mlp.1.running_var' has shape [4], wanted [3]"},
      {"citer", [](tensors& t) { t.erase("linear.weight"); },
       ": tensor 'linear.weight' is missing, wanted with shape [1, 2]"},
      {"collm", [](tensors&) {}, ": tensor 'defer.weight' is missing, wanted with shape [1, 4]"},
  };
  for (const row& r : rows) {
    tensors all = r.kind == std::string("r2r") ? small_r2r() : small_citer();
    r.spoil(all);
    const head_spec spec = write(r.kind, all, "{}");
    BOOST_TEST(message_of(load_head(spec, 4)) == "mismatch: " + spec.weights.string() + r.expected);
  }
  const head_spec spec = write("r2r", small_r2r(), "{}");
  BOOST_TEST(message_of(load_head(spec, 8)) ==
             "mismatch: " + spec.weights.string() +
                 ": tensor 'logits_projection.weight' has shape [4, 3], wanted [8, 3]");
}

BOOST_AUTO_TEST_CASE(faulty_descriptions_are_refused_by_name) {
  const std::pair<const char*, const char*> rows[] = {
      {"{", "malformed: JSON: is not a JSON object"},
      {"[1]", "malformed: JSON: is not a JSON object"},
      {R"({"kind": "citer"})", "mismatch: JSON: describes a head of kind \"citer\", but the method "
                               "asks for \"r2r\""},
      {R"({"normalize_input": true})",
       "mismatch: JSON: option normalize_input is true; heads trained with it are not supported"},
      {R"({"init_args": {"normalize_input": true}})",
       "mismatch: JSON: option normalize_input is true; heads trained with it are not supported"},
      {R"({"layer_norm_eps": 0})", "malformed: JSON: layer_norm_eps must be a positive number"},
      {R"({"threshold": 1.5})", "malformed: JSON: threshold must be a number from 0 to 1"},
      {R"({"threshold": "0.5"})", "malformed: JSON: threshold must be a number from 0 to 1"},
  };
  for (const auto& [text, expected] : rows) {
    const head_spec spec = write("r2r", small_r2r(), text);
    std::string want = expected;
    want.replace(want.find("JSON"), 4, (path / "head.json").string());
    BOOST_TEST(message_of(load_head(spec, 4)) == want);
  }
  const head_spec spec = write("r2r", small_r2r(), R"({"config": {"normalize_input": false}})");
  BOOST_TEST(load_head(spec, 4).has_value());
  BOOST_TEST((head_threshold(spec).error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(missing_files_and_unknown_kinds_are_refused) {
  const head_spec spec = write("r2r", small_r2r(), "{}");
  fs::remove(path / "head.json");
  BOOST_TEST((load_head(spec, 4).error().code == errc::not_found));
  write("r2r", small_r2r(), "{}");
  fs::remove(spec.weights);
  BOOST_TEST((load_head(spec, 4).error().code == errc::not_found));
  BOOST_TEST(message_of(load_head({"glimpse", spec.weights}, 4)) ==
             "invalid argument: head kind 'glimpse' is unknown; known are r2r, r2r_multi, citer, "
             "citer_unfolded, collm, collm_row, rstitch");
}

BOOST_AUTO_TEST_SUITE_END()
