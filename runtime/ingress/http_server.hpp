#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/error.hpp"
#include "runtime/ingress/service.hpp"

namespace tokenrouter {

struct http_settings {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0; ///< 0: any that is free
  std::uint32_t threads = 1;
  std::uint32_t connections_max = 512; ///< more are answered with 503
  std::uint32_t header_bytes_max = 16'384;
  std::uint32_t body_bytes_max = 8u << 20;
  std::uint32_t read_timeout_ms = 30'000;
  std::uint32_t idle_timeout_ms = 75'000;
  std::uint32_t write_timeout_ms = 30'000;
};

/// An HTTP/1.1 server with threads of its own. Connections are kept alive; calls on one connection
/// are answered one after the other.
class http_server {
 public:
  /// Listens, and answers from then on. `target` outlives the server. Errors: the address is
  /// unknown, taken or not ours; more connections than this process may open files, whose limit is
  /// raised as far as needed.
  static result<std::unique_ptr<http_server>> start(const http_settings& settings, service& target);

  /// Stops at once if nobody did.
  ~http_server();

  std::uint16_t port() const;

  /// Every answer from now on is its connection's last.
  void close_after_answers();

  /// Accepts no more, waits until every answer is on its way but at most that long, and cuts the
  /// rest off. No call is handled after it returns.
  void stop(std::uint32_t grace_ms);

 private:
  struct parts;
  explicit http_server(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

} // namespace tokenrouter
