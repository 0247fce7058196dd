#include "runtime/text/jinja/lexer.hpp"

#include <algorithm>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/fault.hpp"

namespace tokenrouter::jinja {

namespace {

bool is_digit_char(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit_char(c) || c == '_';
}

/// Line breaks as \n; without one at the end.
std::string unix_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      i += source.substr(i + 1, 1) == "\n";
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n'))
    out.pop_back();
  return out;
}

class lexer {
 public:
  explicit lexer(std::string_view source) : source_(source) {}

  std::vector<token> run() {
    try {
      while (at_ < source_.size())
        take_text_and_tag();
    } catch (fault& f) {
      f.line = f.line != 0 ? f.line : line_;
      throw;
    }
    add(token_kind::end, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  bool at(std::string_view what) const { return rest().starts_with(what); }

  void add(token_kind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void advance(std::size_t bytes) {
    const auto passed = source_.substr(at_, bytes);
    line_ += static_cast<std::uint32_t>(std::ranges::count(passed, '\n'));
    line_starting_ = passed.ends_with('\n');
    at_ += bytes;
  }

  void skip_white() {
    const auto stripped = strip_left(rest());
    if (stripped.size() < rest().size())
      advance(rest().size() - stripped.size());
  }

  /// Text up to the next tag, cut as the tag's sign says, then the tag.
  void take_text_and_tag() {
    std::size_t open = at_;
    for (;; ++open) {
      open = source_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= source_.size()) {
        open = source_.size();
        break;
      }
      const char next = source_[open + 1];
      if (next == '%' || next == '{' || next == '#')
        break;
    }
    std::string_view text = source_.substr(at_, open - at_);
    if (open < source_.size()) {
      const char sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
      if (sign == '-') {
        text = strip_right(text);
      } else if (sign != '+' && source_[open + 1] != '{') {
        const std::size_t line_start = text.rfind('\n') + 1;
        if ((line_start > 0 || line_starting_) && strip_left(text.substr(line_start)).empty())
          text = text.substr(0, line_start);
      }
    }
    if (!text.empty())
      add(token_kind::data, std::string(text));
    advance(open - at_);
    if (at_ < source_.size())
      take_tag();
  }

  void take_tag() {
    const char kind = source_[at_ + 1];
    advance(2);
    if (at("-") || at("+"))
      advance(1);
    if (kind == '#')
      return skip_comment();
    if (kind == '%' && take_raw())
      return;
    const bool block = kind == '%';
    add(block ? token_kind::block_begin : token_kind::variable_begin, {});
    std::string closers;
    for (;;) {
      skip_white();
      if (at_ >= source_.size())
        raise("the template ends inside a tag");
      if (closers.empty() && take_tag_end(block))
        return;
      take_token(closers);
    }
  }

  bool take_tag_end(bool block) {
    const std::string_view mark = block ? "%}" : "}}";
    const bool strips = at(block ? "-%}" : "-}}");
    const bool keeps = block && at("+%}");
    if (!strips && !keeps && !at(mark))
      return false;
    add(block ? token_kind::block_end : token_kind::variable_end, {});
    advance(strips || keeps ? 3 : 2);
    after_tag(strips, block && !keeps);
    return true;
  }

  void after_tag(bool strips, bool trims_line_break) {
    if (strips)
      skip_white();
    else if (trims_line_break && at("\n"))
      advance(1);
  }

  void skip_comment() {
    const std::size_t close = rest().find("#}");
    if (close == std::string_view::npos)
      raise("a comment is not closed");
    const char sign = close > 0 ? rest()[close - 1] : ' ';
    advance(close + 2);
    after_tag(sign == '-', sign != '+');
  }

  /// Requires that `{%` and its sign were passed. Takes a raw block, if this is one, as text.
  bool take_raw() {
    std::string_view tail = strip_left(rest());
    if (!tail.starts_with("raw"))
      return false;
    tail = strip_left(tail.substr(3));
    const bool strips = tail.starts_with("-%}");
    if (!strips && !tail.starts_with("%}"))
      return false;
    advance(rest().size() - tail.size() + (strips ? 3 : 2));
    after_tag(strips, false);
    for (std::size_t open = at_; (open = source_.find("{%", open)) != std::string_view::npos;
         ++open) {
      const std::size_t word = open + 2;
      const bool signed_tag =
          word < source_.size() && (source_[word] == '-' || source_[word] == '+');
      tail = strip_left(source_.substr(word + (signed_tag ? 1 : 0)));
      if (!tail.starts_with("endraw"))
        continue;
      tail = strip_left(tail.substr(6));
      const bool end_strips = tail.starts_with("-%}");
      const bool end_keeps = tail.starts_with("+%}");
      if (!end_strips && !end_keeps && !tail.starts_with("%}"))
        continue;
      take_raw_text(open, signed_tag ? source_[word] : ' ');
      advance(static_cast<std::size_t>(tail.data() - source_.data()) - at_ +
              (end_strips || end_keeps ? 3 : 2));
      after_tag(end_strips, !end_keeps);
      return true;
    }
    raise("a raw block is not closed");
  }

  void take_raw_text(std::size_t open, char sign) {
    std::string_view text = source_.substr(at_, open - at_);
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign != '+') {
      const std::size_t line_start = text.rfind('\n') + 1;
      if ((line_start > 0 || line_starting_) && strip_left(text.substr(line_start)).empty())
        text = text.substr(0, line_start);
    }
    if (!text.empty())
      add(token_kind::data, std::string(text));
    advance(open - at_);
  }

  void take_token(std::string& closers) {
    const char c = source_[at_];
    if (is_digit_char(c))
      return take_number();
    if (is_name_char(c)) {
      std::size_t bytes = 1;
      while (at_ + bytes < source_.size() && is_name_char(source_[at_ + bytes]))
        ++bytes;
      add(token_kind::name, std::string(rest().substr(0, bytes)));
      return advance(bytes);
    }
    if (c == '\'' || c == '"')
      return take_string(c);
    take_symbol(closers);
  }

  void take_string(char quote) {
    std::size_t bytes = 1;
    while (at_ + bytes < source_.size() && source_[at_ + bytes] != quote)
      bytes += source_[at_ + bytes] == '\\' ? 2 : 1;
    if (at_ + bytes >= source_.size())
      raise("a string is not closed");
    add(token_kind::string, unescape(source_.substr(at_ + 1, bytes - 1)));
    advance(bytes + 1);
  }

  /// Digits from `from` on, with single underscores between them; where they end.
  std::size_t digits_end(std::size_t from) const {
    std::size_t end = from;
    while (end < source_.size() && (is_digit_char(source_[end]) ||
                                    (source_[end] == '_' && end > from &&
                                     end + 1 < source_.size() && is_digit_char(source_[end + 1]))))
      ++end;
    return end;
  }

  void take_number() {
    const auto has_digit = [&](std::size_t i) {
      return i < source_.size() && is_digit_char(source_[i]);
    };
    std::size_t end = digits_end(at_);
    token_kind kind = token_kind::integer;
    if (at_ == 0 || source_[at_ - 1] != '.') { // the 0 in a.0.5 is an attribute
      if (source_.substr(end, 1) == "." && has_digit(end + 1)) {
        kind = token_kind::real;
        end = digits_end(end + 1);
      }
      if (end < source_.size() && (source_[end] | 0x20) == 'e') {
        const bool is_signed =
            end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
        const std::size_t exponent = end + (is_signed ? 2 : 1);
        if (has_digit(exponent)) {
          kind = token_kind::real;
          end = digits_end(exponent);
        }
      }
    }
    if (kind == token_kind::integer)
      end = integer_end(end);
    std::string digits(source_.substr(at_, end - at_));
    std::erase(digits, '_');
    add(kind, std::move(digits));
    advance(end - at_);
  }

  std::size_t integer_end(std::size_t decimal_end) const {
    if (source_[at_] != '0')
      return decimal_end;
    const char base = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : ' ';
    const std::string_view digits = base == 'x'   ? "0123456789abcdefABCDEF_"
                                    : base == 'o' ? "01234567_"
                                    : base == 'b' ? "01_"
                                                  : "";
    std::size_t end = digits.empty() ? at_ : source_.find_first_not_of(digits, at_ + 2);
    end = std::min(end, source_.size());
    if (!digits.empty() && end > at_ + 2)
      return end;
    return std::min(source_.find_first_not_of('0', at_), decimal_end);
  }

  void take_symbol(std::string& closers) {
    static constexpr std::string_view symbols[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::ranges::find_if(symbols, [&](auto s) { return at(s); });
    if (found == std::end(symbols))
      raise("unexpected character '" + std::string(rest().substr(0, byte_offset(rest(), 1))) + "'");
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      closers += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (closers.empty() || closers.back() != c)
        raise("unexpected '" + std::string(1, c) + "'");
      closers.pop_back();
    }
    add(token_kind::symbol, std::string(*found));
    advance(found->size());
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<token> tokens_;
};

} // namespace

std::vector<token> tokenize(std::string_view source) {
  const std::string lines = unix_lines(source);
  return lexer(lines).run();
}

} // namespace tokenrouter::jinja
