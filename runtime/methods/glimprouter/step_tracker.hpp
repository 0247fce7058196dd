#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

enum class glimpse_mode : std::uint32_t {
  thinking, ///< the start of an output
  ending,   ///< the thinking is over, its end mark still has to be written
  answer,
};

/// Where a request stands in its chain of thought. Belongs to the request.
struct glimpse_state {
  std::uint64_t step_hash = 0;     ///< of the step under way
  std::uint64_t previous_hash = 0; ///< of the last whole step
  std::uint64_t step_bytes = 0;
  std::uint64_t previous_bytes = 0;
  std::uint32_t mode = 0;            ///< glimpse_mode
  std::uint32_t step_tokens = 0;     ///< 0: the next token begins a step
  std::uint32_t thinking_tokens = 0; ///< since the output began
  std::uint32_t steps_count = 0;     ///< whole ones
  std::uint32_t newline = 0;         ///< 1: the step's last byte is a line break
  std::uint32_t mark_bytes = 0;      ///< leading bytes of the end mark that the text ends with
};

/// What the token just committed did.
enum class glimpse_event : std::uint8_t {
  none,
  step_ended,
  thinking_ended, ///< by the model's own "</think>": mode is now answer
  thinking_spent, ///< by repetition or budget: mode is now ending
};

/// Cuts a chain of thought into steps by its text, token by token. A step ends with the token in
/// whose text an empty line ("\n\n") of the step is complete, or after `step_tokens_max` tokens.
/// The thinking ends with the token that completes "</think>"; after `thinking_tokens_max` tokens;
/// and after two identical steps in a row, if there were more than two.
class step_tracker {
 public:
  /// `token_bytes`: text of each id; not null. Ids beyond it add no text.
  step_tracker(std::shared_ptr<const std::vector<std::string>> token_bytes,
               std::uint32_t step_tokens_max, std::uint32_t thinking_tokens_max);

  /// Requires mode thinking.
  glimpse_event advance(token_id committed, glimpse_state& state) const;

  std::string_view text_of(token_id token) const;

  /// Whether the text leaves a "<think>" open.
  static bool is_thinking_open(std::string_view text);

 private:
  std::shared_ptr<const std::vector<std::string>> token_bytes_;
  std::uint32_t step_tokens_max_;
  std::uint32_t thinking_tokens_max_;
};

} // namespace tokenrouter
