#include "runtime/transport/simulated.hpp"

#include <algorithm>
#include <string>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/transport/frame_gate.hpp"

namespace tokenrouter {

namespace {

// Lanes of the draws of one frame; a duplicate's delay comes after all others.
enum lane : std::uint32_t { drop, duplicate, reorder, corrupt, corrupt_bit, delay, second_delay };

constexpr std::uint32_t network_stream = 0x6e657477;

// Bulk transfers draw lanes of their own, so that they change no frame's fate.
enum bulk_lane : std::uint32_t { bulk_delay = 16, bulk_fail, bulk_corrupt, bulk_corrupt_bit };

/// Which one: `where` in [0, 1) over all bits of the frame.
void flip_bit(frame_header& header, std::vector<std::byte>& payload, float where) {
  const auto head = std::as_writable_bytes(std::span(&header, 1));
  const std::size_t bits = (head.size() + payload.size()) * 8;
  const auto bit = std::min(static_cast<std::size_t>(where * static_cast<float>(bits)), bits - 1);
  auto& byte = bit / 8 < head.size() ? head[bit / 8] : payload[bit / 8 - head.size()];
  byte ^= static_cast<std::byte>(1u << (bit % 8));
}

} // namespace

class simulated_network::endpoint_impl final : public transport {
 public:
  endpoint_impl(simulated_network& network, rank_id self)
      : network_(network), self_(self),
        bulk_(self,
              {[this](bulk_post x) { network_.accept_bulk(std::move(x)); },
               [this](std::uint64_t operation) { network_.bulk_posts_.cancel(self_, operation); },
               [] {}}) {}

  void on_frame(frame_sink sink) override { gate_.open(std::move(sink)); }

  result<void> send(rank_id to, const frame_header& header,
                    std::vector<std::byte> payload) override {
    if (to == self_ || to.value >= network_.endpoints_.size() || forgotten_.contains(to.value))
      return fail(errc::unavailable, "no way to rank " + std::to_string(to.value) + " from rank " +
                                         std::to_string(self_.value));
    if (payload.size() > limits::frame_bytes_max)
      return fail(errc::capacity, "a frame of " + std::to_string(payload.size()) +
                                      " bytes is longer than any may be");
    network_.accept({self_, to, header, std::move(payload)});
    return {};
  }

  std::size_t progress() override {
    const auto frames = std::exchange(arrived_, {});
    for (const auto& frame : frames)
      if (!forgotten_.contains(frame.from.value))
        gate_.pass(frame.from, frame.header, frame.payload);
    return frames.size() + bulk_.deliver();
  }

  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return arrived_.empty() && bulk_.idle(); }
  std::size_t pending_sends() const override { return 0; }
  std::string describe(rank_id) const override { return "simulated"; }
  bulk_wire& bulk() override { return bulk_; }

  void forget(rank_id peer) override {
    forgotten_.insert(peer.value);
    bulk_.forget(peer);
  }

  memory_bulk& memory() { return bulk_; }

  void arrive(packet frame) { arrived_.push_back(std::move(frame)); }

  /// A rank that died has lost what it had received, and starts anew with all peers.
  void reset() {
    arrived_.clear();
    forgotten_.clear();
    bulk_.reset();
  }

 private:
  simulated_network& network_;
  const rank_id self_;
  frame_gate gate_;
  std::set<std::uint32_t> forgotten_;
  memory_bulk bulk_;
  std::vector<packet> arrived_;
};

simulated_network::simulated_network(std::uint32_t ranks, std::uint64_t seed, network_faults faults)
    : seed_(seed), faults_(faults) {
  for (std::uint32_t i = 0; i < ranks; ++i)
    endpoints_.push_back(std::make_unique<endpoint_impl>(*this, rank_id{i}));
}

simulated_network::~simulated_network() = default;

transport& simulated_network::endpoint(rank_id rank) {
  check(rank.value < endpoints_.size(), "rank out of range");
  return *endpoints_[rank.value];
}

float simulated_network::draw(std::uint32_t position, std::uint32_t which) const {
  return uniform_draw(seed_, network_stream, position, which);
}

bool simulated_network::reachable(rank_id a, rank_id b) const {
  return !dead_.contains(a.value) && !dead_.contains(b.value) &&
         !cuts_.contains(std::minmax(a.value, b.value));
}

