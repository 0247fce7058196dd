#include <cmath>
#include <numbers>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "runtime/exec/model_config.hpp"
#include "tests/exec/cpu/test_models.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

using json = nlohmann::json;

json plain() {
  return json::parse(R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,
    "intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":8,
    "num_key_value_heads":2,"vocab_size":100,"max_position_embeddings":4096,
    "rms_norm_eps":1e-5,"hidden_act":"silu","rope_theta":500000.0,"eos_token_id":7})");
}

result<model_config> load_text(const json& config, const std::string& generation = "") {
  const scratch_folder folder;
  write_text(folder.path() / "config.json", config.dump());
  if (!generation.empty())
    write_text(folder.path() / "generation_config.json", generation);
  return load_model_config(folder.path());
}

json with(const char* key, const json& value) {
  json config = plain();
  config[key] = value;
  return config;
}

double base_frequency(int i, double theta = 500000.0) {
  return std::pow(theta, -i / 4.0);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_abacus_models_are_read_as_they_are) {
  const auto config = load_model_config("examples/models/abacus/abacus-m");
  BOOST_TEST_REQUIRE(config.has_value());
  BOOST_TEST(config->architecture == "Qwen3ForCausalLM");
  BOOST_TEST(config->hidden_size == 256u);
  BOOST_TEST(config->intermediate_size == 768u);
  BOOST_TEST(config->layers == 8u);
  BOOST_TEST(config->heads == 8u);
  BOOST_TEST(config->kv_heads == 4u);
  BOOST_TEST(config->head_dim == 32u);
  BOOST_TEST(config->vocab_tokens == 1024u);
  BOOST_TEST(config->context_tokens_max == 2048u);
  BOOST_TEST(config->qk_norm);
  BOOST_TEST(config->tied_embeddings);
  BOOST_TEST((config->eos_tokens == std::vector<token_id>{1021, 1019}));
  BOOST_TEST_REQUIRE(config->rope_inverse_frequencies.size() == 16u);
  for (int i = 0; i < 16; ++i)
    BOOST_TEST(std::abs(config->rope_inverse_frequencies[i] - std::pow(10000.0, -i / 16.0)) <
               1e-15);
}

BOOST_AUTO_TEST_CASE(a_shard_has_its_share_of_heads_and_width) {
  const auto whole = load_model_config("examples/models/abacus/abacus-m");
  BOOST_TEST_REQUIRE(whole.has_value());
  const auto half = shard_of(*whole, 2);
  BOOST_TEST_REQUIRE(half.has_value());
  BOOST_TEST(half->heads == 4u);
  BOOST_TEST(half->kv_heads == 2u);
  BOOST_TEST(half->intermediate_size == 384u);
  BOOST_TEST(half->hidden_size == 256u);
  BOOST_TEST(half->vocab_tokens == 1024u);
  const auto refused = shard_of(*whole, 8);
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST(refused.error().message ==
             "num_key_value_heads 4 does not divide by 8 shards; choose another tp_size");
}

BOOST_AUTO_TEST_CASE(what_a_config_leaves_out_has_its_usual_value) {
  const auto config = load_text(plain());
  BOOST_TEST_REQUIRE(config.has_value());
  BOOST_TEST(config->head_dim == 8u);
  BOOST_TEST(!config->qk_norm);
  BOOST_TEST(!config->tied_embeddings);
  BOOST_TEST(!config->attention_bias);
  json no_kv = plain();
  no_kv.erase("num_key_value_heads");
  BOOST_TEST(load_text(no_kv)->kv_heads == 8u);
}

BOOST_AUTO_TEST_CASE(stop_tokens_come_from_the_generation_config_if_it_has_some) {
  BOOST_TEST((load_text(plain())->eos_tokens == std::vector<token_id>{7}));
  BOOST_TEST(
      (load_text(plain(), R"({"eos_token_id":[3,4]})")->eos_tokens == std::vector<token_id>{3, 4}));
  BOOST_TEST((load_text(plain(), R"({"eos_token_id":5})")->eos_tokens == std::vector<token_id>{5}));
  BOOST_TEST((load_text(plain(), R"({"temperature":1})")->eos_tokens == std::vector<token_id>{7}));
  BOOST_TEST(load_text(with("eos_token_id", nullptr))->eos_tokens.empty());
  BOOST_TEST((load_text(plain(), "{").error().code == errc::malformed));
  BOOST_TEST((load_text(plain(), R"({"eos_token_id":"x"})").error().code == errc::malformed));
}

