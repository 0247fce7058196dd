#include "runtime/text/jinja/parser.hpp"

#include <algorithm>
#include <initializer_list>

#include "runtime/text/jinja/expression_parser.hpp"

namespace tokenrouter::jinja {

namespace {

using names = std::initializer_list<std::string_view>;

class parser {
 public:
  explicit parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  block run() { return parse_block({}); }

 private:
  std::unique_ptr<statement> made(statement_kind kind) const {
    auto out = std::make_unique<statement>();
    out->kind = kind;
    out->line = tokens_.current().line;
    return out;
  }

  /// Statements up to a tag that begins with one of `ends`, whose name is then the current token;
  /// without `ends`, up to the template's end.
  block parse_block(names ends) {
    const token_stream::level level(tokens_);
    block out;
    const std::uint32_t line = tokens_.current().line;
    while (!tokens_.at(token_kind::end)) {
      if (tokens_.at(token_kind::data)) {
        auto text = made(statement_kind::data);
        text->text = tokens_.next().text;
        out.push_back(std::move(text));
      } else if (tokens_.at(token_kind::variable_begin)) {
        tokens_.next();
        auto print = made(statement_kind::print);
        print->given = expressions_.parse_tuple();
        tokens_.expect(token_kind::variable_end);
        out.push_back(std::move(print));
      } else {
        tokens_.expect(token_kind::block_begin);
        if (std::ranges::any_of(ends, [&](auto name) { return tokens_.at_name(name); }))
          return out;
        out.push_back(parse_tag());
        tokens_.expect(token_kind::block_end);
      }
    }
    if (ends.size() > 0)
      token_stream::fail(
          "the block that begins here lacks its '" + std::string(*(ends.end() - 1)) + "'", line);
    return out;
  }

  /// A tag's end and the block behind it; the tag that ends the block is passed up to its name.
  block parse_body(names ends) {
    tokens_.skip_symbol(":");
    tokens_.expect(token_kind::block_end);
    return parse_block(ends);
  }

  /// The same, for a block that takes `break` and `continue` of no loop around it.
  block parse_closed_body(std::string_view end) {
    const std::uint32_t loops = std::exchange(loop_levels_, 0);
    block out = parse_body({end});
    tokens_.next();
    loop_levels_ = loops;
    return out;
  }

  std::unique_ptr<const statement> parse_tag() {
    if (!tokens_.at(token_kind::name))
      tokens_.fail("expected a tag's name, got " + tokens_.described());
    const std::string& name = tokens_.current().text;
    if (name == "if")
      return parse_if();
    if (name == "for")
      return parse_for();
    if (name == "set")
      return parse_set();
    if (name == "macro")
      return parse_macro();
    if (name == "call")
      return parse_call_block();
    if (name == "filter")
      return parse_filter_block();
    if (name == "with")
      return parse_with();
    if (name == "generation")
      return parse_generation();
    if (name == "break" || name == "continue")
      return parse_jump();
    if (name == "print")
      return parse_print();
    tokens_.fail("the tag '" + name + "' is not known or not supported");
  }

  std::unique_ptr<const statement> parse_if() {
    auto out = made(statement_kind::branch);
    ++expressions_.branch_levels;
    tokens_.next();
    for (;;) {
      arm one;
      one.condition = expressions_.parse_tuple(false);
      one.body = parse_body({"elif", "else", "endif"});
      out->arms.push_back(std::move(one));
      if (!tokens_.skip_name("elif"))
        break;
    }
    if (tokens_.skip_name("else")) {
      arm otherwise;
      otherwise.body = parse_body({"endif"});
      out->arms.push_back(std::move(otherwise));
    }
    tokens_.next();
    --expressions_.branch_levels;
    return out;
  }

  std::unique_ptr<const statement> parse_for() {
    auto out = made(statement_kind::loop);
    tokens_.next();
    out->into = expressions_.parse_target(false, "in");
    tokens_.expect_name("in");
    out->given = expressions_.parse_tuple(false, "recursive");
    if (tokens_.skip_name("if"))
      out->condition = expressions_.parse();
    if (tokens_.at_name("recursive"))
      tokens_.fail("a recursive loop is not supported");
    ++loop_levels_;
    out->body = parse_body({"endfor", "else"});
    --loop_levels_;
    if (tokens_.skip_name("else"))
      out->otherwise = parse_body({"endfor"});
    tokens_.next();
    return out;
  }

