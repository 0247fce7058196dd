#include "tests/exec/cpu/test_models.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "runtime/core/check.hpp"

namespace tokenrouter::test {

namespace {

file_tensor random_tensor(std::vector<std::int64_t> shape, float mean, float deviation,
                          std::mt19937_64& random) {
  file_tensor tensor{"BF16", std::move(shape), {}};
  std::size_t count = 1;
  for (const auto dim : tensor.shape)
    count *= static_cast<std::size_t>(dim);
  tensor.bytes.resize(count * 2);
  for (std::size_t i = 0; i < count; ++i) {
    // Uniform rather than normal: cheap for models of a hundred million weights.
    const float unit = static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f;
    const auto bits = std::bit_cast<std::uint32_t>(mean + deviation * unit);
    tensor.bytes[2 * i] = static_cast<std::uint8_t>(bits >> 16);
    tensor.bytes[2 * i + 1] = static_cast<std::uint8_t>(bits >> 24);
  }
  return tensor;
}

} // namespace

tensor_map random_tensors(const model_shape& s, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  tensor_map tensors;
  const auto norm = [&](const std::string& name, std::int64_t size) {
    tensors[name + ".weight"] = random_tensor({size}, 1.0f, 0.5f, random);
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    const float deviation = 1.7f / std::sqrt(static_cast<float>(in));
    tensors[name + ".weight"] = random_tensor({out, in}, 0.0f, deviation, random);
    if (bias)
      tensors[name + ".bias"] = random_tensor({out}, 0.0f, 0.5f, random);
  };
  const std::int64_t q = std::int64_t{s.heads} * s.head_dim;
  const std::int64_t kv = std::int64_t{s.kv_heads} * s.head_dim;
  linear("model.embed_tokens", s.vocab, s.hidden, false);
  if (!s.tied)
    linear("lm_head", s.vocab, s.hidden, false);
  norm("model.norm", s.hidden);
  for (std::uint32_t i = 0; i < s.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    norm(at + "input_layernorm", s.hidden);
    norm(at + "post_attention_layernorm", s.hidden);
    linear(at + "self_attn.q_proj", q, s.hidden, s.attention_bias);
    linear(at + "self_attn.k_proj", kv, s.hidden, s.attention_bias);
    linear(at + "self_attn.v_proj", kv, s.hidden, s.attention_bias);
    linear(at + "self_attn.o_proj", s.hidden, q, s.attention_bias);
    if (s.architecture == "Qwen3ForCausalLM") {
      norm(at + "self_attn.q_norm", s.head_dim);
      norm(at + "self_attn.k_norm", s.head_dim);
    }
    linear(at + "mlp.gate_proj", s.mlp, s.hidden, s.mlp_bias);
    linear(at + "mlp.up_proj", s.mlp, s.hidden, s.mlp_bias);
    linear(at + "mlp.down_proj", s.hidden, s.mlp, s.mlp_bias);
  }
  return tensors;
}

void write_safetensors(const std::filesystem::path& file, const tensor_map& tensors) {
  nlohmann::json header;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::ofstream out(file, std::ios::binary);
  const std::uint64_t header_bytes = text.size();
  for (int i = 0; i < 8; ++i)
    out.put(static_cast<char>(header_bytes >> (8 * i)));
  out << text;
  for (const auto& [name, tensor] : tensors)
    out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
              static_cast<std::streamsize>(tensor.bytes.size()));
  check(out.good(), "write_safetensors: write");
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  check(out.good(), "write_text: write");
}

std::string config_text(const model_shape& s) {
  const nlohmann::json config = {{"architectures", {s.architecture}},
                                 {"hidden_size", s.hidden},
                                 {"intermediate_size", s.mlp},
                                 {"num_hidden_layers", s.layers},
                                 {"num_attention_heads", s.heads},
                                 {"num_key_value_heads", s.kv_heads},
                                 {"head_dim", s.head_dim},
                                 {"vocab_size", s.vocab},
                                 {"max_position_embeddings", s.context},
                                 {"rms_norm_eps", 1e-6},
                                 {"rope_theta", 10000.0},
                                 {"hidden_act", "silu"},
                                 {"attention_bias", s.attention_bias},
                                 {"mlp_bias", s.mlp_bias},
                                 {"tie_word_embeddings", s.tied},
                                 {"eos_token_id", 1}};
  return config.dump(2);
}

void write_random_model(const std::filesystem::path& folder, const model_shape& shape,
                        std::uint64_t seed) {
  std::filesystem::create_directories(folder);
  write_text(folder / "config.json", config_text(shape));
  write_safetensors(folder / "model.safetensors", random_tensors(shape, seed));
}

} // namespace tokenrouter::test
