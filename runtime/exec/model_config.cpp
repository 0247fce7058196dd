#include "runtime/exec/model_config.hpp"

#include <cmath>
#include <fstream>
#include <numbers>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

namespace tokenrouter {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

result<json> read_json(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return fail(errc::not_found, file.string() + ": cannot open; is this a model folder?");
  std::ostringstream text;
  text << in.rdbuf();
  json parsed = json::parse(text.str(), nullptr, false);
  if (!parsed.is_object())
    return fail(errc::malformed, file.string() + ": not a JSON object");
  return parsed;
}

/// Reads typed values of one JSON object and keeps the first fault.
class reader {
 public:
  reader(const fs::path& file, const json& object) : file_(file), object_(object) {}

  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  std::uint32_t count(const char* key, std::optional<std::uint32_t> standard = std::nullopt) {
    if (!has(key) && standard)
      return *standard;
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    if (!has(key) || !object_[key].is_number_unsigned() || object_[key].get<std::uint64_t>() == 0 ||
        object_[key].get<std::uint64_t>() > most) {
      fault(errc::malformed, std::string("'") + key + "' must be a positive whole number");
      return 1;
    }
    return object_[key].get<std::uint32_t>();
  }

  double number(const char* key, std::optional<double> standard = std::nullopt) {
    if (!has(key) && standard)
      return *standard;
    if (!has(key) || !object_[key].is_number() || !(object_[key].get<double>() > 0)) {
      fault(errc::malformed, std::string("'") + key + "' must be a positive number");
      return 1;
    }
    return object_[key].get<double>();
  }

  bool flag(const char* key, bool standard) {
    if (!has(key))
      return standard;
    if (!object_[key].is_boolean()) {
      fault(errc::malformed, std::string("'") + key + "' must be true or false");
      return standard;
    }
    return object_[key].get<bool>();
  }

  std::string text(const char* key, const char* standard) {
    if (!has(key))
      return standard;
    if (!object_[key].is_string()) {
      fault(errc::malformed, std::string("'") + key + "' must be a string");
      return standard;
    }
    return object_[key].get<std::string>();
  }

  /// A token id, a list of them, or nothing.
  std::vector<token_id> ids(const char* key) {
    std::vector<token_id> found;
    if (!has(key))
      return found;
    const auto take = [&](const json& value) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= (std::uint64_t{1} << 31))
        fault(errc::malformed, std::string("'") + key + "' must be token ids");
      else
        found.push_back(value.get<token_id>());
    };
    if (object_[key].is_array())
      for (const auto& value : object_[key])
        take(value);
    else
      take(object_[key]);
    return found;
  }

  void fault(errc code, const std::string& what) {
    if (!fault_)
      fault_ = error{code, file_.string() + ": " + what};
  }

  const std::optional<error>& first_fault() const { return fault_; }

 private:
  fs::path file_;
  const json& object_;
  std::optional<error> fault_;
};

/// Wavelength-dependent scaling of the Llama 3.1 release (`rope_type: llama3`).
double llama3_scaled(double frequency, double factor, double low_factor, double high_factor,
                     double original_positions) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > original_positions / low_factor)
    return frequency / factor;
  if (wavelength < original_positions / high_factor)
    return frequency;
  const double smooth = (original_positions / wavelength - low_factor) / (high_factor - low_factor);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

/// Older configs have `rope_theta` beside an optional `rope_scaling`; newer ones have both inside
/// `rope_parameters`, which wins.
std::vector<double> rope_frequencies(const fs::path& file, const json& config, reader& top,
                                     std::uint32_t head_dim) {
  double theta = top.number("rope_theta", 10000.0);
  json scaling = json::object();
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (top.has(key)) {
      scaling = config[key];
      if (!scaling.is_object()) {
        top.fault(errc::malformed, std::string("'") + key + "' must be an object");
        return {};
      }
    }
  reader rope(file, scaling);
  theta = rope.number("rope_theta", theta);
  const std::string type = rope.text("rope_type", rope.text("type", "default").c_str());
  const double pairs = head_dim / 2.0;
  std::vector<double> frequencies;
  for (std::uint32_t i = 0; i < head_dim / 2; ++i)
    frequencies.push_back(std::pow(theta, -static_cast<double>(i) / pairs));
  if (type == "linear") {
    const double factor = rope.number("factor");
    for (auto& frequency : frequencies)
      frequency /= factor;
  } else if (type == "llama3") {
    const double factor = rope.number("factor");
    const double low = rope.number("low_freq_factor");
    const double high = rope.number("high_freq_factor");
    const double original = rope.number("original_max_position_embeddings");
    if (!(high > low))
      rope.fault(errc::malformed, "'high_freq_factor' must be above 'low_freq_factor'");
    for (auto& frequency : frequencies)
      frequency = llama3_scaled(frequency, factor, low, high, original);
  } else if (type != "default") {
    rope.fault(errc::mismatch,
               "rope type '" + type + "' is not supported; default, linear and llama3 are");
  }
  if (rope.first_fault())
    top.fault(rope.first_fault()->code, "rope parameters: " + rope.first_fault()->message);
  return frequencies;
}