void simulated_network::accept(packet sent) {
  const auto position = static_cast<std::uint32_t>(sent_frames_++);
  if (!reachable(sent.from, sent.to) || draw(position, lane::drop) < faults_.drop_share) {
    ++lost_frames_;
    return;
  }
  if (draw(position, lane::corrupt) < faults_.corrupt_share)
    flip_bit(sent.header, sent.payload, draw(position, lane::corrupt_bit));
  if (draw(position, lane::duplicate) < faults_.duplicate_share)
    put_under_way(sent, position, lane::second_delay);
  put_under_way(std::move(sent), position, lane::delay);
}

void simulated_network::put_under_way(packet sent, std::uint32_t position, std::uint32_t which) {
  const auto spread = static_cast<float>(faults_.delay_max_us - faults_.delay_min_us + 1);
  auto arrival_us =
      now_us_ +
      std::min(faults_.delay_max_us,
               faults_.delay_min_us + static_cast<std::uint64_t>(draw(position, which) * spread));
  const bool in_order =
      which == lane::delay && draw(position, lane::reorder) >= faults_.reorder_share;
  if (in_order) {
    auto& last_us = last_arrival_us_[{sent.from.value, sent.to.value}];
    arrival_us = last_us = std::max(arrival_us, last_us);
  }
  under_way_.emplace(arrival_us, std::move(sent));
}

std::optional<std::uint64_t> simulated_network::next_arrival_us() const {
  std::optional<std::uint64_t> next_us;
  if (!under_way_.empty())
    next_us = under_way_.begin()->first;
  if (!bulk_under_way_.empty())
    next_us = std::min(next_us.value_or(UINT64_MAX), bulk_under_way_.begin()->first);
  return next_us;
}

void simulated_network::advance_to(std::uint64_t us) {
  check(us >= now_us_, "virtual time runs forwards");
  now_us_ = us;
  while (!under_way_.empty() && under_way_.begin()->first <= now_us_) {
    auto frame = under_way_.extract(under_way_.begin());
    endpoints_[frame.mapped().to.value]->arrive(std::move(frame.mapped()));
  }
  while (!bulk_under_way_.empty() && bulk_under_way_.begin()->first <= now_us_) {
    const auto one = bulk_under_way_.extract(bulk_under_way_.begin());
    finish_bulk(one.mapped().both, one.mapped().position);
  }
}

void simulated_network::accept_bulk(bulk_post post) {
  if (!reachable(post.self, post.peer))
    return; // it ends when its peer is forgotten
  auto both = bulk_posts_.add(std::move(post));
  if (!both)
    return;
  const auto position = static_cast<std::uint32_t>(bulk_transfers_++);
  const auto spread = static_cast<float>(faults_.delay_max_us - faults_.delay_min_us + 1);
  const auto delay_us =
      faults_.delay_min_us + static_cast<std::uint64_t>(draw(position, bulk_delay) * spread);
  bulk_under_way_.emplace(now_us_ + delay_us, moving_bulk{std::move(*both), position});
}

void simulated_network::finish_bulk(const bulk_matcher::pair& both, std::uint32_t position) {
  const bool whole = draw(position, bulk_fail) >= faults_.bulk_fail_share && copy_bulk(both);
  const auto got = both.in.buffer->bytes();
  if (whole && draw(position, bulk_corrupt) < faults_.bulk_corrupt_share) {
    const auto bit = static_cast<std::size_t>(draw(position, bulk_corrupt_bit) *
                                              static_cast<float>(got.size() * 8 - 1));
    got[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
  }
  endpoints_[both.out.self.value]->memory().arrive(both.out.operation, whole);
  endpoints_[both.in.self.value]->memory().arrive(both.in.operation, whole);
}

void simulated_network::lose_unreachable() {
  lost_frames_ += std::erase_if(under_way_, [this](const auto& entry) {
    return !reachable(entry.second.from, entry.second.to);
  });
  std::erase_if(bulk_under_way_, [this](const auto& entry) {
    return !reachable(entry.second.both.out.self, entry.second.both.in.self);
  });
}

void simulated_network::cut(rank_id a, rank_id b) {
  cuts_.insert(std::minmax(a.value, b.value));
  lose_unreachable();
}

void simulated_network::heal(rank_id a, rank_id b) {
  cuts_.erase(std::minmax(a.value, b.value));
}

void simulated_network::kill(rank_id rank) {
  check(rank.value < endpoints_.size(), "rank out of range");
  dead_.insert(rank.value);
  bulk_posts_.drop(rank);
  endpoints_[rank.value]->reset();
  lose_unreachable();
}

void simulated_network::revive(rank_id rank) {
  dead_.erase(rank.value);
}

} // namespace tokenrouter
