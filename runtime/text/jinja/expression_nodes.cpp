#include "runtime/text/jinja/expression_nodes.hpp"

#include <algorithm>

namespace tokenrouter::jinja {

std::unique_ptr<expression> node(expression_kind kind, std::uint32_t line) {
  auto out = std::make_unique<expression>();
  out->kind = kind;
  out->line = line;
  return out;
}

expression_ptr done(std::unique_ptr<expression> made) {
  std::uint32_t depth = 0;
  const auto count = [&](const expression_ptr& inner) {
    if (inner)
      depth = std::max(depth, inner->depth);
  };
  std::ranges::for_each(made->operands, count);
  std::ranges::for_each(made->positional, count);
  for (const auto& keyword : made->keywords)
    count(keyword.given);
  count(made->spread);
  made->depth = depth + 1;
  if (made->depth > syntax_depth_max)
    token_stream::fail("an expression is nested too deeply", made->line);
  return made;
}

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

} // namespace tokenrouter::jinja
