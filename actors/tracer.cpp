#include "actors/tracer.hpp"

#include <chrono>

namespace tokenrouter {

namespace {

constexpr std::chrono::milliseconds flush_period{250};

} // namespace

tracer::tracer(caf::actor_config& config, sink_factory open)
    : blocking_actor(config), open_(std::move(open)) {}

void tracer::act() {
  const auto sink = open_();
  bool running = true;
  bool unflushed = false;
  auto flush_at = std::chrono::steady_clock::now() + flush_period;
  while (running) {
    receive(
        [&](const trace_batch& x) {
          if (!sink)
            return;
          sink->append(x);
          unflushed = true;
        },
        [&](caf::exit_msg&) { running = false; }, caf::after(flush_period) >> [] {});
    if (unflushed && std::chrono::steady_clock::now() >= flush_at) {
      sink->flush();
      unflushed = false;
      flush_at = std::chrono::steady_clock::now() + flush_period;
    }
  }
  if (sink)
    sink->flush();
}

} // namespace tokenrouter
