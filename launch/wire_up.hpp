#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor_system.hpp>

#include "actors/gateway.hpp"
#include "actors/link.hpp"
#include "actors/model.hpp"
#include "actors/planner.hpp"
#include "actors/scheduler.hpp"
#include "actors/supervisor.hpp"
#include "actors/switchboard.hpp"
#include "actors/tracer.hpp"
#include "runtime/reactor/poller.hpp"
#include "runtime/reactor/reactor.hpp"
#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// One replica as every rank knows it.
struct replica_plan {
  replica_id replica;
  rank_id rank;
};

/// A replica of this rank: what its actors are made of.
struct local_replica {
  replica_facts facts;
  batch_limits limits;
  std::uint32_t kv_blocks = 0;
  bool keep_prefixes = true;          ///< its pool has a prefix cache
  bool drop_kv = false;               ///< at a handoff
  std::uint32_t fetch_min_tokens = 0; ///< fetched from siblings; 0: none is, nor given to them
  bool reads_in_place = true;         ///< from siblings, where it can
  std::vector<int> cores;             ///< of its model's threads; empty: any
  shard_group group{};                ///< of its leading shard, which runs here
  group_maker make_group{};           ///< if there are others
  model_loader load;
  std::function<std::unique_ptr<const method_role>()> make_role;
  std::function<bool()> in_step{}; ///< see model_options
};

/// A shard of this rank whose replica another shard leads.
struct local_follower {
  shard_id self;
  shard_group group; ///< without its id, which the leading shard makes
  std::uint32_t kv_blocks = 0;
  bool moves_kv = false;      ///< its replica exchanges KV with siblings
  bool reads_in_place = true; ///< … by reading their pools where it can
  std::vector<int> cores;
  model_loader load;
};

/// Everything one rank's actors are made from. Plain values and factories; nothing here is of a
/// device or a network library.
struct rank_plan {
  rank_id self;
  std::uint32_t ranks = 1;
  std::vector<replica_plan> replicas;    ///< of the job
  std::vector<local_replica> local;      ///< of this rank
  std::map<shard_id, rank_id> shards;    ///< of the job, but those that lead their replica
  std::vector<local_follower> followers; ///< of these, this rank's
  std::function<std::unique_ptr<const method_entry>()> make_entry;
  std::vector<token_id> eos_tokens;
  std::vector<admission_model> admission; ///< index = model_id; pools come with readiness
  std::uint32_t context_tokens_max = 0;
  std::uint32_t vocab_tokens = 0;
  hello greeting;
  std::uint64_t heartbeat_us = 200'000;
  std::uint64_t peer_timeout_us = 5'000'000;
  std::uint32_t model_spin_us = 0;
  std::vector<batching_thresholds> thresholds; ///< index = model_id; empty: no delay
  std::uint64_t delay_timeout_us = 0;          ///< see scheduler_config
  std::optional<planner_config> automatic;     ///< thresholds are set while the job runs
  std::size_t fetch_piece_bytes = limits::bulk_piece_bytes;        ///< of KV that siblings fetch
  std::size_t in_place_piece_bytes = limits::in_place_piece_bytes; ///< … by reading it in place
  std::size_t bulk_bytes_max = limits::bulk_bytes_max;             ///< in flight, each way
  bool inline_models = false; ///< models run in the reactor's thread: simulation
  bool takes_clients = false; ///< has a gateway
  bool degrade = false;       ///< goes on without a rank that is lost
  std::function<std::unique_ptr<text_stream>()> make_text; ///< null: tokens only
  tracer::sink_factory open_trace;                         ///< null: no trace
  /// Of each replica with a shard here: set when it is lost or the job ends, so that nobody waits
  /// for its other shards any more.
  std::map<replica_id, std::shared_ptr<std::atomic<bool>>> stop_shards;
  /// Rank 0: every rank is ready, with all replicas of the job; may be null.
  std::function<void(const std::vector<replica_facts>&)> on_ready;
  /// The job goes on without a rank; may be null.
  std::function<void(const job_loss&)> on_loss;
};

/// The actors of one rank. The only place that spawns. Lives on the reactor's thread, and less long
/// than the actor system and the transport.
class rank_actors {
 public:
  /// `wire` is null for a job of one rank.
  rank_actors(caf::actor_system& system, rank_plan plan, transport* wire);

  /// Shuts down if nobody did.
  ~rank_actors();

  const gateway_actor& gateway() const { return local_.gateway; } ///< null without clients
  const supervisor_actor& supervisor() const { return local_.supervisor; }

  /// KV pools of this rank's replicas. Drop the handles before `shut_down`.
  std::vector<kv_pool_actor> pools() const { return pools_; }

  const bulk_mover& bulk() const { return mover_; }

  /// How the job ended for this rank; none while it runs.
  const std::optional<job_end>& end() const { return end_; }

  /// Ranks that the job goes on without.
  const std::set<rank_id>& lost_ranks() const { return lost_ranks_; }

  /// Peers that have missed two heartbeats, by name; empty: none, all is well.
  std::string find_silent_peers() const;

  /// Waits until every peer has what was sent to it, and a goodbye after it; 2 s at most.
  void say_goodbye();

  /// Says goodbye, sends exit to every actor, drops all handles, and runs the loop
  /// until they are gone.
  void shut_down();

 private:
  struct kept_actor {
    std::string name;
    caf::actor one;
    std::optional<replica_id> replica; ///< whose shard it runs
  };

  void keep(std::string name, caf::actor one, std::optional<replica_id> replica = {});
  void stop_all_shards();
  void note_loss(const job_loss& loss);
  void spawn_tracer();
  void spawn_gateway();
  void spawn_supervisor();
  void spawn_planner();
  void spawn_replica(const local_replica& replica);
  kv_fetcher_actor spawn_fetcher(const local_replica& replica, const kv_pool_actor& pool);
  void spawn_mover(kv_mover_config config, const caf::actor& runner);
  void spawn_follower(const local_follower& follower);
  caf::actor spawn_model(model_options options);
  void spawn_links(transport& wire);
  void take_frame(rank_id from, const frame_header& header, std::span<const std::byte> payload);
  void note_in_flight(bool busy);

  caf::actor_system& system_;
  reactor& reactor_;
  rank_plan plan_;
  transport* wire_;
  bulk_mover mover_;
  std::unique_ptr<poller> wire_poller_;
  local_actors local_;
  switchboard_actor switchboard_;
  tracer_actor tracer_;
  std::vector<kv_pool_actor> pools_;
  std::vector<kept_actor> all_; ///< every actor spawned, in order
  std::optional<job_end> end_;
  std::set<rank_id> lost_ranks_;
  std::unordered_map<rank_id, std::uint64_t> heard_us_; ///< when a frame last came from each peer
  std::size_t closed_links_ = 0; ///< whose goodbye has arrived, or whose peer is gone
  std::shared_ptr<std::atomic<bool>> stop_planner_ = std::make_shared<std::atomic<bool>>(false);
  bool down_ = false;
};

} // namespace tokenrouter
