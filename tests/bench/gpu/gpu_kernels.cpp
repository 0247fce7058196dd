/// Times the kernels of a decode step, each in a chain of as many as a model has layers, replayed
/// as a CUDA graph; with and without the overlap of neighbouring kernels.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/forward.hpp"
#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/draw.hpp"
#include "gpu/kernels/kernel_target.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/kernels/skinny_product.hpp"
#include "gpu/kernels/warpgroup_product.hpp"
#include "gpu/library_product.hpp"
#include "gpu/wave_buffers.hpp"
#include "runtime/exec/model_config.hpp"
#include "tests/gpu/device_values.hpp"

using namespace tokenrouter;
using namespace tokenrouter::gpu;
using test::allocate;
using test::copied;
using bf16_t = __nv_bfloat16;

namespace {

class chain_timer {
 public:
  chain_timer() {
    cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda_check(cudaEventCreate(&begin_));
    cuda_check(cudaEventCreate(&end_));
  }

  cudaStream_t stream() const { return stream_; }

  /// Microseconds of each of `count` calls of `work(i)` in a row.
  double us_of_each(std::uint32_t count, const std::function<void(std::uint32_t)>& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    cuda_check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (std::uint32_t i = 0; i < count; ++i)
      work(i);
    cuda_check(cudaStreamEndCapture(stream_, &graph));
    cuda_check(cudaGraphInstantiate(&ready, graph, 0));
    std::vector<float> times;
    for (int run = 0; run < 12; ++run) {
      cuda_check(cudaEventRecord(begin_, stream_));
      cuda_check(cudaGraphLaunch(ready, stream_));
      cuda_check(cudaEventRecord(end_, stream_));
      cuda_check(cudaEventSynchronize(end_));
      float ms = 0;
      cuda_check(cudaEventElapsedTime(&ms, begin_, end_));
      if (run > 1)
        times.push_back(ms);
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    std::ranges::sort(times);
    return double{times[times.size() / 2]} * 1e3 / count;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

void report(chain_timer& timer, const std::string& name, std::uint32_t count, double floor_us,
            const std::function<void(std::uint32_t)>& work) {
  double us[2];
  for (const bool overlap : {true, false}) {
    overlap_kernels(overlap);
    us[overlap] = timer.us_of_each(count, work);
  }
  overlap_kernels(true);
  std::printf("%-44s %8.2f us  alone %8.2f  floor %6.2f\n", name.c_str(), us[1], us[0], floor_us);
  std::fflush(stdout);
}

struct product_kind {
  const char* name;
  std::uint32_t columns, k;
  product_output output;
  bool normed;
};

void bench_products(chain_timer& timer, const model_config& c, std::uint32_t rows) {
  const product_kind kinds[] = {
      {"qkv", (c.heads + 2 * c.kv_heads) * c.head_dim, c.hidden_size, product_output::operand,
       true},
      {"attention out", c.hidden_size, c.heads * c.head_dim, product_output::residual, false},
      {"gate up", 2 * c.intermediate_size, c.hidden_size, product_output::swiglu, true},
      {"down", c.hidden_size, c.intermediate_size, product_output::residual, false}};
  const std::uint32_t layers = std::min(c.layers, 28u);
  auto library = library_products::open().value();
  for (const auto& kind : kinds) {
    const std::size_t elements = std::size_t{kind.columns} * kind.k;
    const auto weights = allocate(elements * layers * 2);
    fill_random(weights.as<bf16_t>(), whole_matrix(elements * layers), 1, 0.02f, timer.stream());
    const auto x = allocate(std::size_t{rows} * kind.k * 2),
               y = allocate(std::size_t{rows} * kind.columns * 4);
    const auto residual = allocate(std::size_t{rows} * kind.k * 4), norm = allocate(kind.k * 4);
    const double floor = static_cast<double>(elements) * 2 / 4.3e6;
    const auto name = [&](const std::string& way) {
      return std::string(kind.name) + " x" + std::to_string(rows) + " " + way;
    };
    const auto call = [&](std::uint32_t i, bool normed) {
      return skinny_call{.weight = weights.as<bf16_t>() + elements * i,
                         .x = x.as<bf16_t>(),
                         .residual = normed ? residual.as<float>() : nullptr,
                         .norm_weight = norm.as<float>(),
                         .eps = 1e-6f,
                         .rows = rows,
                         .columns = kind.columns,
                         .k = kind.k,
                         .y = y.as()};
    };
    const bool gates = kind.output == product_output::swiglu;
    for (const std::uint32_t columns : {8u, 16u, 32u, 64u}) {
      if (rows > skinny_rows_max || kind.columns % columns != 0 || (gates && columns < 16))
        continue;
      for (const bool normed : {false, true}) {
        if (normed && (!kind.normed || !skinny_norm_fits(rows, kind.k)))
          continue;
        report(timer, name("ours " + std::to_string(columns) + (normed ? " normed" : "")), layers,
               floor, [&](std::uint32_t i) {
                 skinny_product(call(i, normed), kind.output, {columns}, timer.stream());
               });
      }
    }
    for (const std::uint32_t parts : {1u, 2u, 4u, 8u}) {
      if (!wgmma_runs_here() || rows > warpgroup_rows_max || kind.columns % 64 != 0 ||
          kind.k % (64 * parts) != 0 || (gates && parts == 8))
        continue;
      report(timer, name("warpgroups " + std::to_string(parts)), layers, floor,
             [&](std::uint32_t i) {
               warpgroup_product(call(i, false), kind.output, parts, timer.stream());
             });
    }
    const auto plain = gates ? product_output::operand : kind.output;
    double best = 1e9;
    for (const auto& plan : library->plans({rows, kind.columns, kind.k, plain}, 6))
      best = std::min(best, timer.us_of_each(layers, [&](std::uint32_t i) {
        plan->run(x.as(), weights.as<bf16_t>() + elements * i, y.as(), timer.stream());
      }));
    std::printf("%-44s %8.2f us                   floor %6.2f\n", name("library").c_str(), best,
                floor);
  }
}

void bench_attention(chain_timer& timer, const model_config& c, std::uint32_t rows,
                     std::uint32_t context) {
  const auto plan = attention_plan_of(c, compute_type::bfloat16, 132);
  const kv_shape shape(c);
  const std::uint32_t per_row = context / 16, blocks = per_row * rows;
  const auto pool = allocate(shape.block * blocks * 2);
  fill_random(pool.as<bf16_t>(), whole_matrix(shape.block * blocks), 3, 1.0f, timer.stream());
  step_input in;
  for (std::uint32_t r = 0; r < rows; ++r) {
    step_row row;
    row.token_offset = r;
    row.token_count = 1;
    row.start_position = context - 1;
    row.block_offset = r * per_row;
    row.block_count = per_row;
    row.answered_positions = 1;
    in.tokens.push_back(1);
    in.rows.push_back(row);
    for (std::uint32_t b = 0; b < per_row; ++b)
      in.block_tables.push_back(r * per_row + b);
  }
  std::ranges::shuffle(in.block_tables, std::mt19937(1));
  wave w;
  wave_cutter(in, {}, plan, c.vocab_tokens).next(w);
  auto buffers = wave_buffers::create({}, plan, 65536).value();
  const wave_bucket bucket{rows, rows};
  buffers.upload(w, bucket, timer.stream());
  const auto view = buffers.view(bucket);
  const auto q = allocate(std::size_t{rows} * c.heads * c.head_dim * 2), out = allocate(q.bytes());
  const auto qkv = allocate(std::size_t{rows} * (c.heads + 2 * c.kv_heads) * c.head_dim * 2);
  const auto rope = allocate(std::size_t{c.context_tokens_max} * c.head_dim * 4),
             norm = allocate(c.head_dim * 4);
  const std::size_t partials = std::size_t{partials_max(plan)} * c.kv_heads * 16;
  const auto sums = allocate(partials * c.head_dim * 4), bounds = allocate(partials * 8);
  const auto left = allocate(std::size_t{rows} * c.kv_heads * 4);
  cuda_check(cudaMemset(left.as(), 0, left.bytes()));
  const std::string size = " x" + std::to_string(rows) + " at " + std::to_string(context);
  report(timer, "rotate" + size, c.layers, 0, [&](std::uint32_t i) {
    rotate_and_store<bf16_t>({.qkv = qkv.as(),
                              .q_norm = norm.as<float>(),
                              .k_norm = norm.as<float>(),
                              .rope = rope.as<float>(),
                              .positions = view.positions,
                              .slots = view.slots,
                              .tokens = rows,
                              .heads = c.heads,
                              .kv_heads = c.kv_heads,
                              .head_dim = c.head_dim,
                              .eps = 1e-6f,
                              .q = q.as(),
                              .pool = pool.as(),
                              .block_elements = shape.block,
                              .key_offset = 2 * shape.side * i,
                              .value_offset = 2 * shape.side * i + shape.side},
                             timer.stream());
  });
  const double floor = 4.0 * rows * context * c.kv_heads * c.head_dim / 4.3e6;
  report(timer, "pieces" + size + " (" + std::to_string(w.pieces.size()) + ")", c.layers, floor,
         [&](std::uint32_t i) {
           piece_attention(
               {.q = q.as(),
                .kv = {pool.as(), shape.block, 2 * shape.side * i, 2 * shape.side * i + shape.side},
                .tables = view.tables,
                .heads = c.heads,
                .kv_heads = c.kv_heads,
                .head_dim = c.head_dim,
                .scale = 0.09f,
                .out = out.as()},
               view.pieces, view.piece_count,
               {sums.as<float>(), bounds.as<float>(), left.as<unsigned>()}, 264, timer.stream());
         });
}

void bench_rows(chain_timer& timer, const model_config& c, std::uint32_t rows) {
  const auto residual = allocate(std::size_t{rows} * c.hidden_size * 4),
             norm = allocate(c.hidden_size * 4);
  const auto out = allocate(std::size_t{rows} * c.hidden_size * 2);
  report(timer, "norm x" + std::to_string(rows), 28, 0, [&](std::uint32_t) {
    norm_rows({.residual = residual.as<float>(),
               .weight = norm.as<float>(),
               .gather = nullptr,
               .rows = rows,
               .hidden = c.hidden_size,
               .eps = 1e-6f,
               .exact = nullptr},
              out.as<bf16_t>(), timer.stream());
  });
  prepare_draws();
  const auto logits = allocate(std::size_t{rows} * c.vocab_tokens * 4);
  fill_random(logits.as<float>(), whole_matrix(rows, c.vocab_tokens), 5, 2.0f, timer.stream());
  const auto top = allocate(std::size_t{rows} * kept_logits_max * 4),
             drawn = allocate(rows * sizeof(drawn_row));
  for (const std::uint32_t signals : {0u, 1u, 8u}) {
    std::vector<draw_order> orders(rows, draw_order{.token = 0,
                                                    .temperature = 0,
                                                    .top_k = 0,
                                                    .top_p = 1,
                                                    .min_p = 0,
                                                    .uniform = 0,
                                                    .signals = signals,
                                                    .mix_weight = 0,
                                                    .mix = -1,
                                                    .distribution = -1,
                                                    .scored = -1,
                                                    .likeliest = 0,
                                                    .biases = 0,
                                                    .bias_count = 0,
                                                    .window_start = -1});
    const auto there = copied(orders);
    report(timer, "draw x" + std::to_string(rows) + " signals " + std::to_string(signals), 8, 0,
           [&](std::uint32_t) {
             draw_rows({.logits = logits.as<float>(),
                        .stride = c.vocab_tokens,
                        .count = c.vocab_tokens,
                        .orders = there.as<draw_order>(),
                        .has_biases = false,
                        .tables = nullptr,
                        .rows = rows,
                        .top_wanted = 100,
                        .top_of_all = false,
                        .top = top.as<float>(),
                        .mixes = nullptr,
                        .distributions = nullptr,
                        .out = drawn.as<drawn_row>(),
                        .likeliest = nullptr},
                       timer.stream());
           });
  }
}

/// Attention of a prompt's last `count` tokens, by both kernels there are for it.
void bench_tiles(chain_timer& timer, const model_config& c, std::uint32_t position,
                 std::uint32_t count) {
  const kv_shape shape(c);
  const std::uint32_t blocks = (position + count) / 16;
  const auto pool = allocate(shape.block * blocks * 2);
  fill_random(pool.as<bf16_t>(), whole_matrix(shape.block * blocks), 3, 1.0f, timer.stream());
  std::vector<std::int32_t> table(blocks);
  std::iota(table.begin(), table.end(), 0);
  std::ranges::shuffle(table, std::mt19937(1));
  const auto q = allocate(std::size_t{count} * c.heads * c.head_dim * 2), out = allocate(q.bytes());
  const auto tables = copied(table);
  const double floor = 4.0 * c.heads * c.head_dim * count * (position + count / 2.0) / 790e6;
  for (const bool warpgroups : {false, true}) {
    if (warpgroups && !wgmma_runs_here())
      continue;
    const std::int32_t each = warpgroups ? warpgroup_tile_tokens : tile_tokens;
    std::vector<attention_tile> tiles;
    for (auto i = static_cast<std::int32_t>(count) - each; i >= 0; i -= each)
      tiles.push_back({i, each, static_cast<std::int32_t>(position) + i, 0});
    const auto there = copied(tiles);
    const std::string name = std::string(warpgroups ? "warpgroups " : "tiles ") +
                             std::to_string(count) + " after " + std::to_string(position);
    report(timer, name, c.layers, floor, [&](std::uint32_t i) {
      (warpgroups ? warpgroup_attention : tile_attention)(
          {.q = q.as(),
           .kv = {pool.as(), shape.block, 2 * shape.side * i, 2 * shape.side * i + shape.side},
           .tables = tables.as<std::int32_t>(),
           .heads = c.heads,
           .kv_heads = c.kv_heads,
           .head_dim = c.head_dim,
           .scale = 0.09f,
           .out = out.as()},
          there.as<attention_tile>(), static_cast<std::uint32_t>(tiles.size()), timer.stream());
    });
  }
}

} // namespace

int main(int argc, char** argv) {
  std::string shape;
  std::vector<std::uint32_t> batches{1, 8, 16, 64};
  std::uint32_t context = 1024;
  CLI::App app("Kernels of a decode step in chains");
  app.add_option("shape", shape, "Folder with a config.json")->required();
  app.add_option("--batches", batches, "Rows")->delimiter(',');
  app.add_option("--context", context, "Context length in tokens");
  CLI11_PARSE(app, argc, argv);
  const auto config = load_model_config(shape);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    return 1;
  }
  prepare_skinny_products();
  if (wgmma_runs_here())
    prepare_warpgroup_products();
  prepare_attention();
  chain_timer timer;
  for (const std::uint32_t position : {0u, 2048u, 6144u})
    bench_tiles(timer, *config, position, 2048);
  for (const auto rows : batches) {
    bench_rows(timer, *config, rows);
    bench_attention(timer, *config, rows, context);
    bench_products(timer, *config, rows);
  }
  return 0;
}
