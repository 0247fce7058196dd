#pragma once

#include <cstdint>
#include <memory>

#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"

namespace tokenrouter {

/// Loads a model for this host's CPU. The fastest kernels the processor runs are taken, or those
/// that the environment variable TOKENROUTER_CPU_ISA names (scalar, avx2, avx512, avx512-bf16).
///
/// Results of a row are equal bit for bit whatever its batch mates, chunking, block numbers or
/// thread count. bfloat16: weights and KV in bf16, inputs of matrix products rounded to bf16,
/// everything else and all sums in float32. float32: no rounding but that of float32, and the same
/// bits with every kernel set.
///
/// Starts options.threads − 1 threads, which sleep between steps, and keeps libtorch and its BLAS
/// to one thread in the whole process. Errors: not_found, malformed, mismatch (a tensor is missing,
/// or has another shape or dtype; an unsupported model), capacity, invalid_argument.
result<std::unique_ptr<backend>> make_cpu_backend(const load_options& options);

/// What make_cpu_backend would take, from config.json and the headers of the weight files alone,
/// which are checked as it would check them. Errors: as there.
result<model_memory> estimate_cpu_memory(const load_options& options);

} // namespace tokenrouter
