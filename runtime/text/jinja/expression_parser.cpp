#include "runtime/text/jinja/expression_parser.hpp"

#include <charconv>
#include <optional>

#include "runtime/text/jinja/expression_nodes.hpp"

namespace tokenrouter::jinja {

namespace {

expression_ptr operated(operation op, expression_ptr left, expression_ptr right,
                        std::uint32_t line) {
  auto out = node(expression_kind::arithmetic, line);
  out->operators.push_back(op);
  out->operands.push_back(std::move(left));
  out->operands.push_back(std::move(right));
  return done(std::move(out));
}

expression_ptr constant(value v, std::uint32_t line) {
  auto out = node(expression_kind::literal, line);
  out->constant = std::move(v);
  return done(std::move(out));
}

struct symbol_operation {
  std::string_view symbol;
  operation op;
};

constexpr symbol_operation sum_symbols[] = {{"+", operation::add}, {"-", operation::subtract}};
constexpr symbol_operation product_symbols[] = {{"*", operation::multiply},
                                                {"/", operation::divide},
                                                {"//", operation::floor_divide},
                                                {"%", operation::modulo}};
constexpr symbol_operation compare_symbols[] = {
    {"==", operation::equal},      {"!=", operation::unequal}, {"<", operation::less},
    {"<=", operation::less_equal}, {">", operation::greater},  {">=", operation::greater_equal}};

template <std::size_t n>
std::optional<operation> skip_operation(token_stream& tokens, const symbol_operation (&known)[n]) {
  for (const auto& [symbol, op] : known)
    if (tokens.skip_symbol(symbol))
      return op;
  return std::nullopt;
}

} // namespace

expression_ptr expression_parser::parse(bool with_condition) {
  const token_stream::level level(tokens_);
  return with_condition ? parse_condition() : parse_or();
}

expression_ptr expression_parser::parse_tuple(bool with_condition, std::string_view end_name,
                                              bool in_parentheses) {
  auto tuple = node(expression_kind::tuple, tokens_.current().line);
  bool has_comma = false;
  for (;;) {
    const bool ends = tokens_.at(token_kind::variable_end) || tokens_.at(token_kind::block_end) ||
                      tokens_.at_symbol(")") || (!end_name.empty() && tokens_.at_name(end_name));
    if (ends)
      break;
    tuple->operands.push_back(parse(with_condition));
    if (!tokens_.skip_symbol(","))
      break;
    has_comma = true;
  }
  if (!has_comma && !tuple->operands.empty())
    return std::move(tuple->operands.front());
  if (!has_comma && !in_parentheses)
    tokens_.fail("expected an expression, got " + tokens_.described());
  return done(std::move(tuple));
}

expression_ptr expression_parser::parse_condition() {
  std::uint32_t line = tokens_.current().line;
  expression_ptr out = parse_or();
  while (tokens_.skip_name("if")) {
    expression_ptr condition = parse_or();
    expression_ptr otherwise;
    if (tokens_.skip_name("else")) {
      const token_stream::level level(tokens_);
      otherwise = parse_condition();
    }
    out = joined(expression_kind::condition, line, std::move(condition), std::move(out),
                 std::move(otherwise));
    line = tokens_.current().line;
  }
  return out;
}

expression_ptr expression_parser::parse_or() {
  const std::uint32_t line = tokens_.current().line;
  expression_ptr left = parse_and();
  while (tokens_.skip_name("or"))
    left = joined(expression_kind::logical_or, line, std::move(left), parse_and());
  return left;
}

expression_ptr expression_parser::parse_and() {
  const std::uint32_t line = tokens_.current().line;
  expression_ptr left = parse_not();
  while (tokens_.skip_name("and"))
    left = joined(expression_kind::logical_and, line, std::move(left), parse_not());
  return left;
}

expression_ptr expression_parser::parse_not() {
  const std::uint32_t line = tokens_.current().line;
  if (!tokens_.skip_name("not"))
    return parse_compare();
  const token_stream::level level(tokens_);
  return joined(expression_kind::logical_not, line, parse_not());
}

expression_ptr expression_parser::parse_compare() {
  auto out = node(expression_kind::compare, tokens_.current().line);
  out->operands.push_back(parse_sum());
  for (;;) {
    if (const auto op = skip_operation(tokens_, compare_symbols)) {
      out->operators.push_back(*op);
    } else if (tokens_.skip_name("in")) {
      out->operators.push_back(operation::in);
    } else if (tokens_.at_name("not") && tokens_.look().kind == token_kind::name &&
               tokens_.look().text == "in") {
      tokens_.next();
      tokens_.next();
      out->operators.push_back(operation::not_in);
    } else {
      break;
    }
    out->operands.push_back(parse_sum());
  }
  if (out->operators.empty())
    return std::move(out->operands.front());
  return done(std::move(out));
}

expression_ptr expression_parser::parse_sum() {
  const std::uint32_t line = tokens_.current().line;
  expression_ptr left = parse_concatenation();
  while (const auto op = skip_operation(tokens_, sum_symbols))
    left = operated(*op, std::move(left), parse_concatenation(), line);
  return left;
}

expression_ptr expression_parser::parse_concatenation() {
  auto out = node(expression_kind::concatenate, tokens_.current().line);
  out->operands.push_back(parse_product());
  while (tokens_.skip_symbol("~"))
    out->operands.push_back(parse_product());
  if (out->operands.size() == 1)
    return std::move(out->operands.front());
  return done(std::move(out));
}

expression_ptr expression_parser::parse_product() {
  const std::uint32_t line = tokens_.current().line;
  expression_ptr left = parse_power();
  while (const auto op = skip_operation(tokens_, product_symbols))
    left = operated(*op, std::move(left), parse_power(), line);
  return left;
}

expression_ptr expression_parser::parse_power() {
  const std::uint32_t line = tokens_.current().line;
  expression_ptr left = parse_unary(true);
  while (tokens_.skip_symbol("**"))
    left = operated(operation::power, std::move(left), parse_unary(true), line);
  return left;
}

expression_ptr expression_parser::parse_unary(bool with_filter) {
  const std::uint32_t line = tokens_.current().line;
  const token_stream::level level(tokens_);
  expression_ptr out;
  if (tokens_.skip_symbol("-"))
    out = joined(expression_kind::negate, line, parse_unary(false));
  else if (tokens_.skip_symbol("+"))
    out = joined(expression_kind::plus, line, parse_unary(false));
  else
    out = parse_primary();
  out = parse_postfix(std::move(out));
  if (!with_filter)
    return out;
  for (;;) {
    if (tokens_.at_symbol("|"))
      out = parse_filters(std::move(out), false);
    else if (tokens_.skip_name("is"))
      out = parse_test(std::move(out));
    else if (tokens_.at_symbol("("))
      out = parse_call(std::move(out));
    else
      return out;
  }
}

expression_ptr expression_parser::parse_primary() {
  const std::uint32_t line = tokens_.current().line;
  if (tokens_.at(token_kind::name))
    return parse_name();
  if (tokens_.at(token_kind::string)) {
    std::string joined_text;
    while (tokens_.at(token_kind::string))
      joined_text += tokens_.next().text;
    return constant(value(std::move(joined_text)), line);
  }
  if (tokens_.at(token_kind::integer) || tokens_.at(token_kind::real))
    return parse_number();
  if (tokens_.skip_symbol("(")) {
    expression_ptr inner = parse_tuple(true, {}, true);
    tokens_.expect_symbol(")");
    return inner;
  }
  if (tokens_.skip_symbol("["))
    return parse_list();
  if (tokens_.skip_symbol("{"))
    return parse_dict();
  tokens_.fail("unexpected " + tokens_.described());
}

expression_ptr expression_parser::parse_name() {
  const token& found = tokens_.next();
  const std::string& name = found.text;
  if (name == "none" || name == "None")
    return constant(none{}, found.line);
  if (is_constant_name(name))
    return constant(name == "true" || name == "True", found.line);
  for (signature* macro : open_macros) {
    macro->takes_caller |= name == "caller";
    macro->takes_more_positional |= name == "varargs";
    macro->takes_more_keywords |= name == "kwargs";
  }
  auto out = node(expression_kind::name, found.line);
  out->text = name;
  return done(std::move(out));
}

expression_ptr expression_parser::parse_number() {
  const token& found = tokens_.next();
  const char* first = found.text.data();
  const char* last = first + found.text.size();
  if (found.kind == token_kind::real) {
    double number = 0;
    const auto ec = std::from_chars(first, last, number).ec;
    if (ec != std::errc{})
      tokens_.fail("the number " + found.text + " is beyond a float", found.line);
    return constant(number, found.line);
  }
  const char base = found.text.size() > 2 ? static_cast<char>(found.text[1] | 0x20) : ' ';
  const int radix = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 10;
  std::int64_t number = 0;
  const auto ec = std::from_chars(radix == 10 ? first : first + 2, last, number, radix).ec;
  if (ec != std::errc{})
    tokens_.fail("the number " + found.text + " is beyond 64 bits", found.line);
  return constant(number, found.line);
}

expression_ptr expression_parser::parse_list() {
  auto out = node(expression_kind::list, tokens_.current().line);
  while (!tokens_.skip_symbol("]")) {
    if (!out->operands.empty()) {
      tokens_.expect_symbol(",");
      if (tokens_.skip_symbol("]"))
        break;
    }
    out->operands.push_back(parse());
  }
  return done(std::move(out));
}

expression_ptr expression_parser::parse_dict() {
  auto out = node(expression_kind::dict, tokens_.current().line);
  while (!tokens_.skip_symbol("}")) {
    if (!out->operands.empty()) {
      tokens_.expect_symbol(",");
      if (tokens_.skip_symbol("}"))
        break;
    }
    out->operands.push_back(parse());
    tokens_.expect_symbol(":");
    out->operands.push_back(parse());
  }
  return done(std::move(out));
}

} // namespace tokenrouter::jinja