BOOST_AUTO_TEST_CASE(rope_parameters_are_read_in_both_spellings) {
  const auto old_style = load_text(with("rope_scaling", {{"type", "linear"}, {"factor", 4.0}}))
                             ->rope_inverse_frequencies;
  json newer = plain();
  newer.erase("rope_theta");
  newer["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500000.0}};
  const auto new_style = load_text(newer)->rope_inverse_frequencies;
  BOOST_TEST_REQUIRE(old_style.size() == 4u);
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(std::abs(old_style[i] / (base_frequency(i) / 4) - 1) < 1e-12);
    BOOST_TEST(old_style[i] == new_style[i]);
  }
  BOOST_TEST(load_text(with("rope_scaling", nullptr))->rope_inverse_frequencies[0] == 1.0);
  newer["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 100.0}};
  BOOST_TEST(std::abs(load_text(newer)->rope_inverse_frequencies[2] - 0.1) < 1e-12);
}

BOOST_AUTO_TEST_CASE(llama3_scaling_leaves_short_waves_and_stretches_long_ones) {
  const auto scaled = load_text(with("rope_scaling", {{"rope_type", "llama3"},
                                                      {"factor", 8.0},
                                                      {"low_freq_factor", 1.0},
                                                      {"high_freq_factor", 4.0},
                                                      {"original_max_position_embeddings", 1024}}))
                          ->rope_inverse_frequencies;
  BOOST_TEST_REQUIRE(scaled.size() == 4u);
  // Wavelengths 6.3, 167, 4443 and 118142 positions, against 256 and 1024.
  BOOST_TEST(std::abs(scaled[0] / base_frequency(0) - 1) < 1e-12);
  BOOST_TEST(std::abs(scaled[1] / base_frequency(1) - 1) < 1e-12);
  BOOST_TEST(std::abs(scaled[2] / (base_frequency(2) / 8) - 1) < 1e-12);
  BOOST_TEST(std::abs(scaled[3] / (base_frequency(3) / 8) - 1) < 1e-12);
  // With 8192 original positions, 4443 lies between 2048 and 8192: a blend.
  const auto blended = load_text(with("rope_scaling", {{"rope_type", "llama3"},
                                                       {"factor", 8.0},
                                                       {"low_freq_factor", 1.0},
                                                       {"high_freq_factor", 4.0},
                                                       {"original_max_position_embeddings", 8192}}))
                           ->rope_inverse_frequencies;
  const double wavelength = 2 * std::numbers::pi / base_frequency(2);
  const double smooth = (8192 / wavelength - 1) / 3;
  const double wanted = (1 - smooth) * base_frequency(2) / 8 + smooth * base_frequency(2);
  BOOST_TEST(std::abs(blended[2] / wanted - 1) < 1e-12);
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_refused_by_name) {
  const struct {
    json config;
    errc code;
    const char* words[2];
  } table[] = {
      {with("architectures", {"MistralForCausalLM"}),
       errc::mismatch,
       {"MistralForCausalLM", "Qwen3ForCausalLM"}},
      {with("hidden_act", "gelu"), errc::mismatch, {"gelu", "silu"}},
      {with("rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}}),
       errc::mismatch,
       {"yarn", "llama3"}},
      {with("use_sliding_window", true), errc::mismatch, {"sliding", "full attention"}},
      {with("num_key_value_heads", 3), errc::mismatch, {"8 attention heads", "3"}},
      {with("head_dim", 7), errc::mismatch, {"head_dim", "7"}},
      {with("num_attention_heads", 7), errc::mismatch, {"hidden_size", "7"}},
      {with("hidden_size", -64), errc::malformed, {"hidden_size", "config.json"}},
      {with("hidden_size", "64"), errc::malformed, {"hidden_size", "whole number"}},
      {with("vocab_size", 0), errc::malformed, {"vocab_size", "positive"}},
      {with("rms_norm_eps", "small"), errc::malformed, {"rms_norm_eps", "number"}},
      {with("tie_word_embeddings", 1), errc::malformed, {"tie_word_embeddings", "true or false"}},
      {with("architectures", json::array()), errc::malformed, {"architectures", "name"}},
      {with("rope_scaling", {{"rope_type", "linear"}}), errc::malformed, {"factor", "rope"}},
      {with("rope_scaling", 5), errc::malformed, {"rope_scaling", "object"}},
      {json::array(), errc::malformed, {"config.json", "object"}},
  };
  for (const auto& row : table) {
    const auto config = load_text(row.config);
    BOOST_TEST_REQUIRE(!config.has_value(), row.words[0]);
    BOOST_TEST((config.error().code == row.code), config.error().message);
    for (const std::string word : row.words)
      BOOST_TEST(config.error().message.find(word) != std::string::npos,
                 "'" << word << "' in: " << config.error().message);
  }
  BOOST_TEST((load_model_config("/nonexistent").error().code == errc::not_found));
}
