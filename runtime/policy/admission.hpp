#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// What a model that may take part offers one request.
struct admission_model {
  std::string name;
  std::uint32_t context_tokens_max = 0;
  std::uint32_t pool_tokens = 0; ///< its whole KV pool
  double parameters_billion = 0; ///< 0: not known
};

struct admission_request {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_new_tokens = 0;
  std::uint32_t largest_token = 0; ///< largest id in the prompt
  std::uint32_t vocab_tokens = 0;  ///< ids below are legal for every model
};

/// Refuses what could never finish: an empty prompt, ids outside the vocabulary, a prompt that
/// fills the context of some model, or more tokens than some model's pool holds alone.
result<void> admit(const admission_request& request, std::span<const admission_model> models);

} // namespace tokenrouter
