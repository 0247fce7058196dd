#include "runtime/transport/loopback.hpp"

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/transport/bulk_matcher.hpp"
#include "runtime/transport/frame_gate.hpp"

namespace tokenrouter {

class loopback_network::endpoint_impl final : public transport {
 public:
  endpoint_impl(loopback_network& network, rank_id self)
      : network_(network), self_(self), event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        bulk_(self, {[this](bulk_post x) { network_.accept(std::move(x)); },
                     [this](std::uint64_t operation) { network_.cancel(self_, operation); },
                     [this] {
                       const std::lock_guard guard(mutex_);
                       ring();
                     }}) {
    check(event_fd_ >= 0, "no file descriptors left for the loopback transport");
  }

  ~endpoint_impl() override { close(event_fd_); }

  void on_frame(frame_sink sink) override { gate_.open(std::move(sink)); }

  result<void> send(rank_id to, const frame_header& header,
                    std::vector<std::byte> payload) override {
    if (to == self_ || to.value >= network_.endpoints_.size() || forgotten_.contains(to.value))
      return fail(errc::unavailable, "no way to rank " + std::to_string(to.value) + " from rank " +
                                         std::to_string(self_.value));
    if (payload.size() > limits::frame_bytes_max)
      return fail(errc::capacity, "a frame of " + std::to_string(payload.size()) +
                                      " bytes is longer than any may be");
    network_.endpoints_[to.value]->receive({self_, header, std::move(payload)});
    return {};
  }

  std::size_t progress() override {
    {
      const std::lock_guard guard(mutex_);
      arriving_.swap(inbox_);
      if (std::exchange(rung_, false)) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto drained = read(event_fd_, &count, sizeof count);
      }
    }
    // A local list, because the sink may forget a peer or send.
    const auto frames = std::exchange(arriving_, {});
    for (const auto& frame : frames)
      if (!forgotten_.contains(frame.from.value))
        gate_.pass(frame.from, frame.header, frame.payload);
    return frames.size() + bulk_.deliver();
  }

  int event_fd() const override { return event_fd_; }

  bool prepare_sleep() override {
    const std::lock_guard guard(mutex_);
    armed_ = inbox_.empty() && bulk_.idle();
    return armed_;
  }

  std::size_t pending_sends() const override { return 0; }
  std::string describe(rank_id) const override { return "loopback"; }
  bulk_wire& bulk() override { return bulk_; }

  void forget(rank_id peer) override {
    forgotten_.insert(peer.value);
    bulk_.forget(peer);
  }

  memory_bulk& memory() { return bulk_; }

 private:
  struct arrival {
    rank_id from;
    frame_header header;
    std::vector<std::byte> payload;
  };

  void receive(arrival frame) {
    const std::lock_guard guard(mutex_);
    inbox_.push_back(std::move(frame));
    ring();
  }

  /// Requires that mutex_ is held.
  void ring() {
    if (!std::exchange(armed_, false))
      return;
    rung_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(event_fd_, &one, sizeof one);
  }

  loopback_network& network_;
  const rank_id self_;
  const int event_fd_;
  frame_gate gate_;
  std::set<std::uint32_t> forgotten_;
  std::vector<arrival> arriving_;
  memory_bulk bulk_;

  std::mutex mutex_; ///< guards what follows: other endpoints' threads write it
  std::vector<arrival> inbox_;
  bool armed_ = false; ///< the owner may be asleep
  bool rung_ = false;  ///< event_fd_ is readable
};

/// The bulk transfers of all endpoints.
struct loopback_network::bulk_posts {
  std::mutex mutex;
  bulk_matcher matcher;
};

void loopback_network::accept(bulk_post post) {
  const std::lock_guard guard(posts_->mutex);
  const auto both = posts_->matcher.add(std::move(post));
  if (!both)
    return;
  const bool whole = copy_bulk(*both);
  endpoints_[both->out.self.value]->memory().arrive(both->out.operation, whole);
  endpoints_[both->in.self.value]->memory().arrive(both->in.operation, whole);
}

void loopback_network::cancel(rank_id self, std::uint64_t operation) {
  const std::lock_guard guard(posts_->mutex);
  posts_->matcher.cancel(self, operation);
}

loopback_network::loopback_network(std::uint32_t ranks) : posts_(std::make_unique<bulk_posts>()) {
  for (std::uint32_t i = 0; i < ranks; ++i)
    endpoints_.push_back(std::make_unique<endpoint_impl>(*this, rank_id{i}));
}

loopback_network::~loopback_network() = default;

transport& loopback_network::endpoint(rank_id rank) {
  check(rank.value < endpoints_.size(), "rank out of range");
  return *endpoints_[rank.value];
}

} // namespace tokenrouter
