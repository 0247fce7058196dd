#include "runtime/ingress/tool_call_scanner.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/ingress/field_reader.hpp"

namespace tokenrouter {

namespace {

constexpr std::string_view opening_tag = "<tool_call>";
constexpr std::string_view closing_tag = "</tool_call>";
constexpr std::string_view white_space = " \t\r\n";

/// The longest end of `text` that `mark` starts with.
std::size_t held_bytes(std::string_view text, std::string_view mark) {
  std::size_t n = std::min(mark.size() - 1, text.size());
  while (n > 0 && !text.ends_with(mark.substr(0, n)))
    --n;
  return n;
}

/// {"name": text, `arguments_key`: object}, perhaps with a type, and nothing else.
std::optional<tool_call> call_of(std::string_view written, const char* arguments_key) {
  const auto checked = parse_object(std::string(written));
  const auto ordered = checked.and_then([&](const auto& x) { return parse_ordered(x, written); });
  if (!ordered)
    return std::nullopt;
  const auto name = checked->find("name"), arguments = checked->find(arguments_key);
  if (name == checked->end() || !name->is_string() || arguments == checked->end() ||
      !arguments->is_object() || checked->size() != (checked->contains("type") ? 3u : 2u))
    return std::nullopt;
  return tool_call{name->get<std::string>(), (*ordered)[arguments_key].dump()};
}

} // namespace

tool_call_scanner::tool_call_scanner(tool_call_form form, std::vector<std::string> names)
    : form_(form), names_(std::move(names)) {
  check(form == tool_call_form::tagged || form == tool_call_form::bare_json,
        "calls of a known form are looked for");
}

tool_scan tool_call_scanner::push(std::string_view piece) {
  tool_scan out;
  pending_ += piece;
  if (form_ == tool_call_form::tagged)
    scan_tagged(out, false);
  else
    scan_bare(out, false);
  return out;
}

tool_scan tool_call_scanner::finish() {
  tool_scan out;
  if (form_ == tool_call_form::tagged)
    scan_tagged(out, true);
  else
    scan_bare(out, true);
  const bool blank = pending_.find_first_not_of(white_space) == std::string::npos;
  if (!(after_call_ && blank))
    out.content += pending_;
  pending_.clear();
  return out;
}

/// The first `bytes` of what is pending are text, unless they may be the white space that is
/// dropped after a call.
void tool_call_scanner::settle_text(tool_scan& out, std::size_t bytes) {
  const auto blank = pending_.find_first_not_of(white_space) >= bytes;
  if (bytes == 0 || (after_call_ && blank))
    return;
  after_call_ = false;
  out.content += std::string_view(pending_).substr(0, bytes);
  pending_.erase(0, bytes);
}

/// Takes the first `bytes`, white space and a call, off what is pending.
void tool_call_scanner::settle_call(tool_scan& out, tool_call&& call, std::size_t bytes) {
  out.calls.push_back(std::move(call));
  pending_.erase(0, bytes);
  after_call_ = true;
}

/// `over`: no more will come, so a call's closing tag may be missing.
void tool_call_scanner::scan_tagged(tool_scan& out, bool over) {
  while (!pending_.empty()) {
    if (!in_call_) {
      const auto at = pending_.find(opening_tag);
      if (at == std::string::npos)
        return settle_text(out, pending_.size() - held_bytes(pending_, opening_tag));
      settle_text(out, at);
      in_call_ = true;
      looked_at_ = pending_.find(opening_tag) + opening_tag.size();
    }
    const auto end = pending_.find(closing_tag, looked_at_);
    if (end == std::string::npos && !over) {
      looked_at_ = std::max(looked_at_, pending_.size() - (closing_tag.size() - 1));
      return;
    }
    const auto begin = pending_.find(opening_tag) + opening_tag.size();
    const auto bytes = end == std::string::npos ? pending_.size() : end + closing_tag.size();
    in_call_ = false;
    if (auto call = call_of(std::string_view(pending_).substr(begin, end - begin), "arguments"))
      settle_call(out, std::move(*call), bytes);
    else
      settle_text(out, bytes);
  }
}

/// Behind the brace that closes the object which pending_ begins with; none: it has not come.
std::optional<std::size_t> tool_call_scanner::object_end() {
  while (looked_at_ < pending_.size()) {
    const char c = pending_[looked_at_++];
    if (in_text_) {
      in_text_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '"') {
      in_text_ = true;
    } else if (c == '{') {
      ++open_braces_;
    } else if (c == '}' && --open_braces_ == 0) {
      return looked_at_;
    }
  }
  return std::nullopt;
}

void tool_call_scanner::scan_bare(tool_scan& out, bool over) {
  while (!plain_) {
    const auto first = pending_.find_first_not_of(after_call_ ? " \t\r\n;" : white_space);
    if (first == std::string::npos && !over)
      return;
    if (first == std::string::npos || pending_[first] != '{')
      break;
    if (!std::exchange(in_call_, true)) {
      looked_at_ = first;
      open_braces_ = 0;
    }
    const auto end = object_end();
    if (!end && !over)
      return;
    auto call = call_of(std::string_view(pending_).substr(first, end.value_or(first) - first),
                        "parameters");
    if (!call || std::ranges::find(names_, call->name) == names_.end())
      break;
    in_call_ = false;
    settle_call(out, std::move(*call), *end);
  }
  plain_ = true;
  settle_text(out, pending_.size());
}

} // namespace tokenrouter
