/// Times steps of a model on a GPU beside the floor that memory bandwidth sets: decode steps for
/// pairs of batch and context, and prefills. Random weights; see README.md.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <cuda_profiler_api.h>

#include "gpu/cuda_backend.hpp"
#include "gpu/kernels/launch.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/model_config.hpp"
#include "tests/gpu/shard_team.hpp"

using namespace tokenrouter;

namespace {

struct bench_options {
  std::string shape;
  std::vector<std::uint32_t> batches{1, 16, 64};
  std::vector<std::uint32_t> contexts{1024, 4096, 8192};
  std::vector<std::uint32_t> prefills{4096};
  std::uint32_t steps = 30;
  std::uint32_t memory_gb = 60; ///< for KV
  double bandwidth_tb = 4.3;    ///< per second; measured by a copy
  double matmul_tflops = 790;   ///< measured
  bool no_graphs = false;
  bool no_overlap = false;
  std::uint32_t shards = 1; ///< GPUs that the model is split over
  bool one_kernel = false;
};

struct shape_costs {
  double weight_bytes;       ///< read once a step
  double kv_bytes_per_token; ///< of context
  double flops_per_token;    ///< of the layers' products
  double flops_per_pair;     ///< of attention, for a token and a position that it sees
};

shape_costs costs_of(const model_config& c) {
  const double qkv = static_cast<double>(c.hidden_size) * (c.heads + 2.0 * c.kv_heads) * c.head_dim;
  const double out = static_cast<double>(c.hidden_size) * c.heads * c.head_dim;
  const double mlp = 3.0 * c.hidden_size * c.intermediate_size;
  const double layers = c.layers * (qkv + out + mlp);
  return {2 * (layers + static_cast<double>(c.vocab_tokens) * c.hidden_size),
          2.0 * 2 * c.layers * c.kv_heads * c.head_dim, 2 * layers,
          4.0 * c.layers * c.heads * c.head_dim};
}

/// Rows with blocks of their own, scattered over the pool.
step_input decode_input(std::uint32_t batch, std::uint32_t context,
                        const std::vector<block_id>& blocks) {
  step_input in;
  const std::uint32_t per_row = (context + limits::block_tokens - 1) / limits::block_tokens;
  for (std::uint32_t i = 0; i < batch; ++i) {
    step_row row;
    row.token_offset = i;
    row.token_count = 1;
    row.start_position = context - 1;
    row.block_offset = i * per_row;
    row.block_count = per_row;
    row.answered_positions = 1;
    in.rows.push_back(row);
    in.tokens.push_back(static_cast<token_id>(17 + i));
    for (std::uint32_t b = 0; b < per_row; ++b)
      in.block_tables.push_back(blocks[i * per_row + b]);
  }
  return in;
}

struct step_times {
  double wall_us;
  double host_us; ///< of these, what the device alone would not need; 0 if not known
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

step_times median_us(backend& model, const step_input& in, std::uint32_t steps, bool replay) {
  step_output out;
  std::vector<double> times;
  for (std::uint32_t i = 0; i < steps + 5; ++i) {
    const std::uint64_t began = monotonic_ns();
    model.step(in, out);
    if (i + 1 == 5)
      cudaProfilerStart();
    if (i >= 5)
      times.push_back(static_cast<double>(monotonic_ns() - began) / 1e3);
  }
  cudaProfilerStop();
  const double wall_us = median(times);
  return {wall_us, replay ? wall_us - gpu::replay_us(model, steps) : 0.0};
}

/// Gives every block of the pool the keys and values of real tokens.
void fill_pool(backend& model, std::uint32_t blocks, std::uint32_t vocab) {
  const std::uint32_t filled = std::min(blocks, 64u);
  step_input in;
  step_row row;
  row.token_count = filled * limits::block_tokens;
  row.block_count = filled;
  row.answered_positions = 1;
  std::mt19937 random(1);
  for (std::uint32_t i = 0; i < row.token_count; ++i)
    in.tokens.push_back(static_cast<token_id>(random() % vocab));
  for (block_id b = 0; b < filled; ++b)
    in.block_tables.push_back(b);
  in.rows.push_back(row);
  step_output out;
  model.step(in, out);
  std::vector<block_copy> copies;
  for (block_id b = filled; b < blocks; ++b)
    copies.push_back({b % filled, b});
  model.copy_blocks(copies);
}

void bench_prefill(backend& model, const bench_options& options, const shape_costs& costs,
                   std::uint32_t tokens, std::uint32_t vocab) {
  step_input in;
  step_row row;
  row.token_count = tokens;
  row.block_count = (tokens + limits::block_tokens - 1) / limits::block_tokens;
  row.answered_positions = 1;
  std::mt19937 random(2);
  for (std::uint32_t i = 0; i < tokens; ++i)
    in.tokens.push_back(static_cast<token_id>(random() % vocab));
  for (block_id b = 0; b < row.block_count; ++b)
    in.block_tables.push_back(b);
  in.rows.push_back(row);
  const auto [us, host_us] = median_us(model, in, 5, false);
  const double flops =
      tokens * costs.flops_per_token + costs.flops_per_pair * tokens * tokens / 2.0;
  const double floor_us = flops / options.shards / options.matmul_tflops / 1e6;
  std::printf("| prefill | %u | - | %.2f | %.3f | %.2f | %.0f %% | %.0f tok/s |\n", tokens,
              us / 1e3, host_us / 1e3, floor_us / 1e3, 100 * floor_us / us, tokens / us * 1e6);
}

result<std::unique_ptr<backend>> load_shards(const load_options& load,
                                             const bench_options& options) {
  cuda_options cuda{.device = 0, .graphs = !options.no_graphs};
  if (options.one_kernel)
    cuda.one_kernel.reset();
  if (options.shards == 1)
    return make_cuda_backend(load, cuda);
  auto team = test::shard_team::load(load, options.shards, !options.no_graphs);
  if (!team)
    return tl::unexpected(team.error());
  return std::unique_ptr<backend>(std::move(*team));
}

int bench(const bench_options& options) {
  const auto config = load_model_config(options.shape);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    return 1;
  }
  load_options load;
  load.model_path = options.shape;
  load.dummy_weights = true;
  gpu::overlap_kernels(!options.no_overlap);
  const std::uint64_t began_us = monotonic_us();
  auto made = load_shards(load, options);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return 1;
  }
  backend& model = **made;
  const auto loaded_us = monotonic_us() - began_us;
  const std::uint64_t pool = std::uint64_t{options.memory_gb} << 30;
  std::uint32_t wanted = 0;
  for (const auto batch : options.batches)
    for (const auto context : options.contexts)
      wanted = std::max(wanted, batch * ((context + 15) / 16));
  for (const auto tokens : options.prefills)
    wanted = std::max(wanted, (tokens + 15) / 16);
  const auto blocks = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, pool / model.facts().kv_bytes_per_block));
  if (const auto kv = model.allocate_kv(blocks); !kv) {
    std::fprintf(stderr, "%s\n", kv.error().message.c_str());
    return 1;
  }
  fill_pool(model, blocks, config->vocab_tokens);
  std::printf("%s: loaded in %.1f s, with KV and graphs %.1f s; %.1f GB of weights and workspace\n",
              options.shape.c_str(), static_cast<double>(loaded_us) / 1e6,
              static_cast<double>(monotonic_us() - began_us) / 1e6,
              static_cast<double>(model.facts().weight_bytes) / 1e9);
  std::printf("%s\n", model.facts().kernels.c_str());
  std::printf("| step | rows | context | ms | of these host ms | floor ms | floor / time | "
              "|\n|-|-|-|-|-|-|-|-|\n");
  const shape_costs costs = costs_of(*config);
  std::vector<block_id> order(blocks);
  for (block_id b = 0; b < blocks; ++b)
    order[b] = b;
  std::ranges::shuffle(order, std::mt19937(3));
  for (const auto batch : options.batches)
    for (const auto context : options.contexts) {
      if (std::uint64_t{batch} * ((context + 15) / 16) > blocks)
        continue;
      const auto [us, host_us] =
          median_us(model, decode_input(batch, context, order), options.steps,
                    !options.no_graphs && options.shards == 1);
      const double bytes = costs.weight_bytes + costs.kv_bytes_per_token * batch * context;
      const double floor_us = bytes / options.shards / options.bandwidth_tb / 1e6;
      std::printf("| decode | %u | %u | %.3f | %.3f | %.3f | %.0f %% | %.0f tok/s |\n", batch,
                  context, us / 1e3, host_us / 1e3, floor_us / 1e3, 100 * floor_us / us,
                  batch / us * 1e6);
      std::fflush(stdout);
    }
  for (const auto tokens : options.prefills)
    bench_prefill(model, options, costs, tokens, config->vocab_tokens);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  bench_options options;
  CLI::App app("Steps of a model on a GPU beside their floors");
  app.add_option("shape", options.shape, "Folder with a config.json")->required();
  app.add_option("--batches", options.batches, "Rows of decode steps")->delimiter(',');
  app.add_option("--contexts", options.contexts, "Context lengths in tokens")->delimiter(',');
  app.add_option("--prefills", options.prefills, "Prompt lengths in tokens")->delimiter(',');
  app.add_option("--steps", options.steps, "Steps of which the median is taken");
  app.add_option("--kv-gb", options.memory_gb, "Most memory for KV, in GiB");
  app.add_option("--bandwidth", options.bandwidth_tb, "Of the floor, in TB/s");
  app.add_option("--matmul", options.matmul_tflops, "Of the floor, in TFLOP/s");
  app.add_option("--shards", options.shards, "GPUs that the model is split over");
  app.add_flag("--no-overlap", options.no_overlap, "Start every kernel after the one in front");
  app.add_flag("--no-graphs", options.no_graphs, "Launch every kernel on its own");
  app.add_flag("--one-kernel", options.one_kernel,
               "Run a wave's layers as one kernel where that is faster");
  CLI11_PARSE(app, argc, argv);
  return bench(options);
}
