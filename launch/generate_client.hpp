#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <caf/typed_event_based_actor.hpp>

#include "actors/gateway.hpp"
#include "actors/supervisor.hpp"
#include "launch/prompts.hpp"

namespace tokenrouter {

/// Told of everything that happens to the prompts of one run, on the reactor's thread.
class generate_observer {
 public:
  virtual ~generate_observer() = default;
  virtual void on_delta(std::size_t entry, const token_delta& x) = 0;
  virtual void on_done(std::size_t entry, const request_done& x) = 0;
};

struct generate_run {
  std::vector<prompt_entry> entries; ///< those with a failure are reported, not submitted
  std::uint32_t concurrency = 1;     ///< requests under way at a time
  gateway_actor gateway;
  supervisor_actor supervisor;           ///< told when all is done
  generate_observer* observer = nullptr; ///< outlives the run
};

struct generate_box {
  std::shared_ptr<generate_run> run;
  std::size_t next = 0;
  std::size_t under_way = 0;
  bool failed = false;
};

/// Submits the entries in order, so many at a time, and ends the job after the last: with exit code
/// 1 if any of them failed.
request_client::behavior_type generate_client(request_client::stateful_pointer<generate_box> self,
                                              std::shared_ptr<generate_run> run);

} // namespace tokenrouter
