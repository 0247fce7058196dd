#include "runtime/methods/glimprouter/step_tracker.hpp"

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

constexpr std::string_view open_mark = "<think>";
constexpr std::string_view end_mark = "</think>";

/// The first byte of the mark occurs in it once, so a mismatch starts over.
std::uint32_t matched(std::uint32_t before, char byte) {
  if (byte == end_mark[before])
    return before + 1;
  return byte == end_mark.front() ? 1 : 0;
}

struct text_events {
  bool empty_line = false;
  bool end_mark = false;
};

text_events read_text(std::string_view text, glimpse_state& s) {
  text_events out;
  for (const char byte : text) {
    s.step_hash = (s.step_hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u; // FNV-1a
    ++s.step_bytes;
    s.mark_bytes = matched(s.mark_bytes, byte);
    if (s.mark_bytes == end_mark.size()) {
      out.end_mark = true;
      s.mark_bytes = 0;
    }
    out.empty_line |= byte == '\n' && s.newline;
    s.newline = byte == '\n';
  }
  return out;
}

/// True if the step that ends repeats the one before.
bool end_step(glimpse_state& s) {
  ++s.steps_count;
  const bool repeats =
      s.steps_count > 2 && s.step_hash == s.previous_hash && s.step_bytes == s.previous_bytes;
  s.previous_hash = s.step_hash;
  s.previous_bytes = s.step_bytes;
  s.step_hash = 0;
  s.step_bytes = 0;
  s.step_tokens = 0;
  s.newline = 0;
  return repeats;
}

} // namespace

step_tracker::step_tracker(std::shared_ptr<const std::vector<std::string>> token_bytes,
                           std::uint32_t step_tokens_max, std::uint32_t thinking_tokens_max)
    : token_bytes_(std::move(token_bytes)), step_tokens_max_(step_tokens_max),
      thinking_tokens_max_(thinking_tokens_max) {
  check(token_bytes_ != nullptr, "steps are cut by text, so the text of tokens is known");
}

std::string_view step_tracker::text_of(token_id token) const {
  const auto index = static_cast<std::size_t>(token);
  return token >= 0 && index < token_bytes_->size() ? std::string_view((*token_bytes_)[index])
                                                    : std::string_view();
}

glimpse_event step_tracker::advance(token_id committed, glimpse_state& s) const {
  check(s.mode == static_cast<std::uint32_t>(glimpse_mode::thinking), "steps are of the thinking");
  ++s.step_tokens;
  ++s.thinking_tokens;
  const text_events seen = read_text(text_of(committed), s);
  if (seen.end_mark) {
    s.mode = static_cast<std::uint32_t>(glimpse_mode::answer);
    return glimpse_event::thinking_ended;
  }
  const bool step_ends = seen.empty_line || s.step_tokens >= step_tokens_max_;
  const bool repeats = step_ends && end_step(s);
  if (repeats || s.thinking_tokens >= thinking_tokens_max_) {
    s.mode = static_cast<std::uint32_t>(glimpse_mode::ending);
    return glimpse_event::thinking_spent;
  }
  return step_ends ? glimpse_event::step_ended : glimpse_event::none;
}

bool step_tracker::is_thinking_open(std::string_view text) {
  const std::size_t open = text.rfind(open_mark), end = text.rfind(end_mark);
  return open != std::string_view::npos && (end == std::string_view::npos || open > end);
}

} // namespace tokenrouter
