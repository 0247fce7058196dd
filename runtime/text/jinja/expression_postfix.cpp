/// What stands behind an expression (subscripts, calls, filters, tests), and assignment targets.
#include "runtime/text/jinja/expression_nodes.hpp"
#include "runtime/text/jinja/expression_parser.hpp"
#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

expression_ptr expression_parser::parse_postfix(expression_ptr inner) {
  for (;;) {
    if (tokens_.at_symbol(".") || tokens_.at_symbol("["))
      inner = parse_subscript(std::move(inner));
    else if (tokens_.at_symbol("("))
      inner = parse_call(std::move(inner));
    else
      return inner;
  }
}

expression_ptr expression_parser::parse_subscript(expression_ptr inner) {
  const std::uint32_t line = tokens_.current().line;
  if (tokens_.skip_symbol("["))
    return parse_brackets(std::move(inner), line);
  tokens_.expect_symbol(".");
  if (tokens_.at(token_kind::integer))
    return joined(expression_kind::item, line, std::move(inner), parse_number());
  auto out = node(expression_kind::attribute, line);
  out->text = tokens_.expect_any_name();
  out->operands.push_back(std::move(inner));
  return done(std::move(out));
}

expression_ptr expression_parser::parse_brackets(expression_ptr inner, std::uint32_t line) {
  if (tokens_.at_symbol("]"))
    tokens_.fail("expected an expression, got ']'");
  const auto bound = [&]() -> expression_ptr {
    const bool none = tokens_.at_symbol(":") || tokens_.at_symbol("]");
    return none ? nullptr : parse();
  };
  expression_ptr first = bound();
  if (!tokens_.skip_symbol(":")) {
    if (tokens_.at_symbol(","))
      tokens_.fail("several subscripts are not supported");
    tokens_.expect_symbol("]");
    return joined(expression_kind::item, line, std::move(inner), std::move(first));
  }
  expression_ptr last = bound();
  expression_ptr step = tokens_.skip_symbol(":") ? bound() : nullptr;
  tokens_.expect_symbol("]");
  return joined(expression_kind::slice, line, std::move(inner), std::move(first), std::move(last),
                std::move(step));
}

void expression_parser::parse_arguments(expression& call) {
  const std::uint32_t line = tokens_.current().line;
  tokens_.expect_symbol("(");
  bool has_double_star = false;
  const auto in_order = [&](bool ok) {
    if (!ok)
      token_stream::fail("arguments are in the wrong order", line);
  };
  for (bool first = true; !tokens_.skip_symbol(")"); first = false) {
    if (!first) {
      tokens_.expect_symbol(",");
      if (tokens_.skip_symbol(")"))
        break;
    }
    if (tokens_.skip_symbol("*")) {
      in_order(!call.spread && !has_double_star);
      call.spread = parse();
    } else if (tokens_.skip_symbol("**")) {
      in_order(!has_double_star);
      has_double_star = true;
      call.keywords.push_back({{}, parse()});
    } else if (tokens_.at(token_kind::name) && tokens_.look().kind == token_kind::symbol &&
               tokens_.look().text == "=") {
      in_order(!has_double_star);
      std::string name = tokens_.next().text;
      tokens_.next();
      call.keywords.push_back({std::move(name), parse()});
    } else {
      in_order(!call.spread && call.keywords.empty());
      call.positional.push_back(parse());
    }
  }
}

expression_ptr expression_parser::parse_call(expression_ptr inner) {
  auto out = node(expression_kind::call, tokens_.current().line);
  out->operands.push_back(std::move(inner));
  parse_arguments(*out);
  return done(std::move(out));
}

expression_ptr expression_parser::parse_filters(expression_ptr input, bool started) {
  while (started || tokens_.skip_symbol("|")) {
    started = false;
    auto out = node(expression_kind::filter, tokens_.current().line);
    out->text = tokens_.expect_any_name();
    while (tokens_.skip_symbol("."))
      out->text += "." + tokens_.expect_any_name();
    if (branch_levels == 0 && !find_filter(out->text))
      token_stream::fail(unknown_filter(out->text), out->line);
    out->operands.push_back(std::move(input));
    if (tokens_.at_symbol("("))
      parse_arguments(*out);
    input = done(std::move(out));
  }
  return input;
}

expression_ptr expression_parser::parse_test(expression_ptr inner) {
  auto out = node(expression_kind::test, tokens_.current().line);
  const bool negated = tokens_.skip_name("not");
  out->text = tokens_.expect_any_name();
  while (tokens_.skip_symbol("."))
    out->text += "." + tokens_.expect_any_name();
  if (branch_levels == 0 && !find_test(out->text))
    token_stream::fail(unknown_test(out->text), out->line);
  out->operands.push_back(std::move(inner));
  const bool has_argument = (tokens_.at(token_kind::name) && !tokens_.at_name("else") &&
                             !tokens_.at_name("or") && !tokens_.at_name("and")) ||
                            tokens_.at(token_kind::string) || tokens_.at(token_kind::integer) ||
                            tokens_.at(token_kind::real) || tokens_.at_symbol("[") ||
                            tokens_.at_symbol("{");
  if (tokens_.at_symbol("(")) {
    parse_arguments(*out);
  } else if (has_argument) {
    if (tokens_.at_name("is"))
      tokens_.fail("tests can't be chained with 'is'");
    out->positional.push_back(parse_postfix(parse_primary()));
  }
  const std::uint32_t line = out->line;
  expression_ptr test = done(std::move(out));
  return negated ? joined(expression_kind::logical_not, line, std::move(test)) : std::move(test);
}

std::string expression_parser::parse_target_name() {
  std::string name = tokens_.expect_any_name();
  if (is_constant_name(name))
    tokens_.fail("can't assign to '" + name + "'");
  return name;
}

target expression_parser::parse_target_part(bool with_namespace) {
  const token_stream::level level(tokens_);
  target out;
  out.line = tokens_.current().line;
  if (tokens_.skip_symbol("(")) {
    out = parse_target(with_namespace);
    tokens_.expect_symbol(")");
    return out;
  }
  out.name = parse_target_name();
  if (with_namespace && tokens_.skip_symbol("."))
    out.attribute = tokens_.expect_any_name();
  return out;
}

target expression_parser::parse_target(bool with_namespace, std::string_view end_name) {
  target out;
  out.line = tokens_.current().line;
  for (;;) {
    const bool ends = tokens_.at(token_kind::block_end) || tokens_.at_symbol(")") ||
                      (!end_name.empty() && tokens_.at_name(end_name));
    if (ends)
      break;
    out.parts.push_back(parse_target_part(with_namespace));
    if (!tokens_.skip_symbol(","))
      break;
    out.is_tuple = true;
  }
  if (out.parts.empty())
    tokens_.fail("expected a name to assign to, got " + tokens_.described());
  if (out.is_tuple)
    return out;
  target only = std::move(out.parts.front());
  return only;
}

} // namespace tokenrouter::jinja
