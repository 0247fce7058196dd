#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace tokenrouter {

/// A request of a client, read whole.
struct http_call {
  std::string method;        ///< GET, POST, ...
  std::string target;        ///< path and query
  std::string authorization; ///< that header, or empty
  std::string body;
};

struct http_reply {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  unsigned retry_after_s = 0; ///< 0: no such header
};

/// The answering side of one call. All functions but `post` are called on the exchange's thread:
/// the one that handed the call over, and the one that runs what is posted. After the client has
/// gone they have no effect.
class exchange {
 public:
  virtual ~exchange() = default;

  /// Answers at once. Requires that nothing was answered before.
  virtual void reply(http_reply x) = 0;

  /// Answers piece by piece: server-sent events. Requires that nothing was answered before.
  virtual void begin_stream() = 0;
  virtual void write_piece(std::string piece) = 0;
  virtual void end_stream() = 0;

  /// Bytes that wait for the client to take them.
  virtual std::size_t unsent_bytes() const = 0;

  /// Cuts the client off.
  virtual void abort() = 0;

  /// Called once if the client goes away before the answer is complete, and not after it.
  virtual void on_client_gone(std::function<void()> what) = 0;

  /// Any thread: runs `what` on the exchange's thread, soon, also when the client has gone.
  virtual void post(std::function<void()> what) = 0;

  /// Runs `what` after that time, unless the server stops first.
  virtual void after_ms(unsigned ms, std::function<void()> what) = 0;
};

} // namespace tokenrouter
