#pragma once

#include <string>
#include <string_view>

#include "runtime/text/jinja/value.hpp"

namespace tokenrouter::jinja {

/// Text in the making, each byte paid for.
class text_builder {
 public:
  explicit text_builder(budget& work) : work_(work) {}

  void append(std::string_view more) {
    unpaid_bytes_ += more.size();
    work_.spend(unpaid_bytes_ / bytes_per_unit);
    unpaid_bytes_ %= bytes_per_unit;
    out_ += more;
  }

  /// `count` times.
  void append(std::size_t count, char c);

  budget& work() { return work_; }
  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  budget& work_;
  std::size_t unpaid_bytes_ = 0;
  std::string out_;
};

/// Python's str(): what `{{ v }}` writes. Faults: values without a text that is the same each time.
void append_str(text_builder& out, const value& v);
std::string to_str(const value& v, budget& work);

/// Python's repr().
void append_repr(text_builder& out, const value& v);
std::string float_repr(double d);

struct json_style {
  bool ascii = false;      ///< ensure_ascii
  bool has_indent = false; ///< each item on its own line
  std::string indent;      ///< of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Python's json.dumps(). Faults: values that are not JSON, undefined ones among them.
void append_json(text_builder& out, const value& v, const json_style& style);

/// Python's `form % values` with one value or a tuple or mapping of them; %s %r %d %i %f %e %g %x
/// %X %o %c %% with flags, width and precision. Faults: other conversions, too few or many values.
std::string percent_format(std::string_view form, const value& values, budget& work);

/// Python's s.replace(old, with, count); a negative count is none.
std::string replaced(std::string_view s, std::string_view old, std::string_view with,
                     std::int64_t count, budget& work);

/// Python's form.format(…) with {}, {0}, {name} and !s, !r. Faults: format specs, attributes.
std::string brace_format(std::string_view form, const call_args& args, budget& work);

} // namespace tokenrouter::jinja
