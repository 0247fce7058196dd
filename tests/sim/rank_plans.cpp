#include "tests/sim/rank_plans.hpp"

#include "runtime/core/limits.hpp"

namespace tokenrouter::sim {

namespace {

/// Loads a scripted model and keeps a look at it.
model_loader loader_of(const scripted_options& options, shard_id id, shard_backends& all) {
  return [options, id, &all](const shard_group&) -> result<std::unique_ptr<backend>> {
    auto made = std::make_unique<scripted_backend>(options);
    all[id] = made.get();
    return made;
  };
}

/// Whether all shards of a replica have run as many steps as the one that leads it.
std::function<bool()> in_step_of(replica_id id, std::size_t followers, const shard_backends& all) {
  return [id, followers, &all] {
    const auto leader = all.find({id, 0});
    for (std::size_t i = 1; leader != all.end() && i <= followers; ++i) {
      const auto other = all.find({id, static_cast<std::uint16_t>(i)});
      if (other != all.end() && other->second->steps() < leader->second->steps())
        return false;
    }
    return true;
  };
}

bool exchanges_kv(const scenario& s, std::size_t model) {
  return s.placement[model].size() > 1 && s.fetch_min_tokens > 0;
}

/// The shards that follow the leading one of a replica, those of this rank with what they run.
void plan_followers(const scenario& s, replica_id id, shard_backends& all, rank_plan& plan) {
  const std::size_t model = id.model.value;
  const auto& ranks = s.followers[model][id.index];
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const shard_id shard{id, static_cast<std::uint16_t>(i + 1)};
    plan.shards.emplace(shard, ranks[i]);
    if (ranks[i] == plan.self)
      plan.followers.push_back({.self = shard,
                                .group = {},
                                .kv_blocks = s.pool_blocks[model],
                                .moves_kv = exchanges_kv(s, model),
                                .cores = {},
                                .load = loader_of(s.backends[model], shard, all)});
  }
}

} // namespace

rank_plan plan_of(const scenario& s, rank_id self, shard_backends& all) {
  rank_plan plan;
  plan.self = self;
  plan.ranks = s.ranks;
  plan.make_entry = [&s]() -> std::unique_ptr<const method_entry> {
    return make_entry(s.topology, s.parameters).value();
  };
  plan.thresholds = s.thresholds;
  plan.eos_tokens = {0};
  plan.context_tokens_max = context_tokens_max;
  plan.vocab_tokens = vocab_tokens;
  plan.heartbeat_us = 50'000;
  plan.peer_timeout_us = peer_timeout_us;
  plan.inline_models = true;
  if (s.fetch_min_tokens > 0) {
    plan.fetch_piece_bytes = plan.in_place_piece_bytes = s.fetch_piece_bytes;
    plan.bulk_bytes_max = s.bulk_bytes_max;
  }
  plan.takes_clients = self == rank_id{0};
  plan.degrade = s.degrade;
  for (std::size_t i = 0; i < s.placement.size(); ++i) {
    const model_id model{static_cast<std::uint16_t>(i)};
    const std::string name = "m" + std::to_string(i);
    plan.admission.push_back({name, context_tokens_max, 0, static_cast<double>(i)});
    for (std::size_t copy = 0; copy < s.placement[i].size(); ++copy) {
      const replica_id id{model, static_cast<std::uint16_t>(copy)};
      plan.replicas.push_back({id, s.placement[i][copy]});
      plan_followers(s, id, all, plan);
      if (s.placement[i][copy] != self)
        continue;
      local_replica replica;
      replica.facts = {id, s.pool_blocks[i] * limits::block_tokens, vocab_tokens, 1};
      replica.limits = {s.max_batch_rows[i], s.prefill_chunk_tokens[i]};
      replica.kv_blocks = s.pool_blocks[i];
      replica.keep_prefixes = s.keep_prefixes;
      if (exchanges_kv(s, i))
        replica.fetch_min_tokens = s.fetch_min_tokens;
      replica.group.count = static_cast<std::uint32_t>(1 + s.followers[i][copy].size());
      replica.in_step = in_step_of(id, s.followers[i][copy].size(), all);
      replica.load = loader_of(s.backends[i], {id, 0}, all);
      replica.make_role = [&s, model]() -> std::unique_ptr<const method_role> {
        return make_role(model, s.topology, s.parameters).value();
      };
      plan.local.push_back(std::move(replica));
    }
  }
  return plan;
}

} // namespace tokenrouter::sim
