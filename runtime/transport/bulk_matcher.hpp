#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/transport/bulk.hpp"

namespace tokenrouter {

/// One side of a bulk transfer in memory.
struct bulk_post {
  rank_id self;
  rank_id peer;
  bool out = false; ///< `self` sends
  std::uint64_t tag = 0;
  std::uint64_t operation = 0;
  std::shared_ptr<bulk_buffer> buffer;
};

/// Brings the two sides of each transfer together, whichever comes first.
class bulk_matcher {
 public:
  struct pair {
    bulk_post out, in;
  };

  std::optional<pair> add(bulk_post post);
  void cancel(rank_id self, std::uint64_t operation);

  /// Drops all that this rank or a peer of it has posted.
  void drop(rank_id rank);

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, bulk_post> open_; ///< by receiver and tag
};

/// Copies what was sent, if the sizes agree.
bool copy_bulk(const bulk_matcher::pair& both);

/// The wire of one endpoint whose network is in memory. `arrive` may be called by any thread, the
/// rest by the endpoint's.
class memory_bulk final : public bulk_wire {
 public:
  struct network {
    std::function<void(bulk_post)> accept;
    std::function<void(std::uint64_t operation)> cancel;
    std::function<void()> ring; ///< something has arrived
  };

  memory_bulk(rank_id self, network where) : self_(self), network_(std::move(where)) {}

  void on_end(end_sink sink) override { sink_ = std::move(sink); }
  void send(rank_id to, std::uint64_t tag, std::uint64_t operation,
            std::shared_ptr<bulk_buffer> buffer) override;
  void receive(rank_id from, std::uint64_t tag, std::uint64_t operation,
               std::shared_ptr<bulk_buffer> buffer) override;
  void cancel(std::uint64_t operation) override;

  void arrive(std::uint64_t operation, bool whole);

  /// Hands over what has arrived; how much that was.
  std::size_t deliver();
  bool idle() const;

  /// All that is open with that peer ends as not whole, now and from now on.
  void forget(rank_id peer);
  void reset();

 private:
  void post(bulk_post x);

  rank_id self_;
  network network_;
  end_sink sink_;
  std::map<std::uint64_t, rank_id> open_; ///< operations and their peers
  std::vector<rank_id> forgotten_;

  mutable std::mutex mutex_; ///< guards what follows
  std::vector<std::pair<std::uint64_t, bool>> arrived_;
};

} // namespace tokenrouter
