#include "runtime/exec/heads/head_file.hpp"

#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/exec/heads/kernels.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::json;

constexpr std::uint32_t extent_max = 1u << 24;

/// Where converters of published checkpoints put constructor options.
constexpr const char* option_places[] = {"config", "init_args", "model_specific_args"};

std::optional<std::string> refused_option(const json& options) {
  if (!options.is_object())
    return std::nullopt;
  for (const char* name : {"normalize_input", "use_position_embedding"}) {
    const auto it = options.find(name);
    if (it != options.end() && it->is_boolean() && it->get<bool>())
      return name;
  }
  return std::nullopt;
}

} // namespace

void dense_layer::apply(const float* x, float* y) const {
  if (out == 1)
    *y = head_kernels::dot(weight.data(), x, in) + bias[0];
  else
    head_kernels::dense(weight.data(), bias.data(), x, y, in, out);
}

void norm_layer::apply(const float* x, float eps, float* y) const {
  head_kernels::layer_norm(x, scale.data(), shift.data(), eps, y, scale.size());
}

result<head_description> read_head_description(const head_spec& spec) {
  std::filesystem::path path = spec.weights;
  path.replace_extension(".json");
  std::ifstream stream(path);
  if (!stream)
    return fail(errc::not_found, path.string() + ": cannot be read; a head's weights need a JSON "
                                                 "description of the same name beside them");
  const json root = json::parse(stream, nullptr, false);
  if (!root.is_object())
    return fail(errc::malformed, path.string() + ": is not a JSON object");

  const auto kind = root.find("kind");
  const std::string wanted = spec.kind == "citer_unfolded" ? "citer" : spec.kind;
  if (kind != root.end() && !wanted.empty() && *kind != wanted)
    return fail(errc::mismatch, path.string() + ": describes a head of kind " + kind->dump() +
                                    ", but the method asks for \"" + wanted + "\"");
  auto refused = refused_option(root);
  for (const char* place : option_places)
    if (!refused && root.contains(place))
      refused = refused_option(root[place]);
  if (refused)
    return fail(errc::mismatch, path.string() + ": option " + *refused +
                                    " is true; heads trained with it are not supported");

  head_description out;
  const auto eps = root.find("layer_norm_eps");
  if (eps != root.end()) {
    if (!eps->is_number() || !(eps->get<double>() > 0))
      return fail(errc::malformed, path.string() + ": layer_norm_eps must be a positive number");
    out.norm_eps = eps->get<float>();
  }
  const auto threshold = root.find("threshold");
  if (threshold != root.end()) {
    if (!threshold->is_number() ||
        !(threshold->get<double>() >= 0 && threshold->get<double>() <= 1))
      return fail(errc::malformed, path.string() + ": threshold must be a number from 0 to 1");
    out.threshold = threshold->get<double>();
  }
  return out;
}

head_file::head_file(weight_files files, std::filesystem::path path)
    : files_(std::move(files)), path_(std::move(path)) {}

result<head_file> head_file::open(const head_spec& spec) {
  auto files = weight_files::open(spec.weights);
  if (!files)
    return tl::unexpected(files.error());
  return head_file(std::move(*files), spec.weights);
}

result<head_file> head_file::open_described(const head_spec& spec) {
  if (auto description = read_head_description(spec); !description)
    return tl::unexpected(description.error());
  return open(spec);
}

result<std::uint32_t> head_file::extent(const std::string& name, std::size_t index,
                                        std::size_t dimensions) const {
  const tensor_view* tensor = files_.find(name);
  if (tensor == nullptr)
    return fail(errc::mismatch, path_.string() + ": tensor '" + name +
                                    "' is missing; it should "
                                    "have " +
                                    std::to_string(dimensions) + " dimensions");
  if (tensor->shape.size() != dimensions)
    return fail(errc::mismatch, path_.string() + ": tensor '" + name + "' has " +
                                    std::to_string(tensor->shape.size()) + " dimensions, wanted " +
                                    std::to_string(dimensions));
  const std::int64_t length = tensor->shape[index];
  if (length <= 0 || length > extent_max)
    return fail(errc::mismatch, path_.string() + ": dimension " + std::to_string(index) +
                                    " of tensor '" + name + "' is " + std::to_string(length) +
                                    ", wanted 1 to " + std::to_string(extent_max));
  return static_cast<std::uint32_t>(length);
}

result<void> head_file::check_dtype(const std::string& name, const tensor_view& tensor) const {
  if (tensor.dtype != "F32" && tensor.dtype != "BF16" && tensor.dtype != "F16")
    return fail(errc::mismatch, path_.string() + ": tensor '" + name + "' has dtype " +
                                    tensor.dtype + ", wanted F32, BF16 or F16");
  return {};
}

result<std::vector<float>> head_file::floats(const std::string& name,
                                             const std::vector<std::int64_t>& shape) const {
  auto tensor = files_.require(name, shape);
  if (!tensor)
    return tl::unexpected(tensor.error());
  if (auto known = check_dtype(name, **tensor); !known)
    return tl::unexpected(known.error());
  return to_float(**tensor);
}

result<std::vector<float>> head_file::vector(const std::string& name, std::uint32_t count) const {
  return floats(name, {std::int64_t{count}});
}

result<dense_layer> head_file::dense(const std::string& name, std::uint32_t in, std::uint32_t out,
                                     bool bias_optional) const {
  auto weight = floats(name + ".weight", {std::int64_t{out}, std::int64_t{in}});
  if (!weight)
    return tl::unexpected(weight.error());
  dense_layer layer{in, out, {}, std::vector<float>(out, 0.0f)};
  if (!bias_optional || has(name + ".bias")) {
    auto bias = vector(name + ".bias", out);
    if (!bias)
      return tl::unexpected(bias.error());
    layer.bias = std::move(*bias);
  }
  layer.weight.resize(weight->size());
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t i = 0; i < in; ++i)
      layer.weight[i * out + o] = (*weight)[o * in + i];
  return layer;
}

result<dense_layer> head_file::single_row(const std::string& name, std::uint32_t row,
                                          std::uint32_t in) const {
  const auto rows = extent(name, 0, 2);
  if (!rows)
    return tl::unexpected(rows.error());
  if (row >= *rows)
    return fail(errc::mismatch, path_.string() + ": tensor '" + name + "' has " +
                                    std::to_string(*rows) + " rows, wanted row " +
                                    std::to_string(row));
  const auto tensor = files_.require(name, {{std::int64_t{*rows}, std::int64_t{in}}});
  if (!tensor)
    return tl::unexpected(tensor.error());
  if (auto known = check_dtype(name, **tensor); !known)
    return tl::unexpected(known.error());
  const std::size_t row_bytes = (*tensor)->bytes.size() / *rows;
  const tensor_view view{
      (*tensor)->dtype, {std::int64_t{in}}, (*tensor)->bytes.subspan(row * row_bytes, row_bytes)};
  return dense_layer{in, 1, to_float(view), {0.0f}};
}

result<norm_layer> head_file::norm(const std::string& name, std::uint32_t count) const {
  auto scale = vector(name + ".weight", count);
  if (!scale)
    return tl::unexpected(scale.error());
  auto shift = vector(name + ".bias", count);
  if (!shift)
    return tl::unexpected(shift.error());
  return norm_layer{std::move(*scale), std::move(*shift)};
}

} // namespace tokenrouter
