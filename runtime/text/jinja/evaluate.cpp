#include <algorithm>

#include "runtime/text/jinja/characters.hpp"
#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/operators.hpp"
#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

namespace {

std::string described(const value& v) {
  if (v.is_none())
    return "None";
  return std::string(type_name(v)) + " object";
}

value no_attribute(const value& of, const std::string& name) {
  return make_undefined("'" + described(of) + "' has no attribute '" + name + "'");
}

value loop_attribute(const loop_state& loop, const std::string& name, const value& self) {
  const auto number = [](std::size_t n) { return value(static_cast<std::int64_t>(n)); };
  const std::size_t count = loop.items.size(), at = loop.index0;
  if (name == "index")
    return number(at + 1);
  if (name == "index0")
    return number(at);
  if (name == "revindex")
    return number(count - at);
  if (name == "revindex0")
    return number(count - at - 1);
  if (name == "first")
    return at == 0;
  if (name == "last")
    return at + 1 == count;
  if (name == "length")
    return number(count);
  if (name == "depth")
    return number(1);
  if (name == "depth0")
    return number(0);
  if (name == "previtem")
    return at > 0 ? loop.items[at - 1] : make_undefined("there is no previous item");
  if (name == "nextitem")
    return at + 1 < count ? loop.items[at + 1] : make_undefined("there is no next item");
  return find_method(self, name);
}

/// The item of a list or text at an index that may count from the end; null if it is not there.
const value* item_at(const std::vector<value>& items, std::int64_t index) {
  const auto count = static_cast<std::int64_t>(items.size());
  const std::int64_t at = index < 0 ? index + count : index;
  return at >= 0 && at < count ? &items[static_cast<std::size_t>(at)] : nullptr;
}

} // namespace

value interpreter::attribute(const value& of, const std::string& name) {
  if (const auto* u = of.get<undefined>())
    raise(*u->why);
  if (const auto* ns = of.get<std::shared_ptr<name_space>>()) {
    for (const auto& [known, v] : (*ns)->attributes)
      if (known == name)
        return v;
    return no_attribute(of, name);
  }
  if (const auto* loop = of.get<std::shared_ptr<loop_state>>())
    return loop_attribute(**loop, name, of);
  value method = find_method(of, name);
  if (!method.is_undefined() || !of.map())
    return method;
  const value* held = find(*of.map(), value(name), work_);
  return held ? *held : method;
}

value interpreter::item(const value& of, const value& key) {
  if (const auto* u = of.get<undefined>())
    raise(*u->why);
  if (const auto* map = of.map()) {
    const bool hashable = !key.map() && !(key.seq() && key.seq()->form == sequence_form::list);
    if (const value* held = hashable ? find(*map, key, work_) : nullptr)
      return *held;
  } else if (const auto index = key.integer()) {
    const auto* list = of.seq();
    if (list && list->form != sequence_form::view && list->form != sequence_form::iterator) {
      if (const value* held = item_at(list->items, *index))
        return *held;
    } else if (of.is_text()) {
      const value bound(*index);
      const value past(*index + 1);
      const value one = sliced(of, &bound, *index == -1 ? nullptr : &past, nullptr, work_);
      if (one.truth() && character_count(one.str()) == 1)
        return one;
    }
  }
  if (key.is_text())
    return of.map() ? find_method(of, key.str()) : attribute(of, key.str());
  return make_undefined(described(of) + " has no element " + to_str(key, work_));
}

value interpreter::call(const value& callee, call_args& args) {
  if (const auto* u = callee.get<undefined>())
    raise(*u->why);
  const auto* held = callee.get<std::shared_ptr<const callable>>();
  if (!held)
    raise("'" + std::string(type_name(callee)) + "' object is not callable");
  // The callee may go out of scope while it runs.
  const std::shared_ptr<const callable> kept = *held;
  return kept->run(*this, args);
}

value interpreter::filtered(const std::string& filter, const value& input, call_args& args) {
  const auto run = find_filter(filter);
  if (!run)
    raise(unknown_filter(filter));
  return run(*this, input, args);
}

bool interpreter::tested(const std::string& test, const value& input, call_args& args) {
  const auto run = find_test(test);
  if (!run)
    raise(unknown_test(test));
  return run(*this, input, args);
}

value interpreter::evaluate_name(const expression& e, const scope_ptr& in) {
  if (const value* held = in->find(e.text))
    return *held;
  return find_global(e.text);
}

call_args interpreter::evaluate_arguments(const expression& e, const scope_ptr& in) {
  call_args out;
  for (const auto& one : e.positional)
    out.positional.push_back(evaluate(*one, in));
  if (e.spread) {
    for (value& one : iterate(evaluate(*e.spread, in), work_))
      out.positional.push_back(std::move(one));
  }
  for (const auto& [name, given] : e.keywords) {
    value v = evaluate(*given, in);
    if (!name.empty()) {
      out.keywords.emplace_back(name, std::move(v));
      continue;
    }
    if (!v.map())
      raise("argument after ** must be a mapping, not " + std::string(type_name(v)));
    for (const auto& [key, held] : v.map()->entries) {
      if (!key.is_text())
        raise("keywords must be strings");
      out.keywords.emplace_back(key.str(), held);
    }
  }
  for (std::size_t i = 0; i < out.keywords.size(); ++i) {
    work_.spend(1 + i / 8);
    for (std::size_t j = 0; j < i; ++j)
      if (out.keywords[i].first == out.keywords[j].first)
        raise("the keyword argument '" + out.keywords[i].first + "' is given twice");
  }
  return out;
}

