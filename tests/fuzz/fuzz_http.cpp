// Bytes of a connection, through a real server on 127.0.0.1 over a job that refuses everything: the
// server hangs up or answers, and still serves the next one.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "runtime/core/check.hpp"
#include "runtime/ingress/http_server.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

struct running_server {
  running_server() {
    job.now.phase = engine_phase::draining;
    http_settings settings;
    settings.header_bytes_max = 1024;
    settings.body_bytes_max = 2048;
    server = http_server::start(settings, endpoints).value();
  }
  scripted_engine job;
  service endpoints{job, {tools_for_tests(), {}, std::size_t{1} << 20}};
  std::unique_ptr<http_server> server;
};

/// Sends, says that it is all, and reads to the end.
std::string exchange_bytes(std::uint16_t port, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0, "it accepts");
  send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  close(fd);
  return answer;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static running_server here;
  const std::string input(reinterpret_cast<const char*>(data), bytes);
  const std::string answer = exchange_bytes(here.server->port(), input);
  check(answer.empty() || answer.starts_with("HTTP/1.1 "), "what comes back is HTTP");
  check(answer.find("HTTP/1.1 500") == std::string::npos, "noise is no fault of ours");
  return 0;
}
