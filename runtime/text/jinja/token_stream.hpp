#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/jinja/lexer.hpp"

namespace tokenrouter::jinja {

/// A cursor over a template's tokens, with what parsers ask of it. Faults: malformed.
class token_stream {
 public:
  /// Requires tokens ended by one of kind `end`.
  explicit token_stream(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

  const token& current() const { return tokens_[at_]; }
  const token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  /// The current token, passed.
  const token& next();

  bool at(token_kind kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return is(current(), token_kind::name, name); }
  bool at_symbol(std::string_view symbol) const {
    return is(current(), token_kind::symbol, symbol);
  }

  /// Passes the token if it is the one.
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);

  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  void expect(token_kind kind);
  std::string expect_any_name();

  [[noreturn]] void fail(std::string what) const { fail(std::move(what), current().line); }
  [[noreturn]] static void fail(std::string what, std::uint32_t line);

  /// The current token in words.
  std::string described() const;

  /// Counts a level of nesting while it lives.
  class level {
   public:
    explicit level(token_stream& stream);
    ~level() { --stream_.depth_; }
    level(const level&) = delete;
    level& operator=(const level&) = delete;

   private:
    token_stream& stream_;
  };

 private:
  static bool is(const token& t, token_kind kind, std::string_view text) {
    return t.kind == kind && t.text == text;
  }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
};

} // namespace tokenrouter::jinja
