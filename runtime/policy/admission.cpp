#include "runtime/policy/admission.hpp"

#include <algorithm>

namespace tokenrouter {

result<void> admit(const admission_request& request, std::span<const admission_model> models) {
  if (request.prompt_tokens == 0)
    return fail(errc::invalid_argument, "the prompt is empty: give at least one token");
  if (request.largest_token >= request.vocab_tokens)
    return fail(errc::invalid_argument, "prompt token id " + std::to_string(request.largest_token) +
                                            " is outside the vocabulary of " +
                                            std::to_string(request.vocab_tokens) + " tokens");
  if (request.max_new_tokens == 0)
    return fail(errc::invalid_argument, "max_new_tokens is 0: ask for at least one token");
  for (const auto& model : models) {
    if (request.prompt_tokens >= model.context_tokens_max)
      return fail(errc::capacity, "the prompt has " + std::to_string(request.prompt_tokens) +
                                      " tokens, but the context of model '" + model.name + "' is " +
                                      std::to_string(model.context_tokens_max) +
                                      ": shorten it, at least one token must be left to generate");
    const std::uint64_t wanted = std::min<std::uint64_t>(
        std::uint64_t{request.prompt_tokens} + request.max_new_tokens, model.context_tokens_max);
    if (wanted > model.pool_tokens)
      return fail(errc::capacity, "prompt and max_new_tokens need KV for " +
                                      std::to_string(wanted) + " tokens, but the pool of model '" +
                                      model.name + "' holds " + std::to_string(model.pool_tokens) +
                                      ": lower max_new_tokens or raise kv_cache.tokens");
  }
  return {};
}

} // namespace tokenrouter
