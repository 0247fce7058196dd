#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tokenrouter {

/// The HTTP server of `tokenrouter serve`: section `serve` of the config.
struct serve_settings {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;          ///< 0: any that is free
  std::filesystem::path port_file;    ///< gets the port once the server listens; empty: none
  std::string model_name;             ///< what clients call it; empty: "tokenrouter"
  std::filesystem::path api_key_file; ///< one key a line; empty: no key is asked for
  std::uint32_t threads = 1;
  std::uint32_t requests_max = 256;    ///< generations under way; more are refused with 429
  std::uint32_t connections_max = 512; ///< more are refused with 503
  std::uint32_t header_bytes_max = 16'384;
  std::uint32_t body_bytes_max = 8u << 20;
  std::uint32_t unsent_bytes_max = 1u << 20; ///< a client this far behind is cut off
  std::uint32_t read_timeout_ms = 30'000;    ///< for a whole request to arrive
  std::uint32_t idle_timeout_ms = 75'000;    ///< between requests of one connection
  std::uint32_t write_timeout_ms = 30'000;   ///< without any byte taken by the client
  std::uint32_t drain_timeout_ms = 30'000;   ///< for requests under way after SIGTERM
  std::uint32_t step_timeout_ms = 60'000;    ///< a model longer at one step is unhealthy; 0: never
};

} // namespace tokenrouter
