#include "runtime/text/jinja/interpreter.hpp"

#include <algorithm>

#include "runtime/text/jinja/operators.hpp"
#include "runtime/text/jinja/registry.hpp"

namespace tokenrouter::jinja {

const value* scope::find(std::string_view name) const {
  for (const scope* at = this; at; at = at->parent_.get())
    for (const auto& [known, v] : at->names_)
      if (known == name)
        return &v;
  return nullptr;
}

void scope::set(std::string_view name, value v) {
  for (auto& [known, held] : names_) {
    if (known == name) {
      held = std::move(v);
      return;
    }
  }
  names_.emplace_back(name, std::move(v));
}

class interpreter::depth_guard {
 public:
  explicit depth_guard(interpreter& owner) : owner_(owner) {
    if (owner.depth_ >= evaluation_depth_max)
      raise("the template calls itself too deeply", errc::capacity);
    ++owner.depth_;
  }
  ~depth_guard() { --owner_.depth_; }
  depth_guard(const depth_guard&) = delete;
  depth_guard& operator=(const depth_guard&) = delete;

 private:
  interpreter& owner_;
};

interpreter::~interpreter() {
  // Namespaces may hold each other in circles and in chains of any length.
  for (const auto& one : namespaces_)
    one->attributes.clear();
}

value interpreter::make_namespace(std::vector<std::pair<std::string, value>> attributes) {
  for (const auto& entry : attributes)
    if (entry.first.starts_with('_'))
      raise("a namespace can't hold '" + entry.first + "', which begins with an underscore");
  work_.spend(4);
  namespaces_.push_back(std::make_shared<name_space>(name_space{std::move(attributes)}));
  return value::any(namespaces_.back());
}

std::string interpreter::run(const block& body, std::vector<std::pair<std::string, value>> given) {
  const auto context = std::make_shared<scope>(nullptr);
  for (auto& [name, v] : given)
    context->set(name, std::move(v));
  try {
    return captured(body, std::make_shared<scope>(context));
  } catch (fault& f) {
    f.line = f.line != 0 ? f.line : line_;
    throw;
  }
}

std::string interpreter::captured(const block& body, const scope_ptr& in) {
  text_builder out(work_);
  execute(body, in, out);
  return out.take();
}

interpreter::flow interpreter::execute(const block& body, const scope_ptr& in, text_builder& out) {
  for (const auto& one : body)
    if (const flow went = execute(*one, in, out); went != flow::on)
      return went;
  return flow::on;
}

interpreter::flow interpreter::execute(const statement& s, const scope_ptr& in, text_builder& out) {
  const depth_guard guard(*this);
  work_.spend(1);
  line_ = s.line;
  switch (s.kind) {
  case statement_kind::data:
    out.append(s.text);
    break;
  case statement_kind::print:
    append_str(out, evaluate(*s.given, in));
    break;
  case statement_kind::branch:
    return execute_branch(s, in, out);
  case statement_kind::loop:
    return execute_loop(s, in, out);
  case statement_kind::set:
    assign(s.into, evaluate(*s.given, in), in);
    break;
  case statement_kind::set_block:
    execute_set_block(s, in);
    break;
  case statement_kind::macro:
    in->set(s.text, make_macro(s.text, s.takes, s.body, in));
    break;
  case statement_kind::call_block:
    execute_call_block(s, in, out);
    break;
  case statement_kind::filter_block: {
    const value input(captured(s.body, std::make_shared<scope>(in)));
    append_str(out, evaluate_filter(*s.given, in, &input));
    break;
  }
  case statement_kind::with:
    execute_with(s, in, out);
    break;
  case statement_kind::generation:
    execute(s.body, std::make_shared<scope>(in), out);
    break;
  case statement_kind::leave_loop:
    return flow::leave;
  case statement_kind::next_round:
    return flow::next;
  }
  return flow::on;
}

interpreter::flow interpreter::execute_branch(const statement& s, const scope_ptr& in,
                                              text_builder& out) {
  for (const arm& one : s.arms)
    if (!one.condition || evaluate(*one.condition, in).truth())
      return execute(one.body, in, out);
  return flow::on;
}

std::vector<value> interpreter::loop_items(const statement& s, const scope_ptr& in) {
  std::vector<value> items = iterate(evaluate(*s.given, in), work_);
  if (!s.condition)
    return items;
  std::vector<value> kept;
  for (value& item : items) {
    const auto round = std::make_shared<scope>(in);
    assign(s.into, item, round);
    if (evaluate(*s.condition, round).truth())
      kept.push_back(std::move(item));
  }
  return kept;
}

interpreter::flow interpreter::execute_loop(const statement& s, const scope_ptr& in,
                                            text_builder& out) {
  const auto loop = std::make_shared<loop_state>();
  loop->items = loop_items(s, in);
  for (const value& item : loop->items)
    loop->depth = std::max(loop->depth, one_deeper(depth_of(item)));
  // What changed() remembers may be the loop itself.
  struct forget {
    loop_state& loop;
    ~forget() { loop.changed_last.clear(); }
  } const at_end{*loop};
  bool has_ended_round = false;
  for (; loop->index0 < loop->items.size(); ++loop->index0) {
    work_.spend(1);
    const auto round = std::make_shared<scope>(in);
    round->set("loop", value::any(loop));
    assign(s.into, loop->items[loop->index0], round);
    const flow went = execute(s.body, round, out);
    has_ended_round |= went == flow::on;
    if (went == flow::leave)
      break;
  }
  // As in Jinja2: rounds that `break` or `continue` cut short don't count.
  if (!has_ended_round)
    return execute(s.otherwise, std::make_shared<scope>(in), out);
  return flow::on;
}

void interpreter::execute_set_block(const statement& s, const scope_ptr& in) {
  value v(captured(s.body, std::make_shared<scope>(in)));
  if (s.given)
    v = evaluate_filter(*s.given, in, &v);
  assign(s.into, v, in);
}

void interpreter::execute_call_block(const statement& s, const scope_ptr& in, text_builder& out) {
  const value caller = make_macro("caller", s.takes, s.body, in);
  append_str(out, evaluate_call(*s.given, in, &caller));
}

void interpreter::execute_with(const statement& s, const scope_ptr& in, text_builder& out) {
  const auto inner = std::make_shared<scope>(in);
  for (const auto& [into, given] : s.assignments)
    assign(into, evaluate(*given, in), inner);
  execute(s.body, inner, out);
}

void interpreter::assign(const target& into, const value& v, const scope_ptr& in) {
  if (into.is_tuple) {
    const std::vector<value> items = iterate(v, work_);
    if (items.size() != into.parts.size())
      raise((items.size() < into.parts.size() ? "not enough" : "too many") +
            std::string(" values to unpack (expected ") + std::to_string(into.parts.size()) +
            ", got " + std::to_string(items.size()) + ")");
    for (std::size_t i = 0; i < items.size(); ++i)
      assign(into.parts[i], items[i], in);
    return;
  }
  if (into.attribute.empty())
    return in->set(into.name, v);
  const value* held = in->find(into.name);
  const auto* ns = held ? held->get<std::shared_ptr<name_space>>() : nullptr;
  if (!ns)
    raise("cannot assign attribute on non-namespace object '" + into.name + "'");
  if (into.attribute.starts_with('_'))
    raise("a namespace can't hold '" + into.attribute + "', which begins with an underscore");
  for (auto& [name, old] : (*ns)->attributes) {
    if (name == into.attribute) {
      old = v;
      return;
    }
  }
  (*ns)->attributes.emplace_back(into.attribute, v);
}

value interpreter::make_macro(const std::string& name, const signature& takes, const block& body,
                              const scope_ptr& in) {
  // A macro is held by its own scope: it must not hold that in turn.
  return value::any(std::make_shared<const callable>(callable{
      name, 0,
      [name, &takes, &body, weak = std::weak_ptr<scope>(in)](interpreter& by,
                                                             call_args& args) -> value {
        const auto around = weak.lock();
        if (!around)
          raise("the macro '" + name + "' is called outside of the loop or block it is defined in");
        return by.run_macro(name, takes, body, around, args);
      }}));
}

std::string interpreter::run_macro(const std::string& name, const signature& takes,
                                   const block& body, const scope_ptr& around, call_args& args) {
  const depth_guard guard(*this);
  const auto inner = std::make_shared<scope>(around);
  bind_parameters(name, takes, inner, args);
  return captured(body, inner);
}

void interpreter::bind_parameters(const std::string& name, const signature& takes,
                                  const scope_ptr& in, call_args& args) {
  std::size_t used = 0;
  bool names_caller = false;
  const auto take_keyword = [&](const std::string& wanted) -> std::optional<value> {
    const auto found = std::ranges::find_if(
        args.keywords, [&](const auto& keyword) { return keyword.first == wanted; });
    if (found == args.keywords.end())
      return std::nullopt;
    value v = std::move(found->second);
    args.keywords.erase(found);
    return v;
  };
  std::vector<const parameter*> missing;
  for (const parameter& one : takes.parameters) {
    names_caller |= one.name == "caller";
    if (used < args.positional.size())
      in->set(one.name, args.positional[used++]);
    else if (auto given = take_keyword(one.name))
      in->set(one.name, std::move(*given));
    else
      missing.push_back(&one);
  }
  if (takes.takes_caller && !names_caller)
    in->set("caller", take_keyword("caller").value_or(make_undefined("No caller defined")));
  if (takes.takes_more_keywords) {
    std::vector<std::pair<value, value>> rest;
    for (auto& [keyword, v] : args.keywords)
      rest.emplace_back(value(keyword), std::move(v));
    in->set("kwargs", make_mapping(std::move(rest)));
  } else if (!args.keywords.empty()) {
    raise("macro '" + name + "' takes no keyword argument '" + args.keywords.front().first + "'");
  }
  if (takes.takes_more_positional) {
    args.positional.erase(args.positional.begin(),
                          args.positional.begin() + static_cast<std::ptrdiff_t>(used));
    in->set("varargs", make_sequence(std::move(args.positional), sequence_form::tuple));
  } else if (args.positional.size() > takes.parameters.size()) {
    raise("macro '" + name + "' takes not more than " + std::to_string(takes.parameters.size()) +
          " argument(s)");
  }
  for (const parameter* one : missing)
    in->set(one->name, one->fallback
                           ? evaluate(*one->fallback, in)
                           : make_undefined("parameter '" + one->name + "' was not provided"));
}

value interpreter::evaluate(const expression& e, const scope_ptr& in) {
  const depth_guard guard(*this);
  work_.spend(1);
  line_ = e.line;
  return evaluate_uncounted(e, in);
}

} // namespace tokenrouter::jinja
