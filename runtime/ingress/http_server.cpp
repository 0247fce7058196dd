#include "runtime/ingress/http_server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include "runtime/ingress/http_session.hpp"

namespace tokenrouter {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int send_buffer_bytes = 256 << 10;
constexpr auto accept_pause = std::chrono::milliseconds(50);
constexpr auto stop_poll = std::chrono::milliseconds(5);
constexpr rlim_t other_files_max = 128; ///< what a job has open beside its clients

/// Room for that many connections among the files this process may have open.
result<void> make_room(rlim_t connections) {
  rlimit limit{};
  const rlim_t wanted = connections + other_files_max;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
    return {};
  limit.rlim_cur = wanted;
  if (limit.rlim_max >= wanted && setrlimit(RLIMIT_NOFILE, &limit) == 0)
    return {};
  return fail(errc::capacity, "serve.connections_max is " + std::to_string(connections) +
                                  ", but this process may open " + std::to_string(limit.rlim_max) +
                                  " files (ulimit -Hn); lower the one or raise the other");
}

} // namespace

struct http_server::parts {
  explicit parts(const http_settings& settings)
      : io(static_cast<int>(settings.threads)), acceptor(asio::make_strand(io)),
        pause(acceptor.get_executor()), shared(std::make_shared<http_shared>()) {
    shared->settings = settings;
  }

  result<void> listen();
  void accept();
  void take(error_code ec, tcp::socket socket);
  void close_acceptor();

  asio::io_context io;
  tcp::acceptor acceptor;
  asio::steady_timer pause; ///< after a failed accept, e.g. for want of descriptors
  std::shared_ptr<http_shared> shared;
  std::vector<std::thread> threads;
  std::uint16_t port = 0;
  bool stopped = false;
};

result<void> http_server::parts::listen() {
  const auto& settings = shared->settings;
  const std::string where = settings.host + ":" + std::to_string(settings.port);
  error_code ec;
  const auto address =
      asio::ip::make_address(settings.host == "localhost" ? "127.0.0.1" : settings.host, ec);
  if (ec)
    return fail(errc::invalid_argument, "serve.host '" + settings.host +
                                            "' is not an IP address; 127.0.0.1 is this host "
                                            "alone, 0.0.0.0 all of its interfaces");
  const tcp::endpoint endpoint(address, settings.port);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec)
    acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec)
    acceptor.bind(endpoint, ec);
  if (!ec)
    acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec)
    return fail(errc::unavailable, "can't listen on " + where + ": " + ec.message());
  port = acceptor.local_endpoint(ec).port();
  return {};
}

void http_server::parts::accept() {
  acceptor.async_accept(asio::make_strand(io),
                        [this](error_code ec, tcp::socket socket) { take(ec, std::move(socket)); });
}

void http_server::parts::take(error_code ec, tcp::socket socket) {
  if (!acceptor.is_open())
    return;
  if (ec) {
    pause.expires_after(accept_pause);
    pause.async_wait([this](error_code cancelled) {
      if (!cancelled && acceptor.is_open())
        accept();
    });
    return;
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  // What a slow client leaves with the kernel is bounded as well.
  socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), ignored);
  const bool full = shared->connections >= shared->settings.connections_max;
  const auto strand = socket.get_executor();
  asio::post(strand, [connection = std::move(socket), common = shared, full]() mutable {
    serve_connection(std::move(connection), std::move(common), full);
  });
  accept();
}

void http_server::parts::close_acceptor() {
  asio::post(acceptor.get_executor(), [this] {
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
  });
}

result<std::unique_ptr<http_server>> http_server::start(const http_settings& settings,
                                                        service& target) {
  if (auto ok = make_room(settings.connections_max); !ok)
    return tl::unexpected(ok.error());
  auto p = std::make_unique<parts>(settings);
  p->shared->target = &target;
  if (auto ok = p->listen(); !ok)
    return tl::unexpected(ok.error());
  p->accept();
  for (std::uint32_t i = 0; i < settings.threads; ++i)
    p->threads.emplace_back([&io = p->io] { io.run(); });
  return std::unique_ptr<http_server>(new http_server(std::move(p)));
}

http_server::http_server(std::unique_ptr<parts> p) : parts_(std::move(p)) {}

http_server::~http_server() {
  stop(0);
}

std::uint16_t http_server::port() const {
  return parts_->port;
}

void http_server::close_after_answers() {
  parts_->shared->closing = true;
}

void http_server::stop(std::uint32_t grace_ms) {
  if (std::exchange(parts_->stopped, true))
    return;
  parts_->shared->closing = true;
  parts_->close_acceptor();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(grace_ms);
  while (parts_->shared->answering > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(stop_poll);
  parts_->io.stop();
  for (auto& thread : parts_->threads)
    thread.join();
}

} // namespace tokenrouter
