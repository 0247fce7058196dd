#pragma once

#include "runtime/text/jinja/syntax.hpp"
#include "runtime/text/jinja/token_stream.hpp"

/// How parsers make expressions.
namespace tokenrouter::jinja {

std::unique_ptr<expression> node(expression_kind kind, std::uint32_t line);

/// Ends the making of a node: it counts how deep it is. Fault: malformed, if that is too deep.
expression_ptr done(std::unique_ptr<expression> made);

template <class... Operands>
expression_ptr joined(expression_kind kind, std::uint32_t line, Operands... operands) {
  auto out = node(kind, line);
  (out->operands.push_back(std::move(operands)), ...);
  return done(std::move(out));
}

/// Whether a name is a constant's, such as none; nothing can be assigned to it.
bool is_constant_name(std::string_view name);

} // namespace tokenrouter::jinja
