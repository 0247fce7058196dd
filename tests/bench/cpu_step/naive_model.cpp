#include "tests/bench/cpu_step/naive_model.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "runtime/core/check.hpp"
#include "runtime/exec/safetensors.hpp"

namespace tokenrouter::bench {

struct naive_model::state {
  model_config config;
  at::ScalarType type;
  std::int64_t rows;
  std::int64_t kv_tokens;
  at::Tensor embedding, lm_head, final_norm, tokens, cosine, sine;
  struct layer {
    at::Tensor input_norm, q, k, v, o, q_norm, k_norm, post_norm, gate, up, down, keys, values;
  };
  std::vector<layer> layers;

  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    const auto wide = x.to(at::kFloat);
    const auto factor = at::rsqrt(wide.pow(2).mean(-1, true) + config.rms_norm_eps);
    return weight * (wide * factor).to(type);
  }

  at::Tensor rotate(const at::Tensor& x) const {
    const auto half = x.size(-1) / 2;
    const auto turned = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
    return x * cosine + turned * sine;
  }

  at::Tensor attention(layer& l, const at::Tensor& x) const {
    const std::int64_t dim = config.head_dim;
    const std::int64_t group = config.heads / config.kv_heads;
    auto q = at::linear(x, l.q).view({rows, config.heads, 1, dim});
    auto k = at::linear(x, l.k).view({rows, config.kv_heads, 1, dim});
    const auto v = at::linear(x, l.v).view({rows, config.kv_heads, 1, dim});
    if (config.qk_norm) {
      q = norm(q, l.q_norm);
      k = norm(k, l.k_norm);
    }
    l.keys.narrow(2, kv_tokens - 1, 1).copy_(rotate(k));
    l.values.narrow(2, kv_tokens - 1, 1).copy_(v);
    const auto grouped = rotate(q).view({rows, config.kv_heads, group, dim});
    const auto scores =
        at::matmul(grouped, l.keys.transpose(2, 3)) * (1 / std::sqrt(static_cast<double>(dim)));
    const auto mixed = at::matmul(at::softmax(scores, -1, at::kFloat).to(type), l.values);
    return at::linear(mixed.reshape({rows, config.heads * dim}), l.o);
  }

  at::Tensor forward() {
    auto x = at::embedding(embedding, tokens);
    for (auto& l : layers) {
      x = x + attention(l, norm(x, l.input_norm));
      const auto h = norm(x, l.post_norm);
      x = x + at::linear(at::silu(at::linear(h, l.gate)) * at::linear(h, l.up), l.down);
    }
    return at::linear(norm(x, final_norm), lm_head).argmax(-1);
  }
};

naive_model::naive_model(const std::filesystem::path& folder, bool bf16, std::uint32_t batch_rows,
                         std::uint32_t kv_tokens)
    : state_(std::make_unique<state>()) {
  const c10::InferenceMode inference;
  auto config = load_model_config(folder);
  auto files = weight_files::open(folder);
  check(config && files, "naive_model: the model loads");
  state& s = *state_;
  s.config = *config;
  s.type = bf16 ? at::kBFloat16 : at::kFloat;
  s.rows = batch_rows;
  s.kv_tokens = kv_tokens;
  const auto tensor = [&](const std::string& name) {
    const auto* view = files->find(name + ".weight");
    check(view && view->dtype == "BF16", "naive_model: a BF16 tensor");
    return at::from_blob(const_cast<std::byte*>(view->bytes.data()), view->shape,
                         at::TensorOptions(at::kBFloat16))
        .to(s.type)
        .clone();
  };
  s.embedding = tensor("model.embed_tokens");
  s.lm_head = config->tied_embeddings ? s.embedding : tensor("lm_head");
  s.final_norm = tensor("model.norm");
  const at::TensorOptions options(s.type);
  s.tokens = at::randint(static_cast<std::int64_t>(config->vocab_tokens), {s.rows},
                         at::TensorOptions(at::kLong));
  s.cosine = at::rand({static_cast<std::int64_t>(config->head_dim)}, options);
  s.sine = at::rand({static_cast<std::int64_t>(config->head_dim)}, options);
  for (std::uint32_t i = 0; i < config->layers; ++i) {
    const std::string at_layer = "model.layers." + std::to_string(i) + ".";
    state::layer l;
    l.input_norm = tensor(at_layer + "input_layernorm");
    l.post_norm = tensor(at_layer + "post_attention_layernorm");
    l.q = tensor(at_layer + "self_attn.q_proj");
    l.k = tensor(at_layer + "self_attn.k_proj");
    l.v = tensor(at_layer + "self_attn.v_proj");
    l.o = tensor(at_layer + "self_attn.o_proj");
    if (config->qk_norm) {
      l.q_norm = tensor(at_layer + "self_attn.q_norm");
      l.k_norm = tensor(at_layer + "self_attn.k_norm");
    }
    l.gate = tensor(at_layer + "mlp.gate_proj");
    l.up = tensor(at_layer + "mlp.up_proj");
    l.down = tensor(at_layer + "mlp.down_proj");
    l.keys = at::rand({s.rows, config->kv_heads, s.kv_tokens, config->head_dim}, options);
    l.values = at::rand({s.rows, config->kv_heads, s.kv_tokens, config->head_dim}, options);
    s.layers.push_back(std::move(l));
  }
}

naive_model::~naive_model() = default;

std::int64_t naive_model::step() {
  const c10::InferenceMode inference;
  return state_->forward()[0].item<std::int64_t>();
}

} // namespace tokenrouter::bench
