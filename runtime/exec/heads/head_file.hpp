#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/exec/safetensors.hpp"

namespace tokenrouter {

/// y = weight · x + bias.
struct dense_layer {
  std::uint32_t in = 0;
  std::uint32_t out = 0;
  std::vector<float> weight; ///< [in][out], the transpose of the file's
  std::vector<float> bias;   ///< [out]

  void apply(const float* x, float* y) const;
  std::uint64_t bytes() const { return (weight.size() + bias.size()) * sizeof(float); }
};

/// Scale and shift of a layer norm, both [count].
struct norm_layer {
  std::vector<float> scale;
  std::vector<float> shift;

  void apply(const float* x, float eps, float* y) const;
  std::uint64_t bytes() const { return (scale.size() + shift.size()) * sizeof(float); }
};

/// What the JSON beside a head's weights says; keys that are missing have their defaults.
struct head_description {
  float norm_eps = 1e-5f;          ///< `layer_norm_eps`
  std::optional<double> threshold; ///< in [0, 1]
};

/// Reads that JSON. Errors: not_found, malformed, mismatch (another kind of head than `spec.kind`,
/// unless that is empty; an option this program has no code for, by name).
result<head_description> read_head_description(const head_spec& spec);

/// The tensors of a head. Every reader's errors are of kind mismatch and name file, tensor, the
/// shape found and the shape wanted.
class head_file {
 public:
  static result<head_file> open(const head_spec& spec);

  /// The same once the JSON beside the weights is read: its errors come first, its values are
  /// dropped.
  static result<head_file> open_described(const head_spec& spec);

  bool has(std::string_view name) const { return files_.find(name) != nullptr; }

  /// Length of dimension `index` of a tensor that has `dimensions` of them, none empty.
  result<std::uint32_t> extent(const std::string& name, std::size_t index,
                               std::size_t dimensions) const;

  result<std::vector<float>> vector(const std::string& name, std::uint32_t count) const;

  /// `name`.weight [out, in] and `name`.bias [out]; a missing bias is 0 if `bias_optional`.
  result<dense_layer> dense(const std::string& name, std::uint32_t in, std::uint32_t out,
                            bool bias_optional = false) const;

  /// Row `row` of the matrix `name` as a layer with one output and no bias.
  result<dense_layer> single_row(const std::string& name, std::uint32_t row,
                                 std::uint32_t in) const;

  /// `name`.weight and `name`.bias, both [count].
  result<norm_layer> norm(const std::string& name, std::uint32_t count) const;

 private:
  head_file(weight_files files, std::filesystem::path path);

  result<void> check_dtype(const std::string& name, const tensor_view& tensor) const;
  result<std::vector<float>> floats(const std::string& name,
                                    const std::vector<std::int64_t>& shape) const;

  weight_files files_;
  std::filesystem::path path_;
};

} // namespace tokenrouter
