#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>

#include "actors/kv_pool.hpp"
#include "launch/wire_up.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"
#include "runtime/methods/registry.hpp"

/// One whole rank: the product's actors over scripted models.
namespace tokenrouter::test {

struct rank_options {
  std::vector<std::string> roles{"plain"}; ///< one for each model
  double threshold = 0.5;                  ///< of r2r
  std::uint32_t pool_blocks = 16;          ///< of each model
  std::uint32_t rows_max = 64;
  double eos_odds = 0.02;
  std::uint32_t step_us = 10;
  bool virtual_time = true;
  bool loads = true;                 ///< false: no model can be loaded
  tracer::sink_factory open_trace{}; ///< null: no trace
  std::function<std::unique_ptr<backend>(std::unique_ptr<backend>)> wrap{}; ///< around each model
};

inline constexpr std::uint32_t rank_vocab_tokens = 64;
inline constexpr std::uint32_t rank_context_tokens = 256;

/// What a client was told.
struct client_log {
  std::map<std::uint64_t, request_done> done;
  std::map<std::uint64_t, std::vector<commit>> streamed;
  std::map<std::uint64_t, std::vector<scored_token_info>> prompts;
  std::uint64_t answers = 0; ///< more than done.size(): a request was answered twice
};

using rank_client = request_client::extend<caf::reacts_to<submit>, caf::reacts_to<cancel>>;

class rank_bench {
 public:
  explicit rank_bench(rank_options options = {});
  ~rank_bench();

  /// Posts a request; it is looked at when the loop runs.
  void submit(std::uint64_t tag, std::vector<token_id> prompt, std::uint32_t max_new_tokens);
  void post(tokenrouter::submit order);
  void cancel(std::uint64_t tag);

  /// Runs what is runnable, then timer after timer until `us`. Requires virtual time.
  void run_until(std::uint64_t us);

  /// Runs until that many requests are answered or nothing moves any more. Requires virtual time.
  void run_until_answered(std::size_t count);

  /// What the models make of a prompt, by the method's definition alone.
  std::vector<token_id> expected(const std::vector<token_id>& prompt,
                                 std::uint32_t max_new_tokens) const;

  /// True if every pool has all its blocks back, free or as cache, and none is parked.
  bool pools_are_whole();

  /// Posts exit to everyone and runs the loop until nobody is left.
  void shut_down();

  std::size_t running_actors() { return system_.registry().running(); }
  reactor& loop() { return reactor::of(system_); }
  caf::actor_system& system() { return system_; }
  rank_actors& actors() { return *actors_; }
  const client_log& log() const { return log_; }

 private:
  rank_plan plan() const;
  method_topology topology() const;
  method_parameters parameters() const;
  scripted_options backend_of(std::size_t model) const;

  rank_options options_;
  client_log log_;
  reactor_config config_;
  caf::actor_system system_;
  std::unique_ptr<rank_actors> actors_;
  rank_client client_;
};

} // namespace tokenrouter::test
