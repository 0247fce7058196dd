#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/host_layout.hpp"
#include "launch/route_probe.hpp"

namespace tokenrouter {

/// What every rank tells all others before the first frame, through the launcher.
struct rank_card {
  std::uint16_t protocol_version = 0;
  std::uint64_t config_hash = 0;
  std::string host;
  std::string failure; ///< why this rank can't start; empty: it can
  std::vector<std::int32_t> allowed_cores;
  std::uint64_t memory_bytes = 0;    ///< free on its host
  std::vector<visible_gpu> gpus;     ///< that it sees, if the job uses any
  std::uint32_t model_threads = 0;   ///< of all its replicas
  std::vector<std::uint8_t> address; ///< of its transport
  std::uint32_t host_threads = 0;    ///< hardware threads of its host; 0: not known
  std::uint32_t physical_cores = 0;  ///< that its allowed cores lie on; 0: not known
  std::vector<peer_route> routes;    ///< by rank; empty until they are probed

  template <class Inspector>
  friend auto inspect(Inspector& f, rank_card& x) {
    return f(x.protocol_version, x.config_hash, x.host, x.failure, x.allowed_cores, x.memory_bytes,
             x.gpus, x.model_threads, x.address, x.host_threads, x.physical_cores, x.routes);
  }
};

/// Every different reason not to start, each once, with the ranks it holds for. Empty: all can.
std::vector<std::string> failures_of(const std::vector<rank_card>& cards);

} // namespace tokenrouter