std::string architecture_of(const json& config, reader& top) {
  const auto it = config.find("architectures");
  if (it == config.end() || !it->is_array() || it->empty() || !it->front().is_string()) {
    top.fault(errc::malformed, "'architectures' must name one architecture");
    return "";
  }
  const auto name = it->front().get<std::string>();
  if (name != "Qwen3ForCausalLM" && name != "LlamaForCausalLM")
    top.fault(errc::mismatch, "architecture '" + name +
                                  "' is not supported; Qwen3ForCausalLM and LlamaForCausalLM are");
  return name;
}

void refuse_what_is_not_built(const model_config& config, reader& top) {
  if (const auto act = top.text("hidden_act", "silu"); act != "silu")
    top.fault(errc::mismatch, "activation '" + act + "' is not supported; silu is");
  if (top.flag("use_sliding_window", false))
    top.fault(errc::mismatch, "sliding-window attention is not supported; full attention is");
  if (config.heads % config.kv_heads != 0)
    top.fault(errc::mismatch, std::to_string(config.heads) + " attention heads do not divide by " +
                                  std::to_string(config.kv_heads) + " key-value heads");
  if (config.head_dim % 2 != 0)
    top.fault(errc::mismatch,
              "head_dim " + std::to_string(config.head_dim) + " is odd, so it can't be rotated");
}

} // namespace

result<model_config> load_model_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const auto parsed = read_json(file);
  if (!parsed)
    return tl::unexpected(parsed.error());
  reader top(file, *parsed);

  model_config config;
  config.architecture = architecture_of(*parsed, top);
  config.hidden_size = top.count("hidden_size");
  config.intermediate_size = top.count("intermediate_size");
  config.layers = top.count("num_hidden_layers");
  config.heads = top.count("num_attention_heads");
  config.kv_heads = top.count("num_key_value_heads", config.heads);
  if (!top.has("head_dim") && config.hidden_size % config.heads != 0)
    top.fault(errc::mismatch, "hidden_size " + std::to_string(config.hidden_size) +
                                  " does not divide by " + std::to_string(config.heads) +
                                  " heads, and there is no head_dim");
  config.head_dim = top.count("head_dim", std::max(1u, config.hidden_size / config.heads));
  config.vocab_tokens = top.count("vocab_size");
  config.context_tokens_max = top.count("max_position_embeddings");
  config.rms_norm_eps = static_cast<float>(top.number("rms_norm_eps", 1e-6));
  config.qk_norm = config.architecture == "Qwen3ForCausalLM";
  config.attention_bias = top.flag("attention_bias", false);
  config.mlp_bias = top.flag("mlp_bias", false);
  config.tied_embeddings = top.flag("tie_word_embeddings", false);
  config.rope_inverse_frequencies = rope_frequencies(file, *parsed, top, config.head_dim);
  config.eos_tokens = top.ids("eos_token_id");
  refuse_what_is_not_built(config, top);
  if (top.first_fault())
    return tl::unexpected(*top.first_fault());

  const fs::path generation_file = folder / "generation_config.json";
  if (std::error_code ignored; fs::exists(generation_file, ignored)) {
    const auto generation = read_json(generation_file);
    if (!generation)
      return tl::unexpected(generation.error());
    reader keys(generation_file, *generation);
    if (keys.has("eos_token_id"))
      config.eos_tokens = keys.ids("eos_token_id");
    if (keys.first_fault())
      return tl::unexpected(*keys.first_fault());
  }
  return config;
}

result<model_config> shard_of(const model_config& whole, std::uint32_t count) {
  model_config shard = whole;
  const auto divide = [&](const char* name, std::uint32_t& value) -> result<void> {
    if (value % count != 0)
      return fail(errc::mismatch, std::string(name) + " " + std::to_string(value) +
                                      " does not divide by " + std::to_string(count) +
                                      " shards; choose another tp_size");
    value /= count;
    return {};
  };
  if (auto ok = divide("num_attention_heads", shard.heads); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = divide("num_key_value_heads", shard.kv_heads); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = divide("intermediate_size", shard.intermediate_size); !ok)
    return tl::unexpected(ok.error());
  return shard;
}

} // namespace tokenrouter
