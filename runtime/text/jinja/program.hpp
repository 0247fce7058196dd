#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "runtime/core/error.hpp"

namespace tokenrouter::jinja {

/// A Jinja2 template, parsed. It is rendered as Jinja2 3.1 renders it in the environment that
/// Hugging Face's transformers makes for chat templates: sandboxed, trim_blocks and lstrip_blocks,
/// break and continue, `generation` blocks, its own tojson, raise_exception and strftime_now.
///
/// Not supported, and refused by name: template inheritance and includes, recursive loops,
/// autoescape, and the filters, tests and methods of registry.hpp's tables that are missing. Whole
/// numbers have 64 bits; one beyond them is an error.
/// What Python would raise only when an iterator is gone through is raised at once.
///
/// Const members may be called by several threads.
class program {
 public:
  /// Error: malformed; the message names `where`, the line and what is wrong.
  static result<program> parse(std::string_view source, std::string where);

  /// What `given`, an object, makes of it. `now`: local time for strftime_now. Errors, each with
  /// `where` and the line: invalid_argument (what the template raises itself, whose text the
  /// message ends with, and whatever Python would raise), capacity (a bound of limits.hpp).
  result<std::string> render(const nlohmann::ordered_json& given, const std::tm& now) const;

  /// Whether a variable of this name is mentioned.
  bool mentions(std::string_view name) const;

  program(program&&) noexcept;
  program& operator=(program&&) noexcept;
  ~program();

 private:
  struct parts;
  explicit program(std::unique_ptr<const parts> p);
  std::unique_ptr<const parts> parts_;
};

} // namespace tokenrouter::jinja