value interpreter::evaluate_call(const expression& e, const scope_ptr& in, const value* caller) {
  const value callee = evaluate(*e.operands[0], in);
  call_args args = evaluate_arguments(e, in);
  if (caller)
    args.keywords.emplace_back("caller", *caller);
  line_ = e.line;
  value out = call(callee, args);
  line_ = e.line;
  return out;
}

value interpreter::evaluate_filter(const expression& e, const scope_ptr& in,
                                   const value* block_input) {
  const expression* inner = e.operands[0].get();
  const value input = !inner ? *block_input
                      : block_input && inner->kind == expression_kind::filter
                          ? evaluate_filter(*inner, in, block_input)
                          : evaluate(*inner, in);
  call_args args = evaluate_arguments(e, in);
  line_ = e.line;
  return filtered(e.text, input, args);
}

value interpreter::evaluate_slice(const expression& e, const scope_ptr& in) {
  const value from = evaluate(*e.operands[0], in);
  value bounds[3];
  for (std::size_t i = 0; i < 3; ++i)
    if (e.operands[i + 1])
      bounds[i] = evaluate(*e.operands[i + 1], in);
  return sliced(from, &bounds[0], &bounds[1], &bounds[2], work_);
}

value interpreter::evaluate_items(const expression& e, const scope_ptr& in, sequence_form form) {
  std::vector<value> items;
  items.reserve(e.operands.size());
  for (const auto& one : e.operands)
    items.push_back(evaluate(*one, in));
  return make_sequence(std::move(items), form);
}

value interpreter::evaluate_dict(const expression& e, const scope_ptr& in) {
  mapping out;
  for (std::size_t i = 0; i + 1 < e.operands.size(); i += 2) {
    value key = evaluate(*e.operands[i], in);
    value held = evaluate(*e.operands[i + 1], in);
    if (const value* old = find(out, key, work_)) {
      const auto same = std::ranges::find_if(
          out.entries, [&](const auto& entry) { return &entry.second == old; });
      same->second = std::move(held);
    } else {
      out.entries.emplace_back(std::move(key), std::move(held));
    }
  }
  return make_mapping(std::move(out.entries));
}

value interpreter::evaluate_compare(const expression& e, const scope_ptr& in) {
  value left = evaluate(*e.operands[0], in);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    value right = evaluate(*e.operands[i + 1], in);
    if (!compares(e.operators[i], left, right, work_))
      return false;
    left = std::move(right);
  }
  return true;
}

value interpreter::evaluate_condition(const expression& e, const scope_ptr& in) {
  if (evaluate(*e.operands[0], in).truth())
    return evaluate(*e.operands[1], in);
  if (e.operands[2])
    return evaluate(*e.operands[2], in);
  return make_undefined("the inline if-expression on line " + std::to_string(e.line) +
                        " evaluated to false and no else section was defined.");
}

value interpreter::evaluate_uncounted(const expression& e, const scope_ptr& in) {
  const auto operand = [&](std::size_t i) { return evaluate(*e.operands[i], in); };
  switch (e.kind) {
  case expression_kind::literal:
    return e.constant;
  case expression_kind::name:
    return evaluate_name(e, in);
  case expression_kind::attribute:
    return attribute(operand(0), e.text);
  case expression_kind::item: {
    const value of = operand(0);
    return item(of, operand(1));
  }
  case expression_kind::slice:
    return evaluate_slice(e, in);
  case expression_kind::call:
    return evaluate_call(e, in, nullptr);
  case expression_kind::filter:
    return evaluate_filter(e, in, nullptr);
  case expression_kind::test: {
    const value input = operand(0);
    call_args args = evaluate_arguments(e, in);
    return tested(e.text, input, args);
  }
  case expression_kind::list:
    return evaluate_items(e, in, sequence_form::list);
  case expression_kind::tuple:
    return evaluate_items(e, in, sequence_form::tuple);
  case expression_kind::dict:
    return evaluate_dict(e, in);
  case expression_kind::negate:
    return negated(operand(0));
  case expression_kind::plus: {
    const value v = operand(0);
    return arithmetic(operation::add, std::int64_t{0}, v, work_);
  }
  case expression_kind::logical_not:
    return !operand(0).truth();
  case expression_kind::logical_and: {
    value left = operand(0);
    return left.truth() ? operand(1) : left;
  }
  case expression_kind::logical_or: {
    value left = operand(0);
    return left.truth() ? left : operand(1);
  }
  case expression_kind::arithmetic: {
    const value left = operand(0);
    return arithmetic(e.operators[0], left, operand(1), work_);
  }
  case expression_kind::concatenate: {
    text_builder out(work_);
    for (const auto& one : e.operands)
      append_str(out, evaluate(*one, in));
    return out.take();
  }
  case expression_kind::compare:
    return evaluate_compare(e, in);
  case expression_kind::condition:
    return evaluate_condition(e, in);
  }
  raise("an expression of an unknown kind", errc::internal);
}

} // namespace tokenrouter::jinja
