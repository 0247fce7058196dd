#include "runtime/core/error.hpp"

namespace tokenrouter {

std::string_view to_string(errc code) {
  switch (code) {
  case errc::invalid_argument:
    return "invalid argument";
  case errc::not_found:
    return "not found";
  case errc::malformed:
    return "malformed";
  case errc::mismatch:
    return "mismatch";
  case errc::capacity:
    return "capacity";
  case errc::unavailable:
    return "unavailable";
  case errc::cancelled:
    return "cancelled";
  case errc::timeout:
    return "timeout";
  case errc::io:
    return "io";
  case errc::internal:
    return "internal";
  }
  return "unknown";
}

} // namespace tokenrouter
