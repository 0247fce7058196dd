#include "launch/route_probe.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tokenrouter {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint64_t rounds_per_peer = 20;

/// What a probing frame says; it stands where other frames have their epoch. A frame that comes
/// late reaches a link, which drops it for its checksum.
enum class probe_word : std::uint32_t { ask = 1, answer = 2, done = 3 };

class prober {
 public:
  prober(transport& wire, rank_id self, std::uint32_t ranks, std::uint32_t deadline_ms)
      : wire_(wire), self_(self), ranks_(ranks), answered_(ranks, 0),
        deadline_(steady::now() + std::chrono::milliseconds(deadline_ms)) {
    wire_.on_frame([this](rank_id from, const frame_header& header, std::span<const std::byte>) {
      hear(from, header);
    });
  }
  ~prober() { wire_.on_frame({}); }
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

  float one_way_us(rank_id peer) {
    steady::duration best = steady::duration::max();
    for (std::uint64_t round = 1; round <= rounds_per_peer; ++round) {
      const auto sent = steady::now();
      say(peer, probe_word::ask, round);
      if (!wait_for([&] { return answered_[peer.value] >= round; }))
        return -1;
      best = std::min(best, steady::now() - sent);
    }
    return std::chrono::duration<float, std::micro>(best).count() / 2;
  }

  /// Answers the others until they are done too.
  void finish() {
    for (std::uint32_t r = 0; r < ranks_; ++r)
      if (r != self_.value)
        say({r}, probe_word::done, 0);
    wait_for([&] { return done_count_ + 1 >= ranks_ && wire_.pending_sends() == 0; });
  }

 private:
  void say(rank_id to, probe_word word, std::uint64_t round) {
    frame_header header;
    header.kind = frame_kind::heartbeat;
    header.source_rank = self_.value;
    header.epoch = static_cast<std::uint32_t>(word);
    header.sequence = round;
    // A peer that can't be reached gives no answer, which is what is found out here.
    static_cast<void>(wire_.send(to, header, {}));
  }

  void hear(rank_id from, const frame_header& header) {
    if (from.value >= ranks_)
      return;
    if (header.epoch == static_cast<std::uint32_t>(probe_word::ask))
      questions_.emplace_back(from, header.sequence);
    else if (header.epoch == static_cast<std::uint32_t>(probe_word::answer))
      answered_[from.value] = std::max(answered_[from.value], header.sequence);
    else
      ++done_count_;
  }

  /// Goes on, answering, until `ready` or the deadline; false: the deadline.
  template <class Ready>
  bool wait_for(Ready ready) {
    while (!ready()) {
      if (steady::now() > deadline_)
        return false;
      if (wire_.progress() == 0)
        std::this_thread::yield();
      for (const auto& [from, round] : std::exchange(questions_, {}))
        say(from, probe_word::answer, round);
    }
    return true;
  }

  transport& wire_;
  const rank_id self_;
  const std::uint32_t ranks_;
  std::vector<std::uint64_t> answered_; ///< latest round that each peer answered
  std::vector<std::pair<rank_id, std::uint64_t>> questions_;
  std::uint32_t done_count_ = 0;
  const steady::time_point deadline_;
};

} // namespace

std::vector<peer_route> probe_routes(transport& wire, rank_id self, std::uint32_t ranks,
                                     std::uint32_t deadline_ms) {
  std::vector<peer_route> out(ranks);
  {
    prober probe(wire, self, ranks, deadline_ms);
    if (ranks <= probed_ranks_max)
      for (std::uint32_t step = 1; step < ranks; ++step) {
        const std::uint32_t peer = (self.value + step) % ranks;
        out[peer].one_way_us = probe.one_way_us({peer});
      }
    probe.finish();
  }
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (r != self.value)
      out[r].carrier = wire.describe({r});
  return out;
}

} // namespace tokenrouter
