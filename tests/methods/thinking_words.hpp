#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter::thinking_words {

/// A vocabulary to think in; the name of each id below.
inline std::shared_ptr<const std::vector<std::string>> all() {
  return std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"", "a", "b", "\n", "\n\n", ".\n\n", "</think>", "<think>", "</th",
                               "ink>", "\n\n\n", "x</think>\n\n"});
}

inline constexpr token_id eos = 0, a = 1, b = 2, line = 3, gap = 4, full_stop = 5, end_mark = 6,
                          open_mark = 7, end_head = 8, end_tail = 9, wide_gap = 10, end_inside = 11;

} // namespace tokenrouter::thinking_words
