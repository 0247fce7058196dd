#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <caf/blocking_actor.hpp>
#include <caf/typed_actor.hpp>

#include "actors/local_messages.hpp"

namespace tokenrouter {

/// A tracer as those see it who record.
using tracer_actor = caf::typed_actor<caf::reacts_to<trace_batch>>;

/// Where a rank's events go. Implemented by runtime/trace; called from the tracer's thread alone.
class trace_sink {
 public:
  virtual ~trace_sink() = default;
  virtual void append(const trace_batch& batch) = 0;
  /// Makes what was appended readable by others. Called a few times a second and at the end.
  virtual void flush() = 0;
};

/// Writes events with a thread of its own (spawn it `caf::detached`), so that a slow disk never
/// holds up a step. Takes `trace_batch`; ends on exit after writing all it was sent before.
class tracer final : public caf::blocking_actor {
 public:
  /// Opens the sink in the tracer's own thread: HDF5 is used by one thread only. Null: what it is
  /// sent is dropped; the rank runs on.
  using sink_factory = std::function<std::unique_ptr<trace_sink>()>;

  tracer(caf::actor_config& config, sink_factory open);
  void act() override;

 private:
  sink_factory open_;
};

} // namespace tokenrouter
