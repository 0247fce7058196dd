#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/exec/step.hpp"

/// The protocol between ranks (messages.hpp): what is of the job and its replicas, not of one
/// request. Ids, as both parts carry them.
namespace tokenrouter {

template <class Inspector>
auto inspect(Inspector& f, rank_id& x) {
  return f(x.value);
}
template <class Inspector>
auto inspect(Inspector& f, model_id& x) {
  return f(x.value);
}
template <class Inspector>
auto inspect(Inspector& f, replica_id& x) {
  return f(x.model, x.index);
}
template <class Inspector>
auto inspect(Inspector& f, shard_id& x) {
  return f(x.replica, x.index);
}
template <class Inspector>
auto inspect(Inspector& f, request_id& x) {
  return f(x.value);
}

/// gateway → every scheduler: how is it?
struct status_query {
  std::uint64_t number = 0; ///< of the gateway's questions
  rank_id home;             ///< who asks
  replica_id to;

  template <class Inspector>
  friend auto inspect(Inspector& f, status_query& x) {
    return f(x.number, x.home, x.to);
  }
};

/// scheduler → gateway of `home`: answers `status_query`.
struct replica_status {
  std::uint64_t number = 0;
  rank_id home;
  replica_id from;
  std::uint32_t total_blocks = 0;
  std::uint32_t used_blocks = 0; ///< held for requests, parked ones included; cache alone is not
  std::uint64_t step_age_us = 0; ///< how long the model has been at its step; 0: none under way

  template <class Inspector>
  friend auto inspect(Inspector& f, replica_status& x) {
    return f(x.number, x.home, x.from, x.total_blocks, x.used_blocks, x.step_age_us);
  }
};

/// What a rank tells of a replica it hosts.
struct replica_facts {
  replica_id replica;
  std::uint32_t pool_tokens = 0;
  std::uint32_t vocab_tokens = 0; ///< ids of the tokenizer
  std::uint64_t vocabulary_fingerprint = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, replica_facts& x) {
    return f(x.replica, x.pool_tokens, x.vocab_tokens, x.vocabulary_fingerprint);
  }
};

/// supervisor → supervisor of rank 0: all models of `rank` are loaded.
struct rank_ready {
  rank_id rank;
  std::vector<replica_facts> replicas;

  template <class Inspector>
  friend auto inspect(Inspector& f, rank_ready& x) {
    return f(x.rank, x.replicas);
  }
};

/// leading model → every other shard of its replica, once: the group to join before it loads.
struct shard_invite {
  shard_id to;
  std::vector<std::uint8_t> group;

  template <class Inspector>
  friend auto inspect(Inspector& f, shard_invite& x) {
    return f(x.to, x.group);
  }
};

/// scheduler → every shard of its replica but the leading one: run this step with the others.
struct shard_step {
  shard_id to;
  step_input step;

  template <class Inspector>
  friend auto inspect(Inspector& f, shard_step& x) {
    return f(x.to, x.step);
  }
};

/// scheduler → every shard of its replica but the leading one: steps may come at any moment now, or
/// not before the next such message.
struct shard_awake {
  shard_id to;
  bool awake = false;

  template <class Inspector>
  friend auto inspect(Inspector& f, shard_awake& x) {
    return f(x.to, x.awake);
  }
};

/// supervisor → supervisor of rank 0, which decides: this rank has lost `peer`.
struct peer_lost {
  rank_id peer;
  std::string why;

  template <class Inspector>
  friend auto inspect(Inspector& f, peer_lost& x) {
    return f(x.peer, x.why);
  }
};

/// supervisor of rank 0 → every other supervisor: the job goes on without rank `lost`.
struct rank_lost {
  rank_id to;
  rank_id lost;

  template <class Inspector>
  friend auto inspect(Inspector& f, rank_lost& x) {
    return f(x.to, x.lost);
  }
};

/// supervisor → supervisor of another rank: the job is over. `exit_code` 0: as intended.
struct end_job {
  rank_id to;
  std::uint8_t exit_code = 0;
  std::string reason; ///< one line for the user; empty: it ended as intended

  template <class Inspector>
  friend auto inspect(Inspector& f, end_job& x) {
    return f(x.to, x.exit_code, x.reason);
  }
};

bool valid(const status_query& x);
bool valid(const replica_status& x);
bool valid(const rank_ready& x);
bool valid(const shard_invite& x);
bool valid(const shard_step& x);
bool valid(const shard_awake& x);
bool valid(const peer_lost& x);
bool valid(const rank_lost& x);
bool valid(const end_job& x);

} // namespace tokenrouter
