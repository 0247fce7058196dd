#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "actors/link_state.hpp"

/// Two link_states and a wire between them whose every fault the test decides.
namespace tokenrouter::test {

enum class fate : std::uint8_t {
  pass,
  lose,
  twice,
  late, ///< overtaken by what is sent in the next `late_us`
  damage,
};

inline constexpr std::uint64_t wire_us = 10;
inline constexpr std::uint64_t late_us = 300;

/// A frame that was put on the wire: by which side, as how manieth of its frames (from 1).
struct sent_frame {
  std::size_t from = 0;
  std::uint64_t nth = 0;
  std::uint64_t at_us = 0;
  frame_header header;
};

inline link_settings pair_settings() {
  link_settings x;
  x.heartbeat_us = 10'000; // acknowledges after 101 us, sends again after 1001 us
  x.peer_timeout_us = 100'000;
  return x;
}

inline std::vector<std::byte> payload_of(std::uint64_t number, std::size_t bytes = 8) {
  std::vector<std::byte> x(bytes);
  for (std::size_t i = 0; i < 8 && i < bytes; ++i)
    x[i] = static_cast<std::byte>(number >> (8 * i));
  return x;
}

inline std::uint64_t number_in(const std::vector<std::byte>& payload) {
  std::uint64_t x = 0;
  for (std::size_t i = 0; i < 8 && i < payload.size(); ++i)
    x |= static_cast<std::uint64_t>(payload[i]) << (8 * i);
  return x;
}

class link_pair {
 public:
  explicit link_pair(link_settings settings = pair_settings())
      : sides{link_state(settings, 1), link_state(settings, 1)} {}

  /// Gives a frame to one side, which sends what it may.
  void post(std::size_t side, frame_kind kind, std::vector<std::byte> payload = {}) {
    sides[side].post(kind, std::move(payload));
    flush(side);
  }

  void post_data(std::size_t side, std::uint64_t number) {
    post(side, frame_kind::data, payload_of(number));
  }

  /// Timers and arrivals in their order, up to that time.
  void run_until(std::uint64_t until_us) {
    for (;;) {
      auto next_us = until_us;
      if (!under_way_.empty())
        next_us = std::min(next_us, under_way_.begin()->first);
      for (const auto& side : sides)
        next_us = std::min(next_us, std::max(now_us, side.due_us().value_or(until_us)));
      now_us = std::max(now_us, next_us);
      const bool arrived = arrive();
      const bool due = tick(0) | tick(1);
      if (!arrived && !due && now_us >= until_us)
        return;
    }
  }

  /// Numbers in the data frames that reached a side, in order of delivery.
  std::vector<std::uint64_t> numbers(std::size_t side) const {
    std::vector<std::uint64_t> x;
    for (const auto& frame : got[side])
      if (frame.kind == frame_kind::data)
        x.push_back(number_in(frame.payload));
    return x;
  }

  /// Frames that a side sent, of one kind.
  std::size_t count_sent(std::size_t side, frame_kind kind) const {
    std::size_t n = 0;
    for (const auto& x : sent)
      n += x.from == side && x.header.kind == kind ? 1 : 0;
    return n;
  }

  std::array<link_state, 2> sides;
  std::function<fate(const sent_frame&)> decide = [](const sent_frame&) { return fate::pass; };
  std::array<std::vector<numbered_frame>, 2> got; ///< delivered to each side
  std::vector<sent_frame> sent;
  std::uint64_t broken = 0;
  std::uint64_t now_us = 1;

 private:
  struct packet {
    std::size_t to = 0;
    outgoing_frame frame;
    bool sound = true;
  };

  void flush(std::size_t side) {
    while (auto frame = sides[side].take_outgoing(now_us))
      put_on_wire(side, std::move(*frame));
  }

  void put_on_wire(std::size_t from, outgoing_frame frame) {
    sent.push_back({from, ++counts_[from], now_us, frame.header});
    const auto what = decide(sent.back());
    if (what == fate::lose)
      return;
    packet x{1 - from, std::move(frame), what != fate::damage};
    if (what == fate::twice)
      under_way_.emplace(now_us + wire_us, x);
    under_way_.emplace(now_us + wire_us + (what == fate::late ? late_us : 0), std::move(x));
  }

  bool arrive() {
    if (under_way_.empty() || under_way_.begin()->first > now_us)
      return false;
    auto x = std::move(under_way_.begin()->second);
    under_way_.erase(under_way_.begin());
    auto& side = sides[x.to];
    if (!x.sound) {
      side.on_damaged_frame();
      return true;
    }
    const auto header = x.frame.header;
    const auto verdict = side.on_frame(header, x.frame.payload, now_us);
    if (verdict == frame_verdict::deliver) {
      got[x.to].push_back({header.kind, header.sequence, std::move(x.frame.payload)});
      while (auto next = side.next_ready())
        got[x.to].push_back(std::move(*next));
    }
    broken += verdict == frame_verdict::broken ? 1 : 0;
    flush(x.to);
    return true;
  }

  bool tick(std::size_t side) {
    const auto due_us = sides[side].due_us();
    if (!due_us || *due_us > now_us)
      return false;
    sides[side].on_time(now_us, false);
    flush(side);
    return true;
  }

  std::multimap<std::uint64_t, packet> under_way_; ///< by arrival
  std::array<std::uint64_t, 2> counts_{};
};

} // namespace tokenrouter::test
