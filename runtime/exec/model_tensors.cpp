#include "runtime/exec/model_tensors.hpp"

#include <optional>
#include <string>

namespace tokenrouter {
namespace {

using shape = std::vector<std::int64_t>;

/// Looks tensors up and keeps the first error, so that a list of look-ups reads as one.
class tensor_finder {
 public:
  explicit tensor_finder(const weight_files& files) : files_(files) {}

  const tensor_view* need(const std::string& name, const shape& wanted) {
    if (fault_)
      return nullptr;
    const auto found = files_.require(name, wanted);
    if (!found) {
      fault_ = found.error();
      return nullptr;
    }
    const std::string& dtype = (*found)->dtype;
    if (dtype != "BF16" && dtype != "F16" && dtype != "F32") {
      fault_ = error{errc::mismatch, files_.path().string() + ": tensor '" + name + "' has dtype " +
                                         dtype +
                                         "; BF16, F16 and F32 are supported, so convert the model"};
      return nullptr;
    }
    return *found;
  }
  const tensor_view* need_if(bool wanted, const std::string& name, const shape& s) {
    return wanted ? need(name, s) : nullptr;
  }
  const std::optional<error>& fault() const { return fault_; }

 private:
  const weight_files& files_;
  std::optional<error> fault_;
};

} // namespace

result<model_tensors> find_model_tensors(const weight_files& files, const model_config& c) {
  tensor_finder finder(files);
  const std::int64_t hidden = c.hidden_size;
  const std::int64_t mlp = c.intermediate_size;
  const std::int64_t q_columns = std::int64_t{c.heads} * c.head_dim;
  const std::int64_t kv_columns = std::int64_t{c.kv_heads} * c.head_dim;
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    return linear_tensors{finder.need(name + ".weight", {out, in}),
                          finder.need_if(bias, name + ".bias", {out})};
  };
  model_tensors model;
  model.embedding = finder.need("model.embed_tokens.weight", {c.vocab_tokens, hidden});
  model.lm_head = finder.need_if(!c.tied_embeddings, "lm_head.weight", {c.vocab_tokens, hidden});
  model.final_norm = finder.need("model.norm.weight", {hidden});
  for (std::uint32_t i = 0; i < c.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    layer_tensors layer;
    layer.input_norm = finder.need(at + "input_layernorm.weight", {hidden});
    layer.q = linear(at + "self_attn.q_proj", q_columns, hidden, c.attention_bias);
    layer.k = linear(at + "self_attn.k_proj", kv_columns, hidden, c.attention_bias);
    layer.v = linear(at + "self_attn.v_proj", kv_columns, hidden, c.attention_bias);
    layer.o = linear(at + "self_attn.o_proj", hidden, q_columns, c.attention_bias);
    layer.q_norm = finder.need_if(c.qk_norm, at + "self_attn.q_norm.weight", {c.head_dim});
    layer.k_norm = finder.need_if(c.qk_norm, at + "self_attn.k_norm.weight", {c.head_dim});
    layer.post_norm = finder.need(at + "post_attention_layernorm.weight", {hidden});
    layer.gate = linear(at + "mlp.gate_proj", mlp, hidden, c.mlp_bias);
    layer.up = linear(at + "mlp.up_proj", mlp, hidden, c.mlp_bias);
    layer.down = linear(at + "mlp.down_proj", hidden, mlp, c.mlp_bias);
    model.layers.push_back(layer);
  }
  if (finder.fault())
    return tl::unexpected(*finder.fault());
  return model;
}

} // namespace tokenrouter
