#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tokenrouter::test {

struct http_answer {
  int status = 0;                             ///< 0: no answer came
  std::map<std::string, std::string> headers; ///< names in lower case
  std::string body;
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

/// One connection to 127.0.0.1, kept alive; blocking, with a limit of time on every call.
class http_client {
 public:
  /// `receive_bytes`: of the kernel's buffer; 0: its choice.
  explicit http_client(std::uint16_t port, int receive_bytes = 0);
  ~http_client();

  http_answer get(const std::string& target);
  http_answer post(const std::string& target, const std::string& body,
                   const std::string& more_headers = "");
  http_answer post(const std::string& target, const nlohmann::json& body) {
    return post(target, body.dump());
  }

  /// Raw bytes, and the answer to them.
  void send(const std::string& bytes);
  http_answer read_answer();

  /// Reads until `text` has come; false if the connection ended before.
  bool read_until(const std::string& text);

  /// Says that it will send no more; answers may still come.
  void close_sending();

  /// Hangs up.
  void close();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// The data of each server-sent event of a body.
std::vector<std::string> events_of(const std::string& body);

} // namespace tokenrouter::test
