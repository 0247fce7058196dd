#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/local_messages.hpp"

namespace tokenrouter {

struct supervisor_config {
  rank_id self;
  std::uint32_t ranks = 1;
  std::vector<replica_facts> local;     ///< replicas that this rank leads
  std::uint32_t followers = 0;          ///< its shards of replicas that another shard leads
  std::vector<std::string> model_names; ///< index = model_id
  bool degrade = false;                 ///< the job goes on without a rank that is lost, if it can
  std::vector<std::pair<replica_id, rank_id>> shards{}; ///< where each shard of each replica is
  std::uint32_t fetchers = 0;                           ///< of `local`, those with a kv_fetcher
};

/// How this rank must end.
struct job_end {
  std::uint8_t exit_code = 0;
  std::string reason;      ///< one line for the user; empty: it ended as intended
  bool tell_peers = false; ///< this rank is the first to know
  bool tell_user = false;  ///< of all ranks that end, this one prints the reason
};

/// The job goes on without a rank.
struct job_loss {
  rank_id rank;
  std::vector<replica_id> replicas; ///< that had a shard there and none elsewhere that was lost
  std::string line;                 ///< for the user; empty: another rank tells it
};

/// What the loss of a peer means.
struct peer_outcome {
  std::optional<job_end> end{};
  std::optional<job_loss> loss{};
  bool ask = false; ///< rank 0 is to decide
};

/// What a supervisor knows. Free of CAF. Every transition returns the end of the job if it brings
/// it about; there is only one end.
///
/// Which ranks are lost is decided by rank 0 alone, so that all agree: a job cannot go on without
/// it, where clients come in. Others tell it what they see.
class supervisor_state {
 public:
  explicit supervisor_state(supervisor_config config);

  /// True when nothing of this rank is waited for any more: a job is not ready while the first
  /// requests would have to wait for ways to KV.
  bool on_model_loaded(shard_id shard);
  bool on_kv_settled(replica_id replica);

  std::optional<job_end> on_model_failed(const model_failed& x);

  /// Rank 0. All replicas once the last rank is ready.
  std::optional<std::vector<replica_facts>> on_rank_ready(const rank_ready& x);

  peer_outcome on_peer_down(const peer_down& x);
  peer_outcome on_peer_left(rank_id peer);

  /// Rank 0: another rank has lost it.
  peer_outcome on_peer_lost(const peer_lost& x);

  /// Rank 0 has decided. None if it is known.
  std::optional<job_loss> on_rank_lost(rank_id lost);

  /// True if the step may have failed because a rank is gone that is not known to be lost yet: then
  /// the same message comes again, `waited`.
  bool hold_failure(const model_failed& x);
  std::optional<job_end> on_finished(std::uint8_t exit_code);
  std::optional<job_end> on_end(const end_job& x);
  std::optional<job_end> on_actor_down(const std::string& name,
                                       const std::optional<replica_id>& replica = {});

  bool ended() const { return ended_; }
  const std::set<rank_id>& lost_ranks() const { return lost_ranks_; }
  const supervisor_config& config() const { return config_; }

 private:
  std::optional<job_end> end_once(job_end end);
  bool speaks_for_the_job() const;
  bool rank_is_ready() const;
  bool ready() const { return ready_ranks_.size() == config_.ranks; }
  peer_outcome lose(rank_id rank, const std::string& why);
  job_loss take_loss(rank_id rank);
  std::uint32_t replicas_left(model_id model) const;
  std::string loss_line(const job_loss& loss, const std::string& why) const;

  supervisor_config config_;
  std::set<shard_id> loaded_;
  std::set<replica_id> settled_;
  std::set<rank_id> gone_;
  std::set<rank_id> lost_ranks_; ///< of these, those that the job goes on without
  std::set<replica_id> lost_replicas_;
  std::set<replica_id> held_failures_;
  std::set<rank_id> ready_ranks_;
  std::vector<replica_facts> ready_;
  bool ended_ = false;
};

} // namespace tokenrouter
