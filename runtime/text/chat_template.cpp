#include "runtime/text/chat_template.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

namespace tokenrouter {

namespace {

constexpr std::string_view messages_part =
    "{%for message in messages%}"
    "{{'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>'+'\\n'}}"
    "{%endfor%}";
constexpr std::string_view prompt_open =
    "{%if add_generation_prompt%}{{'<|im_start|>assistant\\n'}}";
constexpr std::string_view prompt_thinking =
    "{%if enable_thinking is defined and enable_thinking is false%}"
    "{{'<think>\\n\\n</think>\\n\\n'}}{%endif%}";
constexpr std::string_view prompt_close = "{%endif%}";

bool is_blank(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

/// The inside of one tag: blanks outside quotes dropped around operators and reduced to one between
/// words; quotes made single.
std::string canonical_tag(std::string_view inside) {
  std::string out;
  char quote = 0;
  bool blank = false;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const char c = inside[i];
    if (quote != 0) {
      if (c == '\\' && i + 1 < inside.size()) {
        out += c;
        out += inside[++i];
      } else if (c == quote) {
        quote = 0;
        out += '\'';
      } else {
        out += c;
      }
      continue;
    }
    if (is_blank({&c, 1})) {
      blank = true;
      continue;
    }
    const auto is_word = [](char w) {
      return std::isalnum(static_cast<unsigned char>(w)) || w == '_';
    };
    if (blank && !out.empty() && is_word(out.back()) && is_word(c))
      out += ' ';
    blank = false;
    if (c == '\'' || c == '"')
      quote = c;
    out += quote != 0 ? '\'' : c;
  }
  return out;
}

/// The template's tags without layout; none if it has comments or text of its own outside tags.
std::optional<std::string> canonical_template(std::string_view source) {
  std::string out;
  bool trims_next = true; // white space before the first tag is layout too
  bool after_block = false;
  while (!source.empty()) {
    const std::size_t open = std::min(source.find("{%"), source.find("{{"));
    const std::string_view text = source.substr(0, open);
    const bool last = open == std::string_view::npos;
    const bool trims_before = !last && source.substr(open + 2, 1) == "-";
    // Hugging Face renders with trim_blocks and lstrip_blocks: a line break after a block is
    // layout, and so is an indent before one.
    const bool line_break = after_block && text.starts_with('\n') &&
                            (text.size() == 1 || source.substr(open + 1, 1) == "%");
    const bool layout = text.empty() || trims_next || trims_before || last || line_break;
    if (!is_blank(text) || !layout)
      return std::nullopt;
    if (last)
      break;
    after_block = source[open + 1] == '%';
    const std::string_view close_mark = after_block ? "%}" : "}}";
    const std::size_t close = source.find(close_mark, open + 2);
    if (close == std::string_view::npos)
      return std::nullopt;
    std::string_view inside = source.substr(open + 2, close - open - 2);
    trims_next = inside.ends_with('-');
    if (trims_next)
      inside.remove_suffix(1);
    if (trims_before && !inside.empty())
      inside.remove_prefix(1);
    out += source.substr(open, 2);
    out += canonical_tag(inside);
    out += close_mark;
    source.remove_prefix(close + 2);
  }
  return out;
}

} // namespace

result<chat_template> chat_template::parse(std::string_view source, const std::string& where) {
  const auto tags = canonical_template(source);
  const std::string plain =
      std::string(messages_part) + std::string(prompt_open) + std::string(prompt_close);
  const std::string thinking = std::string(messages_part) + std::string(prompt_open) +
                               std::string(prompt_thinking) + std::string(prompt_close);
  if (tags == plain)
    return chat_template(false);
  if (tags == thinking)
    return chat_template(true);
  return fail(errc::mismatch,
              where +
                  ": this chat template is not supported, only plain ChatML is (it begins with '" +
                  std::string(source.substr(0, 60)) +
                  "'); render conversations yourself and send the text as a prompt");
}

result<chat_template> chat_template::load(const std::filesystem::path& model_folder) {
  const auto jinja = model_folder / "chat_template.jinja";
  if (std::ifstream stream(jinja, std::ios::binary); stream) {
    const std::string source{std::istreambuf_iterator<char>(stream), {}};
    return parse(source, jinja.string());
  }
  const auto config = model_folder / "tokenizer_config.json";
  if (std::ifstream stream(config, std::ios::binary); stream) {
    const auto root = nlohmann::json::parse(stream, nullptr, false);
    if (!root.is_object())
      return fail(errc::malformed, config.string() + ": is not a JSON object");
    const auto source = root.find("chat_template");
    if (source != root.end() && source->is_string())
      return parse(source->get_ref<const std::string&>(), config.string());
    if (source != root.end() && !source->is_null())
      return fail(errc::mismatch, config.string() + ": chat_template must be one string");
  }
  return fail(errc::not_found, model_folder.string() +
                                   ": has no chat template (neither "
                                   "chat_template.jinja nor chat_template in "
                                   "tokenizer_config.json); send prompts as text");
}

std::string chat_template::render(const std::vector<chat_message>& messages,
                                  const chat_options& options) const {
  std::string out;
  for (const chat_message& message : messages) {
    out += "<|im_start|>";
    out += message.role;
    out += '\n';
    out += message.content;
    out += "<|im_end|>\n";
  }
  if (options.add_generation_prompt) {
    out += "<|im_start|>assistant\n";
    if (has_thinking_ && !options.enable_thinking)
      out += "<think>\n\n</think>\n\n";
  }
  return out;
}

} // namespace tokenrouter
