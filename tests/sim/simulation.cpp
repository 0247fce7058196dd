#include "tests/sim/simulation.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "launch/wire_up.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/log.hpp"

namespace tokenrouter::sim {

namespace {

constexpr std::uint64_t limit_us = 60'000'000;
constexpr std::uint64_t settle_us = 2'000'000; // the last words of a fetch may have to come again
constexpr std::uint64_t peer_timeout_us = 500'000;

struct client_log {
  std::map<std::uint64_t, request_done> done;
  std::map<std::uint64_t, std::vector<commit>> streamed;
  std::map<std::uint64_t, std::vector<std::vector<scored_token_info>>> prompts;
  std::uint64_t answers_twice = 0;
};

struct client_box {
  client_log* log = nullptr;
};

using client_actor = request_client::extend<caf::reacts_to<submit>, caf::reacts_to<cancel>>;

client_actor::behavior_type client(client_actor::stateful_pointer<client_box> self, client_log* log,
                                   gateway_actor gateway) {
  return {
      [log](const token_delta& x) {
        auto& list = log->streamed[x.client_tag];
        list.insert(list.end(), x.commits.begin(), x.commits.end());
        if (!x.prompt.empty())
          log->prompts[x.client_tag].push_back(x.prompt);
      },
      [log](const request_done& x) {
        if (!log->done.emplace(x.client_tag, x).second)
          ++log->answers_twice;
      },
      [self, gateway](submit& x) { self->send(gateway, std::move(x)); },
      [self, gateway](const cancel& x) { self->send(gateway, x); },
  };
}

/// One rank: a system of its own with a virtual clock.
struct rank_world {
  reactor_config config{true};
  caf::actor_system system{config};
  std::unique_ptr<rank_actors> actors;
  reactor& loop() { return reactor::of(system); }
};

using shard_backends = std::map<shard_id, const scripted_backend*>;

/// Loads a scripted model and keeps a look at it.
model_loader loader_of(const scripted_options& options, shard_id id, shard_backends& all) {
  return [options, id, &all](const shard_group&) -> result<std::unique_ptr<backend>> {
    auto made = std::make_unique<scripted_backend>(options);
    all[id] = made.get();
    return made;
  };
}

/// The shards that follow the leading one of a replica, those of this rank with what they run.
void plan_followers(const scenario& s, replica_id id, shard_backends& all, rank_plan& plan) {
  const std::size_t model = id.model.value;
  const auto& ranks = s.followers[model][id.index];
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const shard_id shard{id, static_cast<std::uint16_t>(i + 1)};
    plan.shards.emplace(shard, ranks[i]);
    if (ranks[i] == plan.self)
      plan.followers.push_back(
          {shard, {}, s.pool_blocks[model], {}, loader_of(s.backends[model], shard, all)});
  }
}

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
    plan.fetch_piece_bytes = s.fetch_piece_bytes;
    plan.bulk_bytes_max = s.bulk_bytes_max;
  }
  plan.takes_clients = self == rank_id{0};
  for (std::size_t i = 0; i < s.placement.size(); ++i) {
    const model_id model{static_cast<std::uint16_t>(i)};
    const std::string name = "m" + std::to_string(i);
    plan.admission.push_back({name, context_tokens_max, 0});
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
      if (s.placement[i].size() > 1 && s.followers[i][copy].empty())
        replica.fetch_min_tokens = s.fetch_min_tokens;
      replica.group.count = static_cast<std::uint32_t>(1 + s.followers[i][copy].size());
      replica.load = loader_of(s.backends[i], {id, 0}, all);
      replica.make_role = [&s, model]() -> std::unique_ptr<const method_role> {
        return make_role(model, s.topology, s.parameters).value();
      };
      plan.local.push_back(std::move(replica));
    }
  }
  return plan;
}

std::vector<token_id> tokens_of(const std::vector<expected_token>& output) {
  std::vector<token_id> tokens;
  for (const auto& x : output)
    tokens.push_back(x.token);
  return tokens;
}

