#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/core/error.hpp"
#include "runtime/text/jinja/limits.hpp"

namespace tokenrouter::jinja {

/// How this folder's parts give up on a template. It never leaves the folder: `program` turns it
/// into an error value.
struct fault {
  errc code = errc::invalid_argument;
  std::string what;
  std::uint32_t line = 0; ///< of the template, from 1; 0 until the statement it rose from is known
};

[[noreturn]] inline void raise(std::string what, errc code = errc::invalid_argument) {
  throw fault{code, std::move(what)};
}

/// Counts the work of one rendering.
class budget {
 public:
  void spend(std::uint64_t units) {
    if (units > left_units_)
      raise("the template does too much work", errc::capacity);
    left_units_ -= units;
  }

  void spend_text(std::size_t bytes) { spend(1 + bytes / bytes_per_unit); }

 private:
  std::uint64_t left_units_ = work_units_max;
};

} // namespace tokenrouter::jinja
