#include "gpu/persistent_shape.hpp"

#include "gpu/wave_plan.hpp"

namespace tokenrouter::gpu {

bool persistent_fits(const persistent_shape& s, std::uint32_t processors) {
  const auto whole = [](std::uint32_t k) { return k > 0 && k % 64 == 0; };
  if (processors == 0 || s.kv_heads == 0 || s.heads % s.kv_heads != 0 || s.heads / s.kv_heads > 16)
    return false;
  const std::uint32_t items =
      pieces_max(persistent_rows_max, {.kv_heads = s.kv_heads, .processors = processors}) *
      s.kv_heads;
  return s.layers >= 2 && s.layers <= persistent_layers_max &&
         (s.head_dim == 32 || s.head_dim == 64 || s.head_dim == 128) && whole(s.hidden) &&
         whole(s.heads * s.head_dim) && whole(s.intermediate) &&
         s.hidden <= persistent_hidden_max &&
         s.hidden <= persistent_hidden_per_block * processors &&
         items <= persistent_items_max * processors;
}

} // namespace tokenrouter::gpu
