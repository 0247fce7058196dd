#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/jinja/printing.hpp"
#include "runtime/text/jinja/syntax.hpp"
#include "runtime/text/jinja/value.hpp"

namespace tokenrouter::jinja {

/// Names and what they stand for, with those of the scopes around it.
class scope {
 public:
  explicit scope(std::shared_ptr<scope> parent) : parent_(std::move(parent)) {}

  /// Null if neither this scope nor one around it has the name.
  const value* find(std::string_view name) const;
  void set(std::string_view name, value v);

 private:
  std::vector<std::pair<std::string, value>> names_;
  std::shared_ptr<scope> parent_;
};

using scope_ptr = std::shared_ptr<scope>;

/// Runs one rendering. Faults carry the line of the statement they rose from.
class interpreter {
 public:
  /// `now`: the local time that strftime_now tells.
  explicit interpreter(const std::tm& now) : now_(now) {}
  ~interpreter();
  interpreter(const interpreter&) = delete;
  interpreter& operator=(const interpreter&) = delete;

  std::string run(const block& body, std::vector<std::pair<std::string, value>> given);

  budget& work() { return work_; }
  const std::tm& now() const { return now_; }

  value call(const value& callee, call_args& args);

  /// `of.name` and `of[key]`, as Jinja2 looks them up; undefined if there is neither.
  value attribute(const value& of, const std::string& name);
  value item(const value& of, const value& key);

  /// Fault: unknown, by name.
  value filtered(const std::string& filter, const value& input, call_args& args);
  bool tested(const std::string& test, const value& input, call_args& args);

  /// One that lives until the rendering ends.
  value make_namespace(std::vector<std::pair<std::string, value>> attributes);

 private:
  enum class flow : std::uint8_t { on, leave, next };
  class depth_guard;

  flow execute(const block& body, const scope_ptr& in, text_builder& out);
  flow execute(const statement& s, const scope_ptr& in, text_builder& out);
  flow execute_branch(const statement& s, const scope_ptr& in, text_builder& out);
  flow execute_loop(const statement& s, const scope_ptr& in, text_builder& out);
  std::vector<value> loop_items(const statement& s, const scope_ptr& in);
  void execute_set_block(const statement& s, const scope_ptr& in);
  void execute_call_block(const statement& s, const scope_ptr& in, text_builder& out);
  void execute_with(const statement& s, const scope_ptr& in, text_builder& out);
  std::string captured(const block& body, const scope_ptr& in);
  void assign(const target& into, const value& v, const scope_ptr& in);

  value evaluate(const expression& e, const scope_ptr& in);
  value evaluate_uncounted(const expression& e, const scope_ptr& in);
  value evaluate_name(const expression& e, const scope_ptr& in);
  value evaluate_call(const expression& e, const scope_ptr& in, const value* caller);
  value evaluate_filter(const expression& e, const scope_ptr& in, const value* block_input);
  value evaluate_slice(const expression& e, const scope_ptr& in);
  value evaluate_items(const expression& e, const scope_ptr& in, sequence_form form);
  value evaluate_dict(const expression& e, const scope_ptr& in);
  value evaluate_compare(const expression& e, const scope_ptr& in);
  value evaluate_condition(const expression& e, const scope_ptr& in);
  call_args evaluate_arguments(const expression& e, const scope_ptr& in);

  value make_macro(const std::string& name, const signature& takes, const block& body,
                   const scope_ptr& in);
  std::string run_macro(const std::string& name, const signature& takes, const block& body,
                        const scope_ptr& around, call_args& args);
  void bind_parameters(const std::string& name, const signature& takes, const scope_ptr& in,
                       call_args& args);

  std::tm now_;
  budget work_;
  std::uint32_t depth_ = 0;
  std::uint32_t line_ = 0; ///< of the statement or expression that runs
  std::vector<std::shared_ptr<name_space>> namespaces_;
};

} // namespace tokenrouter::jinja