  std::unique_ptr<const statement> parse_set() {
    auto out = made(statement_kind::set);
    tokens_.next();
    out->into = expressions_.parse_target(true);
    if (tokens_.skip_symbol("=")) {
      out->given = expressions_.parse_tuple();
      return out;
    }
    out->kind = statement_kind::set_block;
    out->given = expressions_.parse_filters(nullptr, false);
    out->body = parse_closed_body("endset");
    return out;
  }

  void parse_signature(signature& into) {
    tokens_.expect_symbol("(");
    for (bool first = true; !tokens_.skip_symbol(")"); first = false) {
      if (!first)
        tokens_.expect_symbol(",");
      parameter one;
      one.name = expressions_.parse_target_name();
      if (tokens_.skip_symbol("="))
        one.fallback = expressions_.parse();
      else if (!into.parameters.empty() && into.parameters.back().fallback)
        tokens_.fail("a parameter without a default follows one with a default");
      into.parameters.push_back(std::move(one));
    }
  }

  block parse_macro_body(signature& takes, std::string_view end) {
    expressions_.open_macros.push_back(&takes);
    block out = parse_closed_body(end);
    expressions_.open_macros.pop_back();
    return out;
  }

  std::unique_ptr<const statement> parse_macro() {
    auto out = made(statement_kind::macro);
    tokens_.next();
    out->text = expressions_.parse_target_name();
    parse_signature(out->takes);
    out->body = parse_macro_body(out->takes, "endmacro");
    return out;
  }

  std::unique_ptr<const statement> parse_call_block() {
    auto out = made(statement_kind::call_block);
    tokens_.next();
    if (tokens_.at_symbol("("))
      parse_signature(out->takes);
    out->given = expressions_.parse();
    if (out->given->kind != expression_kind::call)
      tokens_.fail("expected a call");
    out->body = parse_macro_body(out->takes, "endcall");
    return out;
  }

  std::unique_ptr<const statement> parse_filter_block() {
    auto out = made(statement_kind::filter_block);
    tokens_.next();
    out->given = expressions_.parse_filters(nullptr, true);
    out->body = parse_closed_body("endfilter");
    return out;
  }

  std::unique_ptr<const statement> parse_with() {
    auto out = made(statement_kind::with);
    tokens_.next();
    while (!tokens_.at(token_kind::block_end) && !tokens_.at_symbol(":")) {
      if (!out->assignments.empty())
        tokens_.expect_symbol(",");
      target into;
      into.line = tokens_.current().line;
      into.name = expressions_.parse_target_name();
      tokens_.expect_symbol("=");
      expression_ptr given = expressions_.parse();
      out->assignments.emplace_back(std::move(into), std::move(given));
    }
    out->body = parse_body({"endwith"});
    tokens_.next();
    return out;
  }

  std::unique_ptr<const statement> parse_generation() {
    auto out = made(statement_kind::generation);
    tokens_.next();
    out->body = parse_closed_body("endgeneration");
    return out;
  }

  std::unique_ptr<const statement> parse_jump() {
    auto out =
        made(tokens_.at_name("break") ? statement_kind::leave_loop : statement_kind::next_round);
    if (loop_levels_ == 0)
      tokens_.fail("'" + tokens_.current().text + "' is outside a loop");
    tokens_.next();
    return out;
  }

  std::unique_ptr<const statement> parse_print() {
    auto out = made(statement_kind::print);
    tokens_.next();
    out->given = expressions_.parse();
    return out;
  }

  token_stream tokens_;
  expression_parser expressions_;
  std::uint32_t loop_levels_ = 0;
};

} // namespace

block parse_template(std::string_view source) {
  if (source.size() > source_bytes_max)
    throw fault{errc::malformed, "the template is too long"};
  return parser(source).run();
}

} // namespace tokenrouter::jinja
