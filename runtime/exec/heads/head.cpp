#include "runtime/exec/heads/head.hpp"

#include <algorithm>
#include <string_view>

#include "runtime/exec/heads/citer_head.hpp"
#include "runtime/exec/heads/collm_head.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/r2r_head.hpp"
#include "runtime/exec/heads/rstitch_head.hpp"
#include "runtime/exec/safetensors.hpp"

namespace tokenrouter {

namespace {

struct head_entry {
  std::string_view kind;
  result<std::unique_ptr<routing_head>> (*load)(const head_spec& spec, std::uint32_t hidden_size);
};

constexpr head_entry entries[] = {
    {"r2r", load_r2r_head},         {"r2r_multi", load_r2r_multi_head},
    {"citer", load_citer_head},     {"citer_unfolded", load_citer_unfolded_head},
    {"collm", load_collm_head},     {"collm_row", load_collm_row_head},
    {"rstitch", load_rstitch_head},
};

} // namespace

result<std::unique_ptr<routing_head>> load_head(const head_spec& spec, std::uint32_t hidden_size) {
  std::string known;
  for (const auto& [kind, load] : entries) {
    if (kind == spec.kind)
      return load(spec, hidden_size);
    known += (known.empty() ? "" : ", ") + std::string(kind);
  }
  return fail(errc::invalid_argument,
              "head kind '" + spec.kind + "' is unknown; known are " + known);
}

result<double> head_threshold(const head_spec& spec) {
  const auto description = read_head_description(spec);
  if (!description)
    return tl::unexpected(description.error());
  if (!description->threshold)
    return fail(errc::not_found, "the description of " + spec.weights.string() +
                                     " has no threshold; set one in the configuration");
  return *description->threshold;
}

result<head_window> head_window_of(const head_spec& spec) {
  return spec.kind == "r2r_multi" ? r2r_multi_window(spec) : head_window{};
}

result<std::uint32_t> window_record_floats(std::span<const head_spec> specs,
                                           std::uint32_t hidden_size) {
  std::uint32_t floats = 0;
  for (const auto& spec : specs) {
    const auto window = head_window_of(spec);
    if (!window)
      return tl::unexpected(window.error());
    if (window->positions > 1)
      floats = std::max(floats, hidden_size + window->top_logits);
  }
  return floats;
}

result<std::uint64_t> head_memory_bytes(const head_spec& spec) {
  // One row of a model whose own memory is counted already.
  if (spec.kind == "collm_row")
    return std::uint64_t{0};
  const auto weights = weight_files::open(spec.weights);
  if (!weights)
    return tl::unexpected(weights.error());
  std::uint64_t bytes = 0;
  for (const auto& name : weights->names())
    bytes += static_cast<std::uint64_t>(weights->find(name)->elements()) * sizeof(float);
  return bytes;
}

result<void> check_head_description(const head_spec& spec) {
  if (auto description = read_head_description(spec); !description)
    return tl::unexpected(description.error());
  return {};
}

result<std::uint64_t> heads_memory_bytes(std::span<const head_spec> specs) {
  std::uint64_t sum = 0;
  for (const auto& spec : specs) {
    const auto bytes = head_memory_bytes(spec);
    if (!bytes)
      return bytes;
    sum += *bytes;
  }
  return sum;
}

} // namespace tokenrouter
