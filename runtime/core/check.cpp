#include "runtime/core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace tokenrouter {

void check_failed(const char* what, std::source_location where) {
  std::fprintf(stderr, "tokenrouter: broken invariant: %s (%s:%u, %s)\n", what, where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name());
  std::fflush(stderr);
  std::abort();
}

} // namespace tokenrouter
