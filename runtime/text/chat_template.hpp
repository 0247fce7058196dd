#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/core/error.hpp"

namespace tokenrouter {

struct chat_message {
  std::string role; ///< e.g. system, user, assistant
  std::string content;
};

struct chat_options {
  bool add_generation_prompt = true; ///< end with the header of the reply that is wanted
  bool enable_thinking = true;       ///< false: tells the template so; true: leaves it its default
};

/// How a model writes the calls of tools that its template shows it.
enum class tool_call_form : std::uint8_t {
  none,      ///< the template shows no tools
  tagged,    ///< <tool_call> {"name": ..., "arguments": {...}} </tool_call>: Hermes, Qwen
  bare_json, ///< an answer that is {"name": ..., "parameters": {...}}: Llama 3
  unknown,   ///< in a form of its own
};

/// How a model's conversations are written as text: its own Jinja template, rendered byte for byte
/// as Hugging Face's transformers does (see jinja::program for what is not supported).
///
/// A rendered text is complete: templates write the begin-of-text token themselves where the model
/// wants one, and tokenizer::encode adds none, so the ids of a prompt begin with it once. Who adds
/// one elsewhere must look at bos_token() first.
///
/// Const members may be called by several threads. Copies share the template.
class chat_template {
 public:
  /// Reads chat_template.jinja (and additional_chat_templates/tool_use.jinja), or else
  /// `chat_template` of tokenizer_config.json (one text or a list with one named default, and
  /// perhaps tool_use), of a model's folder, and its special tokens. Errors: not_found (no
  /// template), malformed (with file and line).
  static result<chat_template> load(const std::filesystem::path& model_folder);

  /// A template from its source, without special tokens; `where` names it in errors.
  /// Error: malformed.
  static result<chat_template> parse(std::string_view source, const std::string& where);

  /// Errors: invalid_argument (what the template refuses, in its own words, or what it can't do
  /// with these messages), capacity (it does too much work).
  result<std::string> render(const std::vector<chat_message>& messages,
                             const chat_options& options) const;

  /// The same for messages as chat APIs have them. `messages`: a list of at least one object (role;
  /// content, a text or a list of parts; tool_calls, reasoning_content and what else the template
  /// reads); members that are null are taken as absent, and reasoning under one of the names
  /// reasoning_content, thinking and reasoning is there under the first two, as in transformers.
  /// `tools`: null or a list of JSON schemas. `more`: null or an object of further variables, such
  /// as {"enable_thinking": false}; they come before the model's special tokens. `now`: local time
  /// for templates that write the date; null: the clock's.
  result<std::string> render_json(const nlohmann::ordered_json& messages,
                                  const nlohmann::ordered_json& tools,
                                  const nlohmann::ordered_json& more, bool add_generation_prompt,
                                  const std::tm* now = nullptr) const;

  /// What the template shows of tools, by the marks of each family in its text.
  tool_call_form tool_calls() const;

  /// Whether `enable_thinking` is mentioned, and so may have an effect.
  bool has_thinking() const;

  /// The model's begin-of-text token; empty if it has none.
  std::string bos_token() const;

 private:
  struct parts;
  explicit chat_template(std::shared_ptr<const parts> p) : parts_(std::move(p)) {}
  std::shared_ptr<const parts> parts_;
};

} // namespace tokenrouter
