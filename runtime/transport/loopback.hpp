#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/transport/transport.hpp"

namespace tokenrouter {

struct bulk_post;

/// Transports of several endpoints in one process. Each endpoint may live in a thread of its own.
/// Must outlive its endpoints' users.
class loopback_network {
 public:
  /// Endpoints are ranks 0 … ranks-1.
  explicit loopback_network(std::uint32_t ranks);
  ~loopback_network();

  /// Requires rank < ranks. Owned by the network.
  transport& endpoint(rank_id rank);

 private:
  class endpoint_impl;
  struct bulk_posts;

  void accept(bulk_post post);
  void cancel(rank_id self, std::uint64_t operation);

  std::unique_ptr<bulk_posts> posts_;

  std::vector<std::unique_ptr<endpoint_impl>> endpoints_;
};

} // namespace tokenrouter