class world {
 public:
  explicit world(const scenario& s) : s_(s), network_(s.ranks, s.seed, s.network) {
    for (std::uint32_t r = 0; r < s.ranks; ++r) {
      ranks_.push_back(std::make_unique<rank_world>());
      ranks_[r]->actors =
          std::make_unique<rank_actors>(ranks_[r]->system, plan_of(s, {r}, shards_),
                                        s.ranks > 1 ? &network_.endpoint({r}) : nullptr);
    }
    client_ = ranks_[0]->system.spawn(client, &log_, ranks_[0]->actors->gateway());
    for (std::size_t i = 0; i < s.requests.size(); ++i) {
      events_.emplace(s.submit_us[i] + 2, [this, i] { caf::anon_send(client_, s_.requests[i]); });
      if (s.cancel_us[i])
        events_.emplace(*s.cancel_us[i] + 2,
                        [this, i] { caf::anon_send(client_, cancel{s_.requests[i].client_tag}); });
    }
    if (s.dies)
      events_.emplace(s.dies_us + 2, [this] {
        network_.kill(*s_.dies);
        dead_ = s_.dies;
      });
  }

  /// Runs until everything is answered, a rank's death has ended all survivors, or time is up.
  void run() {
    std::uint64_t now_us = 2, until_us = limit_us;
    while (now_us < until_us) {
      run_ready();
      if (until_us == limit_us && finished()) {
        if (s_.fetch_min_tokens == 0 || any_ended())
          break;
        until_us = now_us + settle_us;
      }
      std::uint64_t next_us = until_us;
      if (!events_.empty())
        next_us = std::min(next_us, events_.begin()->first);
      if (const auto arrival = network_.next_arrival_us())
        next_us = std::min(next_us, *arrival);
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (alive(r))
          if (const auto timer = ranks_[r]->loop().next_timer_us())
            next_us = std::min(next_us, *timer);
      now_us = std::max(now_us, next_us);
      network_.advance_to(std::max(network_.now_us(), now_us));
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (alive(r))
          ranks_[r]->loop().advance_to(std::max(ranks_[r]->loop().now_us(), now_us));
      while (!events_.empty() && events_.begin()->first <= now_us) {
        events_.begin()->second();
        events_.erase(events_.begin());
      }
    }
  }

  outcome judge() {
    judge_requests();
    judge_ends();
    judge_pools();
    if (!s_.dies && !shards_agree())
      fault("a shard has not run the steps of its replica's first");
    for (auto& r : ranks_)
      out_.events += r->loop().statistics().jobs;
    out_.events += network_.sent_frames();
    close();
    return out_;
  }

