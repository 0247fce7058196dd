#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"

namespace tokenrouter {

struct cuda_options {
  std::uint32_t device = 0;
  bool graphs = true; ///< waves of up to 256 tokens are replayed as CUDA graphs
  /// All layers of waves of up to 16 tokens as one kernel, where model and device allow it; without
  /// a value whichever was faster when measured.
  std::optional<bool> one_kernel = false;
  bool first = false; ///< its kernels start before those of other models on the device that wait
};

/// Loads a model onto a GPU (compute capability 8.0 or newer). Attention, norms, draws, signals and
/// heads are our kernels; matrix products ours or cuBLASLt's, whichever was faster when measured at
/// load.
///
/// float32: sums in a fixed order, so that results of a row are equal bit for bit whatever its
/// batch mates, chunking or block numbers. bfloat16: as on the CPU, except that the order of sums,
/// and so the last bits, may depend on the number of rows of a step.
///
/// A shard of a group (options.group) waits until all are there; its sums over shards go through
/// NCCL, in float32.
///
/// Errors: unavailable (built without CUDA, no such device, cuBLASLt or NCCL can't be loaded, a
/// shard of the group is missing), capacity, mismatch, and those of the CPU's backend for files.
result<std::unique_ptr<backend>> make_cuda_backend(const load_options& options,
                                                   const cuda_options& cuda);

/// What make_cuda_backend would take, from config.json and the headers of weight files alone; asks
/// no device. Weights are with activations, workspaces and what the driver takes for a model.
/// Errors: not_found, malformed, mismatch.
result<model_memory> estimate_cuda_memory(const load_options& options);

/// Makes the id of a group of shards (load_options::group) on GPUs, for its leading one. Errors:
/// unavailable (built without CUDA or NCCL, NCCL can't be loaded).
result<std::vector<std::byte>> make_cuda_group();

namespace gpu {

/// For tests: hidden state before the LM head and raw logits of an answered position of the last
/// wave of the last step, in the order of the wave.
std::vector<float> hidden_of(const backend& cuda_backend, std::uint32_t end);
std::vector<float> logits_of(const backend& cuda_backend, std::uint32_t end);

/// For benchmarks: what the device takes for the last step when it is replayed `times` times on
/// end, so that no host stands between, in microseconds a step. Requires that it was one graph.
double replay_us(backend& cuda_backend, std::uint32_t times);

} // namespace gpu

} // namespace tokenrouter
