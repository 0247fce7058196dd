#include "tests/support/http_client.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

namespace tokenrouter::test {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {
constexpr int answer_timeout_s = 60;
}

struct http_client::parts {
  asio::io_context io;
  asio::ip::tcp::socket socket{io};
  boost::beast::flat_buffer in;
};

http_client::http_client(std::uint16_t port, int receive_bytes)
    : parts_(std::make_unique<parts>()) {
  boost::system::error_code ec;
  parts_->socket.open(asio::ip::tcp::v4(), ec);
  if (receive_bytes > 0)
    parts_->socket.set_option(asio::socket_base::receive_buffer_size(receive_bytes), ec);
  parts_->socket.connect({asio::ip::make_address("127.0.0.1"), port}, ec);
  if (ec)
    return;
  const timeval limit{answer_timeout_s, 0};
  const int fd = parts_->socket.native_handle();
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  parts_->socket.set_option(asio::ip::tcp::no_delay(true), ec);
}

http_client::~http_client() = default;

void http_client::send(const std::string& bytes) {
  boost::system::error_code ec;
  asio::write(parts_->socket, asio::buffer(bytes), ec);
}

http_answer http_client::read_answer() {
  http::response_parser<http::string_body> parser;
  parser.body_limit(std::uint64_t{1} << 30);
  boost::system::error_code ec;
  http::read(parts_->socket, parts_->in, parser, ec);
  http_answer answer;
  if (ec)
    return answer;
  auto message = parser.release();
  answer.status = static_cast<int>(message.result_int());
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    answer.headers[name] = std::string(field.value());
  }
  answer.body = std::move(message.body());
  return answer;
}

http_answer http_client::get(const std::string& target) {
  send("GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return read_answer();
}

http_answer http_client::post(const std::string& target, const std::string& body,
                              const std::string& more_headers) {
  send("POST " + target + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n" +
       more_headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  return read_answer();
}

bool http_client::read_until(const std::string& text) {
  std::string seen;
  char buffer[4096];
  boost::system::error_code ec;
  while (seen.find(text) == std::string::npos) {
    const std::size_t n = parts_->socket.read_some(asio::buffer(buffer), ec);
    if (ec)
      return false;
    seen.append(buffer, n);
  }
  return true;
}

void http_client::close_sending() {
  boost::system::error_code ignored;
  parts_->socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void http_client::close() {
  boost::system::error_code ignored;
  parts_->socket.close(ignored);
}

std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  const std::string start = "data: ";
  for (std::size_t at = 0; (at = body.find(start, at)) != std::string::npos;) {
    const std::size_t end = body.find("\n\n", at);
    events.push_back(body.substr(at + start.size(), end - at - start.size()));
    at = end;
  }
  return events;
}

} // namespace tokenrouter::test
