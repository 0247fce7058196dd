#include "runtime/policy/kv_budget.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

constexpr double default_mem_fraction = 0.5;

std::uint64_t whole_blocks(std::uint64_t tokens) {
  return (tokens + limits::block_tokens - 1) / limits::block_tokens;
}

} // namespace

kv_budget plan_kv_budget(const kv_budget_input& in) {
  check(in.models_on_device >= 1 && in.kv_bytes_per_block >= 1, "a KV budget is of some model");
  kv_budget out;
  out.share_bytes = in.memory_bytes / in.models_on_device;
  const std::uint64_t room_bytes =
      out.share_bytes > in.weight_bytes ? out.share_bytes - in.weight_bytes : 0;
  if (in.kv_cache_tokens > 0) {
    const std::uint64_t blocks = whole_blocks(in.kv_cache_tokens);
    out.needed_bytes = in.weight_bytes + blocks * in.kv_bytes_per_block;
    out.fits = blocks * in.kv_bytes_per_block <= room_bytes;
    out.blocks = static_cast<std::uint32_t>(blocks);
    return out;
  }
  const double fraction =
      in.kv_cache_mem_fraction > 0 ? in.kv_cache_mem_fraction : default_mem_fraction;
  const auto by_memory = static_cast<std::uint64_t>(fraction * static_cast<double>(room_bytes)) /
                         in.kv_bytes_per_block;
  const std::uint64_t one_context = whole_blocks(in.context_tokens_max);
  const std::uint64_t useful = one_context * in.max_batch_rows;
  out.needed_bytes = in.weight_bytes + one_context * in.kv_bytes_per_block;
  out.blocks = static_cast<std::uint32_t>(std::min({by_memory, useful, std::uint64_t{UINT32_MAX}}));
  out.fits = by_memory >= one_context;
  return out;
}

} // namespace tokenrouter
