#pragma once

#include <string>

#include "runtime/core/ids.hpp"
#include "runtime/text/tokenizer.hpp"

namespace tokenrouter {

/// Turns a stream of tokens into a stream of UTF-8 text without ever cutting a character: bytes of
/// a character that may still complete are held back. All pieces together are the tokens' bytes
/// with one U+FFFD for each maximal invalid subpart.
class incremental_detokenizer {
 public:
  /// `source` must outlive this object.
  explicit incremental_detokenizer(const tokenizer& source, bool skip_special = true)
      : source_(&source), skip_special_(skip_special) {}

  /// Text that became complete with this token; may be empty.
  std::string push(token_id token);

  /// The end: an incomplete character becomes U+FFFD. The object may be used again.
  std::string finish();

 private:
  const tokenizer* source_;
  bool skip_special_;
  std::string pending_; ///< at most 3 bytes between calls
};

} // namespace tokenrouter
