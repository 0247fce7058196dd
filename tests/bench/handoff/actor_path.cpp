#include "tests/bench/handoff/actor_path.hpp"

#include <cstring>
#include <memory>
#include <span>

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/link.hpp"
#include "actors/scheduler.hpp"
#include "actors/switchboard.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/reactor/reactor.hpp"
#include "runtime/transport/transport_poller.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "tests/bench/handoff/plan.hpp"

namespace tokenrouter::bench {

namespace {

constexpr std::uint64_t silence_max_us = 3'600'000'000; // nothing dies here
constexpr std::uint64_t window_messages = 128;
constexpr std::uint64_t credit_messages = 32;

/// One measurement, seen from either rank.
struct phase {
  std::size_t messages = 0;       ///< that rank 0 sends
  std::uint64_t answer_every = 0; ///< rank 1 answers each so many; 0 = never
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  std::vector<double> latencies_us;
};

/// Stands in for a scheduler: sends handoffs with a stamp in place of the seed, measures them.
struct stand_in_state {
  replica_id self;
  replica_id peer;
  caf::typed_actor<caf::reacts_to<handoff>> outlet;
  phase* current = nullptr;
};

using stand_in_pointer = scheduler_actor::stateful_pointer<stand_in_state>;

void send_one(stand_in_pointer self) {
  auto& state = self->state;
  handoff x;
  x.request = make_request_id({0}, 7);
  x.turn = static_cast<turn_number>(++state.current->sent);
  x.from = state.self;
  x.to = state.peer;
  x.offset = 1234;
  x.tokens = {15, 220, 1021};
  x.kv_tokens = {1237, 1234};
  x.spec.prompt_tokens = 1000;
  x.spec.max_new_tokens = 512;
  x.spec.sampling.seed = monotonic_ns();
  self->send(state.outlet, std::move(x));
}

void take_one(stand_in_pointer self, const handoff& x) {
  auto& now = *self->state.current;
  now.last_ns = monotonic_ns();
  ++now.received;
  if (self->state.self.model.value == 0) {
    if (now.answer_every == 1 && now.sent < now.messages)
      send_one(self);
    return;
  }
  if (now.received == warm_up_messages + 1)
    now.first_ns = now.last_ns;
  if (now.received > warm_up_messages)
    now.latencies_us.push_back(static_cast<double>(now.last_ns - x.spec.sampling.seed) / 1000.0);
  if (now.answer_every > 0 && now.received % now.answer_every == 0)
    send_one(self);
}

scheduler_actor::behavior_type stand_in(stand_in_pointer self, replica_id own, replica_id peer,
                                        caf::typed_actor<caf::reacts_to<handoff>> outlet,
                                        phase* current) {
  self->state = {own, peer, std::move(outlet), current};
  return {
      [](const announce&) {},
      [self](const handoff& x) { take_one(self, x); },
      [](const handoff_gap&) {},
      [](const recall&) {},
      [](const release&) {},
      [](const replicas_lost&) {},
      [](const batching_update&) {},
      [](const status_query&) {},
      [](const prefix_hit&) {},
      [](const prefix_fetched&) {},
      [](blocks_back) {},
      [](const step_done&) {},
      [self](caf::tick_atom) { send_one(self); },
  };
}

link_observer::behavior_type observe() {
  return {
      [](const peer_down& x) { check(false, x.why.c_str()); },
  };
}

/// Makes rank 0 send: at a pace, or as fast as the window allows.
class pacer final : public poller {
 public:
  explicit pacer(phase& current) : current_(current) {}

  void start(scheduler_actor target, std::uint64_t gap_ns, std::uint64_t window) {
    target_ = std::move(target);
    gap_ns_ = gap_ns;
    window_ = window;
    started_ = 0;
    next_ns_ = monotonic_ns();
  }
  void stop() { target_ = nullptr; }

  std::size_t poll() override {
    if (!target_ || started_ == current_.messages || monotonic_ns() < next_ns_)
      return 0;
    if (window_ > 0 && started_ >= current_.received * credit_messages + window_)
      return 0;
    ++started_;
    next_ns_ = monotonic_ns() + gap_ns_;
    caf::anon_send(target_, caf::tick_atom::value);
    return 1;
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return !target_; }

