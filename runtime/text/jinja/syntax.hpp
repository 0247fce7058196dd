#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/jinja/value.hpp"

/// A template's syntax tree.
namespace tokenrouter::jinja {

struct expression;
using expression_ptr = std::unique_ptr<const expression>;

enum class expression_kind : std::uint8_t {
  literal,     ///< constant
  name,        ///< text
  attribute,   ///< operands[0].text
  item,        ///< operands[0][operands[1]]
  slice,       ///< operands[0][operands[1]:operands[2]:operands[3]], any of the three null
  call,        ///< operands[0](arguments)
  filter,      ///< operands[0]|text(arguments); operands[0] is null in a filter block
  test,        ///< operands[0] is text(arguments)
  list,        ///< [operands…]
  tuple,       ///< (operands…)
  dict,        ///< {operands[0]: operands[1], …}
  negate,      ///< -operands[0]
  plus,        ///< +operands[0]
  logical_not, ///< not operands[0]
  logical_and,
  logical_or,
  arithmetic,  ///< operands[0] operators[0] operands[1]
  concatenate, ///< operands… joined by ~
  compare,     ///< operands[0] operators[0] operands[1] operators[1] …
  condition,   ///< operands[1] if operands[0] else operands[2], which may be null
};

enum class operation : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct keyword_argument {
  std::string name; ///< empty: `**given`
  expression_ptr given;
};

struct expression {
  expression_kind kind = expression_kind::literal;
  std::uint32_t line = 0;
  std::uint32_t depth = 1;
  std::string text;
  value constant;
  std::vector<expression_ptr> operands;
  std::vector<operation> operators;
  std::vector<expression_ptr> positional; ///< of a call, filter or test
  std::vector<keyword_argument> keywords;
  expression_ptr spread; ///< `*given`, behind the positional ones
};

/// Where `set` and `for` put values: a name, an attribute of a namespace, or several of them.
struct target {
  std::uint32_t line = 0;
  std::string name;
  std::string attribute;     ///< of the namespace `name`; empty if none
  std::vector<target> parts; ///< of a tuple
  bool is_tuple = false;
};

struct statement;
using block = std::vector<std::unique_ptr<const statement>>;

enum class statement_kind : std::uint8_t {
  data,   ///< text
  print,  ///< value
  branch, ///< arms
  loop,   ///< for into in value if condition: body, else otherwise
  set,    ///< into = value
  set_block,
  macro,
  call_block, ///< value is the call, signature its caller's
  filter_block,
  with,       ///< assignments, body
  generation, ///< body
  leave_loop,
  next_round,
};

struct parameter {
  std::string name;
  expression_ptr fallback; ///< null: none
};

/// What a macro or a caller takes.
struct signature {
  std::vector<parameter> parameters;
  bool takes_more_positional = false; ///< the body mentions `varargs`
  bool takes_more_keywords = false;   ///< the body mentions `kwargs`
  bool takes_caller = false;          ///< the body mentions `caller`
};

struct arm {
  expression_ptr condition; ///< null: else
  block body;
};

struct statement {
  statement_kind kind = statement_kind::data;
  std::uint32_t line = 0;
  std::string text; ///< data; a macro's name
  target into;
  expression_ptr given;
  expression_ptr condition;
  block body;
  block otherwise;
  std::vector<arm> arms;
  std::vector<std::pair<target, expression_ptr>> assignments;
  signature takes;
};

} // namespace tokenrouter::jinja
