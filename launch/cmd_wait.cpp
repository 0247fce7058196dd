#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "launch/commands.hpp"

namespace tokenrouter {

namespace {

constexpr auto pause = std::chrono::milliseconds(100);
constexpr int answer_timeout_s = 3;

struct wait_options {
  std::string url;
  double timeout_s = 60;
};

struct http_address {
  std::string host;
  std::string port = "80";
  std::string path = "/health";
};

/// http://HOST[:PORT][/PATH]; /health if there is no path.
std::optional<http_address> parse_url(std::string url) {
  const std::string scheme = "http://";
  if (url.rfind(scheme, 0) != 0)
    return std::nullopt;
  url.erase(0, scheme.size());
  http_address out;
  if (const auto slash = url.find('/'); slash != std::string::npos) {
    if (slash + 1 < url.size())
      out.path = url.substr(slash);
    url.resize(slash);
  }
  const bool bracketed = !url.empty() && url.front() == '[';
  const auto close = bracketed ? url.find(']') : 0;
  if (close == std::string::npos)
    return std::nullopt;
  const auto colon = url.find(':', close);
  if (colon != std::string::npos)
    out.port = url.substr(colon + 1);
  out.host = bracketed ? url.substr(1, close - 1) : url.substr(0, colon);
  if (out.host.empty() || out.port.empty() ||
      out.port.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return out;
}

int connect_to(const http_address& to) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found) != 0)
    return -1;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  for (const addrinfo* x = found; x != nullptr; x = x->ai_next) {
    const int fd = socket(x->ai_family, x->ai_socktype | SOCK_CLOEXEC, x->ai_protocol);
    if (fd < 0)
      continue;
    const timeval limit{answer_timeout_s, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, x->ai_addr, x->ai_addrlen) == 0)
      return fd;
    close(fd);
  }
  return -1;
}

/// The answer's first line; empty: none.
std::string ask(const http_address& to) {
  const int fd = connect_to(to);
  if (fd < 0)
    return {};
  const std::string request =
      "GET " + to.path + " HTTP/1.1\r\nHost: " + to.host + "\r\nConnection: close\r\n\r\n";
  std::string answer;
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(request.size())) {
    char buffer[512];
    for (ssize_t n = 0; answer.find('\n') == std::string::npos && answer.size() < 4096 &&
                        (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  return answer.substr(0, answer.find_first_of("\r\n"));
}

int run_wait(const wait_options& options) {
  const auto address = parse_url(options.url);
  if (!address) {
    std::fprintf(stderr, "tokenrouter: --url must be http://HOST:PORT, not '%s'\n",
                 options.url.c_str());
    return 2;
  }
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.timeout_s);
  std::string last;
  do {
    last = ask(*address);
    if (last.rfind("HTTP/1.1 200", 0) == 0 || last.rfind("HTTP/1.0 200", 0) == 0)
      return 0;
    std::this_thread::sleep_for(pause);
  } while (std::chrono::steady_clock::now() < until);
  std::fprintf(stderr, "tokenrouter: %s is not ready; its last answer: %s\n", options.url.c_str(),
               last.empty() ? "none" : last.c_str());
  return 1;
}

} // namespace

void add_wait(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<wait_options>();
  auto* command =
      program.add_subcommand("wait", "Wait until a server is ready: exit code 0; 1: it is not");
  command->add_option("--url", options->url, "http://HOST:PORT of the server")->required();
  command->add_option("--timeout-s", options->timeout_s, "Seconds to wait at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->callback([options, &exit_code] { exit_code = run_wait(*options); });
}

} // namespace tokenrouter
