#include "gpu/layer_tuning.hpp"

#include "gpu/graph_cache.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter::gpu {
namespace {

constexpr std::uint32_t context_tokens = 1024;
constexpr std::uint32_t context_blocks = context_tokens / limits::block_tokens;

/// Rows may share blocks: what they hold does not matter.
void add_decode(step_input& in, std::uint32_t pool_blocks) {
  step_row row;
  row.token_offset = static_cast<std::uint32_t>(in.tokens.size());
  row.token_count = 1;
  row.start_position = context_tokens - 1;
  row.block_offset = static_cast<std::uint32_t>(in.block_tables.size());
  row.block_count = context_blocks;
  row.answered_positions = 1;
  in.rows.push_back(row);
  in.tokens.push_back(0);
  for (std::uint32_t i = 0; i < context_blocks; ++i)
    in.block_tables.push_back((row.block_offset + i) % pool_blocks);
}

} // namespace

void tune_layers(forward_pass& pass, wave_buffers& buffers, const wave_limits& limits,
                 const model_config& config, const kv_pool& pool, cudaStream_t stream) {
  if (config.context_tokens_max < context_tokens || pool.blocks < context_blocks)
    return;
  step_input in;
  wave w;
  for (std::uint32_t rows = 1; rows <= persistent_rows_max; ++rows) {
    add_decode(in, pool.blocks);
    if (graph_size_for(rows) != rows)
      continue;
    wave_cutter(in, limits, pass.attention(), config.vocab_tokens).next(w);
    buffers.upload(w, {rows, rows}, stream);
    pass.tune_layers(buffers.view({rows, rows}), rows, pool.data, stream);
  }
}

} // namespace tokenrouter::gpu