 private:
  void run_ready() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (alive(r))
          moved = ranks_[r]->loop().run_ready() > 0 || moved;
    }
  }

  bool alive(std::size_t rank) const { return !dead_ || dead_->value != rank; }

  bool any_ended() const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const auto& r) { return r->actors->end().has_value(); });
  }

  bool finished() const {
    if (!any_ended())
      return log_.done.size() == s_.requests.size() && !pending_death() && shards_agree();
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (alive(r) && !ranks_[r]->actors->end())
        return false;
    return true;
  }

  /// Every shard has run as many steps and positions as the one that leads it; that they were the
  /// right ones the scripted backend checks itself.
  bool shards_agree() const {
    return std::all_of(shards_.begin(), shards_.end(), [&](const auto& entry) {
      const scripted_backend* leader = shards_.at({entry.first.replica, 0});
      return entry.second->steps() == leader->steps() &&
             entry.second->computed_tokens() == leader->computed_tokens();
    });
  }

  bool pending_death() const { return s_.dies.has_value(); }

  void fault(const std::string& what) {
    out_.violations.push_back("seed " + std::to_string(s_.seed) + ": " + what);
  }

  void judge_requests() {
    if (log_.answers_twice > 0)
      fault("a request was answered twice");
    for (std::size_t i = 0; i < s_.requests.size(); ++i) {
      const auto found = log_.done.find(s_.requests[i].client_tag);
      if (found == log_.done.end()) {
        if (!s_.dies)
          fault("request " + std::to_string(i) + " was never answered");
        continue;
      }
      judge_request(i, found->second);
    }
  }

  void judge_request(std::size_t i, const request_done& done) {
    const std::string name = "request " + std::to_string(i);
    const auto expected = expected_output(s_, s_.requests[i]);
    std::vector<expected_token> got;
    for (const auto& x : done.output) {
      got.push_back({x.token, x.model});
      out_.trace_hash = (out_.trace_hash ^ static_cast<std::uint64_t>(x.token)) * 1099511628211ull +
                        x.model.value + x.turn;
      if (x.position != s_.requests[i].prompt.size() + got.size() - 1)
        fault(name + " has a token out of place");
    }
    const bool cut = done.finish == finish_reason::cancelled && s_.cancel_us[i].has_value();
    const bool prefix =
        got.size() <= expected.size() && std::equal(got.begin(), got.end(), expected.begin());
    if (!prefix || (!cut && got.size() != expected.size()))
      fault(name + " differs from what its method says");
    if (!cut && is_identity(s_, s_.requests[i]) &&
        plain_output(s_, s_.requests[i], {0}) != tokens_of(got))
      fault(name + " differs from plain decoding although all models are the same");
    if (done.finish == finish_reason::failed)
      fault(name + " failed: " + done.failure.message);
    if (log_.streamed[done.client_tag].size() != done.output.size())
      fault(name + " streamed other tokens than it returned");
    judge_prompt(i, done);
    out_.handoffs += done.handoffs;
    for (const auto& usage : done.usage) {
      out_.evictions += usage.recomputed_tokens;
      out_.cached += usage.cached_tokens;
      out_.fetched += usage.fetched_tokens;
      if (usage.fetched_tokens > usage.cached_tokens)
        fault(name + " fetched more than it took from caches");
      if (usage.computed_tokens + usage.cached_tokens != usage.kv_tokens + usage.recomputed_tokens)
        fault(name + " computed " + std::to_string(usage.computed_tokens) + " tokens and lacked " +
              std::to_string(usage.kv_tokens));
      const std::size_t drafted = s_.parameters.draft_tokens;
      if (usage.kv_tokens > s_.requests[i].prompt.size() + done.output.size() + drafted && !cut)
        fault(name + " computed positions that it does not have");
    }
  }

  /// The prompt's log-probabilities, where they were asked for: once, each of its own position.
  void judge_prompt(std::size_t i, const request_done& done) {
    const auto& order = s_.requests[i];
    const std::string name = "request " + std::to_string(i);
    for (const auto& x : done.output)
      if (x.top.size() > order.spec.top_logprobs)
        fault(name + " was told more likely tokens than it asked for");
    const auto told = log_.prompts.find(order.client_tag);
    if (!order.spec.prompt_logprobs || told == log_.prompts.end()) {
      if (told != log_.prompts.end() || (order.spec.prompt_logprobs && !done.output.empty()))
        fault(name + " was told of its prompt unasked, or not at all");
      return;
    }
    const auto expected = prompt_logprobs(s_, order);
    const auto& prompt = told->second.front();
    bool same = told->second.size() == 1 && prompt.size() == expected.size() + 1;
    for (std::size_t at = 1; same && at < prompt.size(); ++at)
      same = prompt[at].token == order.prompt[at] && prompt[at].logprob.value == expected[at - 1] &&
             prompt[at].top.size() == order.spec.top_logprobs;
    if (!same)
      fault(name + " was told other log-probabilities of its prompt than its model's");
  }

  void judge_ends() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto& actors = *ranks_[r]->actors;
      if (s_.dies && dead_ && alive(r) && (!actors.end() || actors.end()->exit_code == 0))
        fault("rank " + std::to_string(r) + " did not end after a death");
      if (!s_.dies && actors.end())
        fault("rank " + std::to_string(r) + " ended by itself: " + actors.end()->reason);
    }
  }

  void judge_pools() {
    if (s_.dies)
      return;
    for (auto& r : ranks_) {
      if (const auto open = r->actors->bulk().transfers(); open > 0)
        fault("a rank ended with " + std::to_string(open) + " bulk transfers open");
      caf::scoped_actor self(r->system);
      for (const auto& pool : r->actors->pools()) {
        self->send(pool, caf::get_atom::value);
        r->loop().run_ready();
        self->receive([&](const pool_facts& x) {
          const std::uint32_t free_blocks = x.free_blocks + x.cached_blocks;
          if (free_blocks != x.total_blocks)
            fault("a pool ended with " + std::to_string(x.total_blocks - free_blocks) +
                  " blocks in use");
        });
      }
    }
  }

  void close() {
    caf::anon_send_exit(client_, caf::exit_reason::user_shutdown);
    client_ = nullptr;
    for (auto& r : ranks_) {
      r->actors->shut_down();
      r->loop().run_ready();
    }
    for (auto& r : ranks_)
      r->actors.reset();
  }

  const scenario& s_;
  simulated_network network_;
  client_log log_;
  shard_backends shards_;
  std::vector<std::unique_ptr<rank_world>> ranks_;
  client_actor client_;
  std::multimap<std::uint64_t, std::function<void()>> events_;
  std::optional<rank_id> dead_;
  outcome out_;
};

} // namespace

outcome simulate(const scenario& s) {
  spdlog::set_level(spdlog::level::err); // a lossy wire is worth a warning only where it is real
  world w(s);
  w.run();
  return w.judge();
}

} // namespace tokenrouter::sim