 private:
  phase& current_;
  scheduler_actor target_;
  std::uint64_t gap_ns_ = 0;
  std::uint64_t window_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t next_ns_ = 0;
};

/// One rank's half of the path.
class half {
 public:
  explicit half(bootstrap& job)
      : job_(job), first_(job.rank().value == 0), loop_(reactor::of(system_)),
        carrier_(std::move(ucx_transport::create(job.rank()).value())), poller_(*carrier_),
        pacer_(current_) {
    const rank_id peer{first_ ? 1u : 0u};
    const auto addresses = job.allgather(carrier_->address()).value();
    check(carrier_->connect(peer, addresses[peer.value]).has_value(), "connect");
    const replica_id own{{static_cast<std::uint16_t>(job.rank().value)}, 0};
    const replica_id other{{static_cast<std::uint16_t>(peer.value)}, 0};
    switchboard_ = system_.spawn(
        switchboard, switchboard_options{job.rank(), {{own, job.rank()}, {other, peer}}, {}, {}});
    observer_ = system_.spawn(observe);
    link_options options{job.rank(),     peer,         {},        200'000,     silence_max_us,
                         carrier_.get(), switchboard_, observer_, monotonic_us};
    link_ = system_.spawn(link, std::move(options));
    scheduler_ = system_.spawn(stand_in, own, other, switchboard_, &current_);
    caf::anon_send(switchboard_,
                   local_actors{{{own, scheduler_}}, {}, {}, {}, {}, {}, {}, {{peer, link_}}});
    carrier_->on_frame([this](rank_id, const frame_header& header, auto payload) {
      caf::anon_send(link_, incoming_frame{header, {payload.begin(), payload.end()}});
    });
    loop_.attach(&poller_);
    loop_.attach(&pacer_);
    loop_.hold_awake();
  }

  summary run(std::size_t messages, std::uint64_t gap_ns, std::uint64_t answer_every,
              bool receiver_sleeps) {
    current_ = {};
    current_.messages = messages + warm_up_messages;
    current_.answer_every = answer_every;
    const bool sleeps = receiver_sleeps && !first_;
    loop_.set_spin(sleeps ? spin_policy::never : spin_policy::while_in_flight);
    job_.allgather({});
    if (first_ && answer_every == 1)
      caf::anon_send(scheduler_, caf::tick_atom::value);
    else if (first_)
      pacer_.start(scheduler_, gap_ns, answer_every > 0 ? window_messages : 0);
    loop_.run_until([this] { return finished(); });
    pacer_.stop();
    return exchange();
  }

  /// Rank 0 does something else while rank 1 sleeps until it is over.
  void run_alone(const std::function<void()>& what) {
    current_ = {};
    current_.messages = 1;
    job_.allgather({});
    loop_.set_spin(spin_policy::never);
    if (first_) {
      what();
      caf::anon_send(scheduler_, caf::tick_atom::value);
    }
    loop_.run_until([this] { return finished(); });
  }

  std::string carrier() const { return carrier_->describe({first_ ? 1u : 0u}); }

  void stop() {
    for (const auto& who :
         {caf::actor_cast<caf::actor>(scheduler_), caf::actor_cast<caf::actor>(link_),
          caf::actor_cast<caf::actor>(switchboard_), caf::actor_cast<caf::actor>(observer_)})
      caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    scheduler_ = nullptr;
    link_ = nullptr;
    switchboard_ = nullptr;
    observer_ = nullptr;
    loop_.run_until_no_actors();
    loop_.detach(&poller_);
    loop_.detach(&pacer_);
    job_.allgather({});
    carrier_->close(2000);
  }

 private:
  bool finished() const {
    const auto answers = current_.answer_every == 0 ? 0 : current_.messages / current_.answer_every;
    return first_ ? current_.sent == current_.messages && current_.received == answers &&
                        carrier_->pending_sends() == 0
                  : current_.received == current_.messages && carrier_->pending_sends() == 0;
  }

  /// Rank 1 has measured; both get to know.
  summary exchange() {
    auto result = summarise(current_.latencies_us);
    if (current_.last_ns > current_.first_ns)
      result.messages_per_s = static_cast<double>(current_.received - warm_up_messages - 1) * 1e9 /
                              static_cast<double>(current_.last_ns - current_.first_ns);
    const auto all = job_.allgather(std::as_bytes(std::span(&result, 1))).value();
    std::memcpy(&result, all[1].data(), sizeof result);
    return result;
  }

  bootstrap& job_;
  const bool first_;
  reactor_config config_;
  caf::actor_system system_{config_};
  reactor& loop_;
  std::unique_ptr<ucx_transport> carrier_;
  transport_poller poller_;
  phase current_;
  pacer pacer_;
  switchboard_actor switchboard_;
  link_observer observer_;
  link_actor link_;
  scheduler_actor scheduler_;
};

} // namespace

actor_path_result measure_actor_path(bootstrap& job, const std::function<void()>& last) {
  half here(job);
  actor_path_result result;
  result.ping_pong = here.run(ping_pong_messages, 0, 1, false);
  result.paced = here.run(paced_messages, pace_ns, 0, false);
  result.flood = here.run(flood_messages, 0, credit_messages, false);
  result.paced_sleeping = here.run(paced_messages, pace_ns, 0, true);
  result.carrier = here.carrier();
  here.run_alone(last);
  here.stop();
  return result;
}

} // namespace tokenrouter::bench
