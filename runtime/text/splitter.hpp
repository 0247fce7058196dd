#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// A pre-tokenizer's pattern: cuts text into its matches and the gaps between them, in order.
/// Compiled by PCRE2 with Unicode properties and JIT. One thread at a time.
class splitter {
 public:
  /// `literal`: the pattern is plain text. Error: malformed (PCRE2's message and the offset).
  static result<splitter> compile(const std::string& pattern, bool literal = false);

  splitter(splitter&&) noexcept;
  splitter& operator=(splitter&&) noexcept;
  ~splitter();

  /// Calls `piece` with every non-empty piece of `text`, which must be valid UTF-8. Error: capacity
  /// (the pattern needs more memory for this text than PCRE2 may take).
  result<void> split(std::string_view text,
                     const std::function<result<void>(std::string_view)>& piece) const;

 private:
  struct code;
  explicit splitter(std::unique_ptr<code> c);
  std::unique_ptr<code> code_;
};

} // namespace tokenrouter
