#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/text/jinja/syntax.hpp"
#include "runtime/text/jinja/token_stream.hpp"

namespace tokenrouter::jinja {

/// Parses expressions as Jinja2 3.1 does. Faults: malformed.
class expression_parser {
 public:
  explicit expression_parser(token_stream& tokens) : tokens_(tokens) {}

  expression_ptr parse(bool with_condition = true);

  /// Expressions with commas between them are a tuple. `end_name`: a name that ends it too.
  expression_ptr parse_tuple(bool with_condition = true, std::string_view end_name = {},
                             bool in_parentheses = false);

  /// The filters behind `input`, which may be null (a filter block); null if there are none then.
  /// `started`: the first one's `|` is left out.
  expression_ptr parse_filters(expression_ptr input, bool started);

  target parse_target(bool with_namespace, std::string_view end_name = {});
  std::string parse_target_name();

  /// While it is not 0, unknown filters and tests fail only when they run.
  std::uint32_t branch_levels = 0;
  /// They are told which special names their bodies mention, macros within them included.
  std::vector<signature*> open_macros;

 private:
  expression_ptr parse_condition();
  expression_ptr parse_or();
  expression_ptr parse_and();
  expression_ptr parse_not();
  expression_ptr parse_compare();
  expression_ptr parse_sum();
  expression_ptr parse_concatenation();
  expression_ptr parse_product();
  expression_ptr parse_power();
  expression_ptr parse_unary(bool with_filter);
  expression_ptr parse_primary();
  expression_ptr parse_name();
  expression_ptr parse_number();
  expression_ptr parse_list();
  expression_ptr parse_dict();
  expression_ptr parse_postfix(expression_ptr inner);
  expression_ptr parse_subscript(expression_ptr inner);
  expression_ptr parse_brackets(expression_ptr inner, std::uint32_t line);
  expression_ptr parse_call(expression_ptr inner);
  expression_ptr parse_test(expression_ptr inner);
  void parse_arguments(expression& call);
  target parse_target_part(bool with_namespace);

  token_stream& tokens_;
};

} // namespace tokenrouter::jinja
