#pragma once

#include <cstdint>

#include "runtime/core/error.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/exec/model_config.hpp"

/// What every backend demands of load_options.
namespace tokenrouter {

/// The model's config, once the options are found to fit it. Errors: those of load_model_config,
/// invalid_argument (more legal tokens than the model has, too many heads).
result<model_config> load_fitting_config(const load_options& options);

/// How many tokens may be sampled.
std::uint32_t legal_tokens(const load_options& options, const model_config& config);

} // namespace tokenrouter
