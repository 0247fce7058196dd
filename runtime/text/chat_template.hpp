#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"

namespace tokenrouter {

struct chat_message {
  std::string role; ///< e.g. system, user, assistant; written as it is
  std::string content;
};

struct chat_options {
  bool add_generation_prompt = true; ///< end with the header of the reply that is wanted
  bool enable_thinking = true; ///< false: the generation prompt ends in an empty chain of thought
};

/// How a model's conversations are written as text. One form is known, ChatML:
/// `<|im_start|>ROLE\nCONTENT<|im_end|>\n` for each message; a template file is accepted only if it
/// is one of ChatML's known spellings, since running arbitrary Jinja is not supported.
class chat_template {
 public:
  /// Reads chat_template.jinja, or else `chat_template` of tokenizer_config.json, of a model's
  /// folder. Errors: not_found (neither), malformed, mismatch (another template).
  static result<chat_template> load(const std::filesystem::path& model_folder);

  /// Recognises a template's source; `where` names it in errors.
  static result<chat_template> parse(std::string_view source, const std::string& where);

  std::string render(const std::vector<chat_message>& messages, const chat_options& options) const;

  /// Whether `enable_thinking` has an effect.
  bool has_thinking() const { return has_thinking_; }

 private:
  explicit chat_template(bool has_thinking) : has_thinking_(has_thinking) {}

  bool has_thinking_;
};

} // namespace tokenrouter
