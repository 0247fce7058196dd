#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/ingress/http_server.hpp"

/// Between the server's two sources; the only header that includes Asio.
#include <boost/asio/ip/tcp.hpp>

namespace tokenrouter {

/// What the sessions of one server share.
struct http_shared {
  http_settings settings;
  service* target = nullptr;
  std::atomic<std::uint32_t> connections{0};
  std::atomic<std::uint32_t> answering{0}; ///< calls that were read and not answered completely
  std::atomic<bool> closing{false};        ///< every answer is its connection's last
};

/// Serves one connection until it ends; keeps itself alive. `refuse`: answers 503 and closes.
/// Requires a socket on a strand.
void serve_connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<http_shared> shared,
                      bool refuse);

} // namespace tokenrouter
