// Milliseconds of a decode step on the CPU at several batch sizes, beside the same step written op
// by op with libtorch in the same run. See --help.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "tests/bench/cpu_step/naive_model.hpp"
#include "tests/exec/cpu/test_models.hpp"

// There when libtorch's BLAS is OpenBLAS, else null.
extern "C" char* openblas_get_config() __attribute__((weak));

using namespace tokenrouter;

namespace {

struct settings {
  std::vector<std::string> models = {"xs", "s", "m", "135m"};
  std::vector<std::uint32_t> batches = {1, 8, 32};
  std::uint32_t kv_tokens = 256;
  std::uint32_t threads = 1;
  std::uint32_t steps_max = 60;
  double seconds_max = 3;
  bool naive = true;
  bool cpu_time = false;
};

struct timing {
  double median_ms = 0;
  double least_ms = 0;
};

/// Wall time, or the time this thread ran: the steadier figure on a machine shared with others.
double now_ms(bool cpu_time) {
  timespec t{};
  ::clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

timing measure(const settings& s, const std::function<void()>& step) {
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  step();
  step();
  std::vector<double> times_ms;
  while (times_ms.size() < 3 ||
         (times_ms.size() < s.steps_max &&
          std::chrono::duration<double>(clock::now() - began).count() < s.seconds_max)) {
    const double start_ms = now_ms(s.cpu_time);
    step();
    times_ms.push_back(now_ms(s.cpu_time) - start_ms);
  }
  std::sort(times_ms.begin(), times_ms.end());
  return {times_ms[times_ms.size() / 2], times_ms.front()};
}

timing measure_backend(const settings& s, const std::filesystem::path& folder, compute_type compute,
                       std::uint32_t rows, std::string& kernels) {
  load_options options;
  options.model_path = folder;
  options.compute = compute;
  options.threads = s.threads;
  auto model = make_cpu_backend(options);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    std::exit(1);
  }
  kernels = (*model)->facts().kernels;
  const std::uint32_t blocks = s.kv_tokens / limits::block_tokens + 1;
  check((*model)->allocate_kv(rows * blocks).has_value(), "bench: KV");
  std::mt19937 random(7);
  std::vector<std::byte> bytes((*model)->facts().kv_bytes_per_block);
  // Random numbers of magnitude about one, read as bf16 or as float32.
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    bytes[i] = static_cast<std::byte>(random());
    bytes[i + 1] = static_cast<std::byte>(0x3f | (random() & 0x80));
  }
  step_input in;
  for (std::uint32_t row = 0; row < rows; ++row) {
    step_row r;
    r.token_offset = row;
    r.token_count = 1;
    r.start_position = s.kv_tokens - 1;
    r.block_offset = row * blocks;
    r.block_count = blocks;
    r.answered_positions = true;
    r.signals = to_set(signal::entropy);
    in.rows.push_back(r);
    in.tokens.push_back(static_cast<token_id>(random() % (*model)->facts().vocab_tokens));
    for (std::uint32_t b = 0; b < blocks; ++b) {
      in.block_tables.push_back(row * blocks + b);
      (*model)->import_blocks(std::array{block_id{row * blocks + b}}, bytes);
    }
  }
  step_output out;
  return measure(s, [&] { (*model)->step(in, out); });
}

void report(const settings& s, const std::string& name, const std::filesystem::path& folder) {
  for (const std::uint32_t rows : s.batches) {
    std::string kernels;
    const timing bf16 = measure_backend(s, folder, compute_type::bfloat16, rows, kernels);
    const timing f32 = measure_backend(s, folder, compute_type::float32, rows, kernels);
    std::printf("%-5s %3u rows  ours (%s) bf16 %8.3f (least %.3f)  f32 %8.3f (least %.3f)",
                name.c_str(), rows, kernels.c_str(), bf16.median_ms, bf16.least_ms, f32.median_ms,
                f32.least_ms);
    if (s.naive) {
      bench::naive_model narrow(folder, true, rows, s.kv_tokens);
      const timing naive_bf16 = measure(s, [&] { narrow.step(); });
      bench::naive_model wide(folder, false, rows, s.kv_tokens);
      const timing naive_f32 = measure(s, [&] { wide.step(); });
      std::printf("  libtorch op by op bf16 %8.2f  f32 %8.2f  ratio bf16 %5.2f  f32 %5.2f",
                  naive_bf16.median_ms, naive_f32.median_ms, naive_bf16.median_ms / bf16.median_ms,
                  naive_f32.median_ms / f32.median_ms);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

} // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Milliseconds of a decode step (median), greedy, with entropy, one thread each "
               "unless --threads says more for ours. Run from the source root.");
  app.add_option("--models", s.models, "xs, s, m (abacus) and 135m (random weights)")
      ->delimiter(',');
  app.add_option("--batches", s.batches, "rows of a step")->delimiter(',');
  app.add_option("--kv", s.kv_tokens, "positions each row attends to, a multiple of 16");
  app.add_option("--threads", s.threads, "threads of our backend");
  app.add_option("--steps", s.steps_max, "at most so many timed steps a case");
  app.add_option("--seconds", s.seconds_max, "at most so long a case");
  app.add_flag("--cpu-time", s.cpu_time, "count the time the calling thread ran, not wall time");
  app.add_flag("!--no-naive", s.naive, "leave libtorch out");
  CLI11_PARSE(app, argc, argv);

  if (s.naive)
    std::printf("BLAS of libtorch: %s\n",
                openblas_get_config ? openblas_get_config()
                                    : "not OpenBLAS; a reference BLAS makes it many times slower");
  const test::scratch_folder folder;
  for (const auto& name : s.models) {
    if (name == "135m") {
      test::model_shape shape{.architecture = "LlamaForCausalLM",
                              .hidden = 576,
                              .mlp = 1536,
                              .layers = 30,
                              .heads = 9,
                              .kv_heads = 3,
                              .head_dim = 64,
                              .vocab = 49152,
                              .context = 8192};
      test::write_random_model(folder.path() / name, shape, 1);
      report(s, name, folder.path() / name);
    } else {
      report(s, name, "examples/models/abacus/abacus-" + name);
    }
  }
}
