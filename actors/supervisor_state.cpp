#include "actors/supervisor_state.hpp"

#include <algorithm>

namespace tokenrouter {

supervisor_state::supervisor_state(supervisor_config config) : config_(std::move(config)) {}

bool supervisor_state::on_model_loaded(shard_id shard) {
  return loaded_.insert(shard).second && rank_is_ready();
}

bool supervisor_state::on_kv_settled(replica_id replica) {
  return settled_.insert(replica).second && rank_is_ready();
}

bool supervisor_state::rank_is_ready() const {
  return loaded_.size() == config_.local.size() + config_.followers &&
         settled_.size() == config_.fetchers;
}

std::optional<job_end> supervisor_state::on_model_failed(const model_failed& x) {
  if (lost_replicas_.contains(x.shard.replica))
    return std::nullopt;
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

bool supervisor_state::hold_failure(const model_failed& x) {
  const bool holds =
      config_.degrade && x.running && !x.waited &&
      std::any_of(config_.shards.begin(), config_.shards.end(), [&](const auto& shard) {
        return shard.first == x.shard.replica && shard.second != config_.self;
      });
  if (holds)
    held_failures_.insert(x.shard.replica);
  return holds;
}

peer_outcome supervisor_state::on_peer_down(const peer_down& x) {
  if (lost_ranks_.contains(x.peer))
    return {};
  gone_.insert(x.peer);
  if (config_.degrade && config_.self != rank_id{0} && x.peer != rank_id{0} && !ended_)
    return {.ask = true};
  return lose(x.peer, x.why);
}

peer_outcome supervisor_state::on_peer_left(rank_id peer) {
  gone_.insert(peer);
  // Rank 0 says `end_job` before it leaves; a rank that leaves without it was told by someone else.
  if (peer == rank_id{0})
    return {.end = end_once({1, "rank 0 left before the job was over", false})};
  if (config_.degrade && config_.self == rank_id{0} && !lost_ranks_.contains(peer))
    return lose(peer, "it left before the job was over");
  return {};
}

peer_outcome supervisor_state::on_peer_lost(const peer_lost& x) {
  if (x.peer == config_.self || lost_ranks_.contains(x.peer))
    return {};
  return lose(x.peer, x.why);
}

std::optional<job_loss> supervisor_state::on_rank_lost(rank_id lost) {
  if (lost_ranks_.contains(lost) || ended_)
    return std::nullopt;
  return take_loss(lost);
}

/// Ends the job or, where rank 0 decides so, goes on without the rank.
peer_outcome supervisor_state::lose(rank_id rank, const std::string& why) {
  const std::string name = "rank " + std::to_string(rank.value) + " is lost: " + why;
  if (!config_.degrade)
    return {.end = end_once({1, name + "; the job ends (system.on_peer_loss: fail)", true})};
  if (ended_)
    return {};
  // Every rank sees the death of rank 0 itself; one that only lost its way there ends alone.
  if (config_.self != rank_id{0})
    return {.end = end_once({1, name + "; the job can't go on without it", false})};
  if (!ready())
    return {.end = end_once({1, name + "; the job ends, since it was not ready yet", true})};
  auto loss = take_loss(rank);
  std::uint32_t left = 0;
  for (std::uint16_t model = 0; model < config_.model_names.size(); ++model)
    left += replicas_left({model});
  if (left == 0)
    return {.end = end_once({1, name + "; the job ends, since no model is left", true})};
  loss.line = loss_line(loss, name);
  return {.loss = std::move(loss)};
}

job_loss supervisor_state::take_loss(rank_id rank) {
  gone_.insert(rank);
  lost_ranks_.insert(rank);
  job_loss loss{rank, {}, {}};
  for (const auto& [replica, where] : config_.shards)
    if (where == rank && lost_replicas_.insert(replica).second)
      loss.replicas.push_back(replica);
  return loss;
}

std::uint32_t supervisor_state::replicas_left(model_id model) const {
  std::set<replica_id> left;
  for (const auto& [replica, where] : config_.shards)
    if (replica.model == model && !lost_replicas_.contains(replica))
      left.insert(replica);
  return static_cast<std::uint32_t>(left.size());
}

std::string supervisor_state::loss_line(const job_loss& loss, const std::string& why) const {
  std::string line = why + "; the job goes on";
  std::set<model_id> models;
  for (const replica_id replica : loss.replicas)
    models.insert(replica.model);
  for (const model_id model : models) {
    const std::uint32_t left = replicas_left(model);
    line += "; model '" + config_.model_names.at(model.value) + "' ";
    line += left == 0 ? "is out of service: requests go on without it"
                      : "has " + std::to_string(left) + (left == 1 ? " replica" : " replicas") +
                            " left: requests of the lost go on there";
  }
  return line;
}

std::optional<job_end> supervisor_state::on_finished(std::uint8_t exit_code) {
  return end_once({exit_code, {}, true});
}

std::optional<job_end> supervisor_state::on_end(const end_job& x) {
  return end_once({x.exit_code, x.reason, false});
}

std::optional<job_end> supervisor_state::on_actor_down(const std::string& name,
                                                       const std::optional<replica_id>& replica) {
  if (replica && (lost_replicas_.contains(*replica) || held_failures_.contains(*replica)))
    return std::nullopt;
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
