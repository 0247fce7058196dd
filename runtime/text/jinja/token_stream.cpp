#include "runtime/text/jinja/token_stream.hpp"

#include "runtime/text/jinja/fault.hpp"

namespace tokenrouter::jinja {

const token& token_stream::next() {
  const token& passed = tokens_[at_];
  if (passed.kind != token_kind::end)
    ++at_;
  return passed;
}

bool token_stream::skip_name(std::string_view name) {
  const bool found = at_name(name);
  if (found)
    next();
  return found;
}

bool token_stream::skip_symbol(std::string_view symbol) {
  const bool found = at_symbol(symbol);
  if (found)
    next();
  return found;
}

void token_stream::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol))
    fail("expected '" + std::string(symbol) + "', got " + described());
}

void token_stream::expect_name(std::string_view name) {
  if (!skip_name(name))
    fail("expected '" + std::string(name) + "', got " + described());
}

void token_stream::expect(token_kind kind) {
  if (!at(kind))
    fail("expected the end of the tag, got " + described());
  next();
}

std::string token_stream::expect_any_name() {
  if (!at(token_kind::name))
    fail("expected a name, got " + described());
  return next().text;
}

void token_stream::fail(std::string what, std::uint32_t line) {
  throw fault{errc::malformed, std::move(what), line};
}

std::string token_stream::described() const {
  switch (current().kind) {
  case token_kind::data:
    return "text";
  case token_kind::variable_begin:
    return "'{{'";
  case token_kind::block_begin:
    return "'{%'";
  case token_kind::variable_end:
  case token_kind::block_end:
    return "the end of the tag";
  case token_kind::string:
    return "a string";
  case token_kind::end:
    return "the end of the template";
  default:
    return "'" + current().text + "'";
  }
}

token_stream::level::level(token_stream& stream) : stream_(stream) {
  if (stream.depth_ >= syntax_depth_max)
    stream.fail("the template is nested too deeply");
  ++stream.depth_;
}

} // namespace tokenrouter::jinja
