#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

enum class finish_reason : std::uint8_t {
  none,      ///< goes on
  stop,      ///< an end-of-sequence token was committed
  length,    ///< max_new_tokens or the context is used up
  cancelled, ///< the client went away
  failed,    ///< an error ended it; the message goes with it
};

struct finish_limits {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_new_tokens = 0;
  std::uint32_t context_tokens_max = 0; ///< smallest of the models that take part
  bool ignore_eos = false;
};

/// Judges the token just committed, whoever made it. `committed_tokens` counts prompt and output,
/// that token included. A token that was proposed and dropped is never asked about.
inline finish_reason check_finish(token_id token, std::uint32_t committed_tokens,
                                  const finish_limits& limits,
                                  std::span<const token_id> eos_tokens) {
  if (!limits.ignore_eos &&
      std::find(eos_tokens.begin(), eos_tokens.end(), token) != eos_tokens.end())
    return finish_reason::stop;
  if (committed_tokens - limits.prompt_tokens >= limits.max_new_tokens ||
      committed_tokens >= limits.context_tokens_max)
    return finish_reason::length;
  return finish_reason::none;
}

} // namespace tokenrouter
