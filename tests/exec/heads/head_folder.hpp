#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/exec/heads/head.hpp"
#include "tests/support/scratch_folder.hpp"

namespace tokenrouter {

struct tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using tensors = std::map<std::string, tensor>;

inline tensor filled(std::vector<std::int64_t> shape, float value = 0.01f) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape)
    count *= static_cast<std::size_t>(extent);
  return {std::move(shape), std::vector<float>(count, value)};
}

/// A folder that is gone after the test.
struct head_folder {
  test::scratch_folder folder;
  const std::filesystem::path& path = folder.path();

  head_spec write(const std::string& kind, const tensors& all,
                  const std::string& description) const {
    nlohmann::json header;
    std::string body;
    for (const auto& [name, t] : all) {
      const std::size_t bytes = t.values.size() * sizeof(float);
      header[name] = {{"dtype", "F32"},
                      {"shape", t.shape},
                      {"data_offsets", {body.size(), body.size() + bytes}}};
      body.append(reinterpret_cast<const char*>(t.values.data()), bytes);
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::ofstream(path / "head.safetensors", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), sizeof length) << text << body;
    std::ofstream(path / "head.json") << description;
    return {kind, path / "head.safetensors"};
  }
};

inline std::vector<float> random_values(std::size_t count, unsigned seed, float low = -1,
                                        float high = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> out(count);
  for (float& x : out)
    x = uniform(engine);
  return out;
}

inline tensor random_tensor(std::vector<std::int64_t> shape, unsigned seed, float low = -1,
                            float high = 1) {
  tensor out = filled(std::move(shape));
  out.values = random_values(out.values.size(), seed, low, high);
  return out;
}

/// An r2r head, or with a window above 1 an r2r_multi head that takes `logits` of all positions.
inline tensors random_r2r(std::int64_t window, std::int64_t hidden, std::int64_t logits) {
  const std::int64_t wide = window * hidden;
  return {{"logits_projection.weight", random_tensor({wide, logits}, 1)},
          {"logits_projection.bias", random_tensor({wide}, 2)},
          {"combined_projection.weight", random_tensor({16, 2 * wide + hidden}, 3)},
          {"combined_projection.bias", random_tensor({16}, 4)},
          {"backbone.input_projection.weight", random_tensor({12, 16}, 5)},
          {"backbone.input_projection.bias", random_tensor({12}, 6)},
          {"backbone.blocks.0.layer_norm.weight", random_tensor({12}, 7)},
          {"backbone.blocks.0.layer_norm.bias", random_tensor({12}, 8)},
          {"backbone.blocks.0.mlp.0.weight", random_tensor({20, 12}, 9)},
          {"backbone.blocks.0.mlp.0.bias", random_tensor({20}, 10)},
          {"backbone.blocks.0.mlp.3.weight", random_tensor({12, 20}, 11)},
          {"backbone.blocks.0.mlp.3.bias", random_tensor({12}, 12)},
          {"backbone.output_layer.0.weight", random_tensor({12}, 13)},
          {"backbone.output_layer.0.bias", random_tensor({12}, 14)},
          {"backbone.output_layer.1.weight", random_tensor({1, 12}, 15)},
          {"backbone.output_layer.1.bias", random_tensor({1}, 16)}};
}

} // namespace tokenrouter
