#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/local_messages.hpp"

namespace tokenrouter {

struct supervisor_config {
  rank_id self;
  std::uint32_t ranks = 1;
  std::vector<replica_facts> local;     ///< replicas that this rank leads
  std::uint32_t followers = 0;          ///< its shards of replicas that another shard leads
  std::vector<std::string> model_names; ///< index = model_id
};

/// How this rank must end.
struct job_end {
  std::uint8_t exit_code = 0;
  std::string reason;      ///< one line for the user; empty: it ended as intended
  bool tell_peers = false; ///< this rank is the first to know
  bool tell_user = false;  ///< of all ranks that end, this one prints the reason
};

/// What a supervisor knows. Free of CAF. Every transition returns the end of the job if it brings
/// it about; there is only one end.
class supervisor_state {
 public:
  explicit supervisor_state(supervisor_config config);

  /// True when this was the last model of the rank.
  bool on_model_loaded(shard_id shard);

  std::optional<job_end> on_model_failed(const model_failed& x);

  /// Rank 0. All replicas once the last rank is ready.
  std::optional<std::vector<replica_facts>> on_rank_ready(const rank_ready& x);

  std::optional<job_end> on_peer_down(const peer_down& x);
  std::optional<job_end> on_peer_left(rank_id peer);
  std::optional<job_end> on_finished(std::uint8_t exit_code);
  std::optional<job_end> on_end(const end_job& x);
  std::optional<job_end> on_actor_down(const std::string& name);

  bool ended() const { return ended_; }
  const supervisor_config& config() const { return config_; }

 private:
  std::optional<job_end> end_once(job_end end);
  bool speaks_for_the_job() const;

  supervisor_config config_;
  std::set<shard_id> loaded_;
  std::set<rank_id> gone_;
  std::set<rank_id> ready_ranks_;
  std::vector<replica_facts> ready_;
  bool ended_ = false;
};

} // namespace tokenrouter
