#include "actors/supervisor_state.hpp"

namespace tokenrouter {

supervisor_state::supervisor_state(supervisor_config config) : config_(std::move(config)) {}

bool supervisor_state::on_model_loaded(shard_id shard) {
  loaded_.insert(shard);
  return loaded_.size() == config_.local.size() + config_.followers;
}

std::optional<job_end> supervisor_state::on_model_failed(const model_failed& x) {
  const auto& names = config_.model_names;
  const std::size_t index = x.shard.replica.model.value;
  const std::string name = index < names.size() ? names[index] : std::to_string(index);
  const char* what = x.running ? "' can't go on: " : "' can't be loaded: ";
  return end_once({1, "model '" + name + what + x.why.message, true});
}

std::optional<std::vector<replica_facts>> supervisor_state::on_rank_ready(const rank_ready& x) {
  if (!ready_ranks_.insert(x.rank).second)
    return std::nullopt;
  ready_.insert(ready_.end(), x.replicas.begin(), x.replicas.end());
  if (ready_ranks_.size() != config_.ranks)
    return std::nullopt;
  return ready_;
}

std::optional<job_end> supervisor_state::on_peer_down(const peer_down& x) {
  gone_.insert(x.peer);
  return end_once({1,
                   "rank " + std::to_string(x.peer.value) + " is lost: " + x.why +
                       "; the job ends (system.on_peer_loss: fail)",
                   true});
}

std::optional<job_end> supervisor_state::on_peer_left(rank_id peer) {
  gone_.insert(peer);
  // Rank 0 says `end_job` before it leaves; a rank that leaves without it was told by someone else.
  if (peer == rank_id{0})
    return end_once({1, "rank 0 left before the job was over", false});
  return std::nullopt;
}

std::optional<job_end> supervisor_state::on_finished(std::uint8_t exit_code) {
  return end_once({exit_code, {}, true});
}

std::optional<job_end> supervisor_state::on_end(const end_job& x) {
  return end_once({x.exit_code, x.reason, false});
}

std::optional<job_end> supervisor_state::on_actor_down(const std::string& name) {
  return end_once({1, "actor '" + name + "' ended unexpectedly; the job ends", true});
}

std::optional<job_end> supervisor_state::end_once(job_end end) {
  if (ended_)
    return std::nullopt;
  ended_ = true;
  end.tell_user = !end.reason.empty() && speaks_for_the_job();
  return end;
}

/// All survivors learn why the job ends; the lowest of them tells the user.
bool supervisor_state::speaks_for_the_job() const {
  for (std::uint32_t r = 0; r < config_.self.value; ++r)
    if (gone_.count({r}) == 0)
      return false;
  return true;
}

} // namespace tokenrouter
