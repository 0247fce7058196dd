#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// A tensor inside a mapped file; valid while its `weight_files` lives.
struct tensor_view {
  std::string dtype; ///< as in the file: BF16, F16, F32, …
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes; ///< exactly the product of shape times the width of dtype
  std::int64_t elements() const;
};

/// Read-only memory maps of one safetensors file, or of all shards that
/// `model.safetensors.index.json` names. Headers are validated whole (JSON, dtypes, offsets in
/// order and inside the file, no overlap) before anything is returned.
class weight_files {
 public:
  /// `path`: a .safetensors file, or a folder with model.safetensors or the index file.
  /// Errors: not_found, malformed (truncated file, bad header), each naming the file.
  static result<weight_files> open(const std::filesystem::path& path);

  weight_files(weight_files&&) noexcept;
  weight_files& operator=(weight_files&&) noexcept;
  ~weight_files();

  /// What was opened.
  const std::filesystem::path& path() const;

  /// Null if there is no tensor of that name.
  const tensor_view* find(std::string_view name) const;

  /// As `find`, but a missing tensor or another shape is an error that names file, tensor, the
  /// shape found and the shape wanted.
  result<const tensor_view*> require(std::string_view name,
                                     std::span<const std::int64_t> shape) const;

  std::vector<std::string> names() const;

 private:
  struct maps;
  explicit weight_files(std::unique_ptr<maps> m);
  std::unique_ptr<maps> maps_;
};

/// Elements of a BF16, F16 or F32 tensor (checked) as float32.
std::vector<float> to_float(const tensor_view& tensor);

/// The same into memory of the caller; out.size() == tensor.elements() (checked).
void to_float(const tensor_view& tensor, std::span<float> out);

} // namespace tokenrouter
