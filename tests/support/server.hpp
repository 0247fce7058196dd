#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "tests/support/command.hpp"
#include "tests/support/http_client.hpp"

namespace tokenrouter::test {

/// `tokenrouter serve` on a free port of 127.0.0.1, ready; ended with the object.
class test_server {
 public:
  /// `ranks` 0: without mpirun. Throws if it does not become ready.
  explicit test_server(int ranks, const std::string& config, const std::string& more = "");
  ~test_server();

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  pid_t process_of(int rank) const;
  pid_t leader() const { return process_of(0); }

  /// Waits for its end, which must come within a minute; the exit code.
  int wait();

  /// What it wrote so far.
  std::string output() const;

  /// A figure of /metrics, all labels added up.
  double metric(const std::string& name) const;

 private:
  scratch_folder scratch_;
  pid_t child_ = -1; ///< mpirun, or the server itself
  std::uint16_t port_ = 0;
};

} // namespace tokenrouter::test
