#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/chat_template.hpp"

namespace tokenrouter {

/// A model's wish to have one of the client's functions called.
struct tool_call {
  std::string name;
  std::string arguments; ///< a JSON object, as text; members in the order of the model
};

/// Parts of an answer that are settled: text first, calls as they were written.
struct tool_scan {
  std::string content;
  std::vector<tool_call> calls;
};

/// Finds calls of tools in an answer that comes in pieces, and holds back what may still become
/// one. What is no well-formed call is text, to the letter; white space after a call is dropped
/// with it unless text follows. Tagged calls may stand anywhere; bare ones begin the answer, and
/// only those of `names` are taken for calls.
class tool_call_scanner {
 public:
  /// Requires a form that is tagged or bare_json.
  tool_call_scanner(tool_call_form form, std::vector<std::string> names);

  /// Takes the next piece of the answer.
  tool_scan push(std::string_view piece);

  /// The answer is over: settles what was held back.
  tool_scan finish();

 private:
  void scan_tagged(tool_scan& out, bool over);
  void scan_bare(tool_scan& out, bool over);
  void settle_text(tool_scan& out, std::size_t bytes);
  void settle_call(tool_scan& out, tool_call&& call, std::size_t bytes);
  std::optional<std::size_t> object_end();

  tool_call_form form_;
  std::vector<std::string> names_;
  std::string pending_;         ///< not settled
  bool in_call_ = false;        ///< pending_ begins with what may be one, after white space
  bool plain_ = false;          ///< bare: no call can come any more
  bool after_call_ = false;     ///< only white space was seen since the last call
  std::size_t looked_at_ = 0;   ///< bytes of pending_ that were looked at for the end of a call
  std::size_t open_braces_ = 0; ///< bare: of those bytes
  bool in_text_ = false;
  bool escaped_ = false;
};

} // namespace tokenrouter
