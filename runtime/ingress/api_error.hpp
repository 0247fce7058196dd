#pragma once

#include <string>

#include <tl/expected.hpp>

#include "runtime/core/error.hpp"

namespace tokenrouter {

/// An error as clients see it: the HTTP status and OpenAI's error object.
struct api_error {
  unsigned status = 400;
  std::string message;
  std::string param; ///< the field at fault; empty: none
  std::string code;  ///< for programs, e.g. context_length_exceeded; empty: none
  unsigned retry_after_s = 0;
};

/// The JSON of the body, `{"error": {...}}`; its type follows from the status.
std::string error_body(const api_error& x);

/// `param` is what a refusal of a prompt is blamed on.
api_error to_api_error(const error& x, const std::string& param);

template <class T>
using api_result = tl::expected<T, api_error>;

/// 400, for a field with a wrong value.
tl::unexpected<api_error> bad_field(const std::string& field, const std::string& what);

} // namespace tokenrouter
