#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.hpp"

namespace tokenrouter::test {

struct model_shape {
  std::string architecture = "Qwen3ForCausalLM";
  std::uint32_t hidden = 40;
  std::uint32_t mlp = 72;
  std::uint32_t layers = 2;
  std::uint32_t heads = 6;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 24;
  std::uint32_t vocab = 83;
  std::uint32_t context = 1024;
  bool tied = true;
  bool attention_bias = false;
  bool mlp_bias = false;
};

/// One tensor to write: raw bytes in the file's dtype.
struct file_tensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;
};

using tensor_map = std::map<std::string, file_tensor>;

/// Random weights of that shape, in BF16, the same for the same seed.
tensor_map random_tensors(const model_shape& shape, std::uint64_t seed);

/// Writes a .safetensors file.
void write_safetensors(const std::filesystem::path& file, const tensor_map& tensors);

void write_text(const std::filesystem::path& file, const std::string& text);

/// config.json of that shape.
std::string config_text(const model_shape& shape);

/// A whole model folder: config.json and model.safetensors.
void write_random_model(const std::filesystem::path& folder, const model_shape& shape,
                        std::uint64_t seed);

} // namespace tokenrouter::test
