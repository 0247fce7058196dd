#include "tests/sim/simulation.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "runtime/core/log.hpp"
#include "tests/sim/client.hpp"
#include "tests/sim/rank_plans.hpp"

namespace tokenrouter::sim {

namespace {

constexpr std::uint64_t limit_us = 60'000'000;
constexpr std::uint64_t settle_us = 2'000'000; // the last words of a fetch may have to come again

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
      auto plan = plan_of(s, {r}, shards_);
      plan.on_ready = [this](const std::vector<replica_facts>&) {
        ready_ = !ranks_.front()->actors->end(); // else a loss came first
      };
      ranks_[r]->actors = std::make_unique<rank_actors>(
          ranks_[r]->system, std::move(plan), s.ranks > 1 ? &network_.endpoint({r}) : nullptr);
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
        dead_.insert(*s_.dies);
      });
    for (const mishap& x : s.mishaps)
      plan_mishap(x);
  }

  /// Runs until everything is answered, a rank's death has ended all survivors, or time is up.
  void run() {
    std::uint64_t now_us = 2, until_us = limit_us;
    while (now_us < until_us) {
      run_ready();
      if (until_us == limit_us && finished()) {
        if ((s_.fetch_min_tokens == 0 && given_up().empty()) || job_ended())
          break;
        until_us = now_us + settle_us;
        events_.clear(); // whoever is lost now is known to be by then
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
    if (!job_may_end() && !shards_agree())
      fault("a shard has not run the steps of its replica's first");
    for (auto& r : ranks_)
      out_.events += r->loop().statistics().jobs;
    out_.events += network_.sent_frames();
    out_.losses = given_up().size();
    close();
    return out_;
  }

 private:
  void plan_mishap(const mishap& x) {
    if (x.lasts_us > 0) {
      events_.emplace(x.us + 2, [this, x] {
        hit_.insert(x.rank);
        frozen_.insert(x.rank);
      });
      const std::uint64_t until_us = x.us + x.lasts_us + 2;
      events_.emplace(until_us, [this, x, until_us] {
        ranks_[x.rank.value]->loop().stand_still_until(until_us);
        frozen_.erase(x.rank);
      });
    } else if (x.cut_off) {
      events_.emplace(x.us + 2, [this, x] {
        hit_.insert({x.rank, *x.cut_off});
        network_.cut(x.rank, *x.cut_off);
      });
    } else {
      events_.emplace(x.us + 2, [this, x] {
        hit_.insert(x.rank);
        network_.kill(x.rank);
        dead_.insert(x.rank);
      });
    }
  }

  void run_ready() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (alive(r))
          moved = ranks_[r]->loop().run_ready() > 0 || moved;
    }
  }

  bool alive(std::size_t rank) const {
    const rank_id id{static_cast<std::uint32_t>(rank)};
    return !dead_.contains(id) && !frozen_.contains(id);
  }

  /// Ranks that the job has given up; so has who is dead, in the end.
  const std::set<rank_id>& given_up() const { return ranks_.front()->actors->lost_ranks(); }

  bool is_lost(replica_id replica, const std::set<rank_id>& without) const {
    const auto& ranks = s_.followers[replica.model.value][replica.index];
    return without.contains(s_.placement[replica.model.value][replica.index]) ||
           std::any_of(ranks.begin(), ranks.end(),
                       [&](rank_id one) { return without.contains(one); });
  }

  bool is_out(std::size_t model, const std::set<rank_id>& without) const {
    for (std::uint16_t i = 0; i < s_.placement[model].size(); ++i)
      if (!is_lost({{static_cast<std::uint16_t>(model)}, i}, without))
        return false;
    return true;
  }

  std::size_t models_out(const std::set<rank_id>& without) const {
    std::size_t count = 0;
    for (std::size_t model = 0; model < s_.placement.size(); ++model)
      count += is_out(model, without) ? 1 : 0;
    return count;
  }

  bool any_ended() const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const auto& r) { return r->actors->end().has_value(); });
  }

  bool job_ended() const {
    return s_.degrade ? !alive(0) || ranks_.front()->actors->end() : any_ended();
  }

  bool finished() const {
    if (s_.degrade && !job_ended())
      return log_.done.size() == s_.requests.size() && shards_agree();
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
      if (is_lost(entry.first.replica, given_up()))
        return true;
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
        if (!job_may_end())
          fault("request " + std::to_string(i) + " was never answered");
        continue;
      }
      judge_request(i, found->second);
    }
  }

  /// A death is the end of it: always, or since too much was lost.
  bool job_may_end() const {
    if (!s_.degrade)
      return s_.dies.has_value();
    return hit_.contains({0}) || models_out(hit_) == s_.placement.size() ||
           (!hit_.empty() && !ready_);
  }

  void judge_request(std::size_t i, const request_done& done) {
    if (models_out(given_up()) > 0) {
      judge_reduced(i, done);
      return;
    }
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

  /// A request of a job that has lost all of some model.
  void judge_reduced(std::size_t i, const request_done& done) {
    const std::string name = "request " + std::to_string(i);
    const auto& order = s_.requests[i];
    const bool cut = done.finish == finish_reason::cancelled && s_.cancel_us[i].has_value();
    const bool refused = done.finish == finish_reason::failed &&
                         done.failure.code == errc::unavailable && order.only_model &&
                         is_out(order.only_model->value, given_up());
    for (std::size_t at = 0; at < done.output.size(); ++at)
      if (done.output[at].position != order.prompt.size() + at)
        fault(name + " has a token out of place");
    if (done.finish == finish_reason::failed && !refused)
      fault(name + " failed: " + done.failure.message);
    if (log_.streamed[done.client_tag].size() != done.output.size())
      fault(name + " streamed other tokens than it returned");
    const bool complete = !done.output.empty() && done.output.back().finish != finish_reason::none;
    if (!cut && !refused && !complete)
      fault(name + " ended before its last token");
    ++out_.reduced;
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
      const rank_id id{static_cast<std::uint32_t>(r)};
      const bool given = given_up().contains(id);
      const bool ends = s_.degrade ? dead_.contains({0}) || ranks_.front()->actors->end()
                                   : s_.dies && !dead_.empty();
      if (ends && alive(r) && (!actors.end() || actors.end()->exit_code == 0))
        fault("rank " + std::to_string(r) + " did not end after a death");
      if (!job_may_end() && !given && !hit_.contains(id) && actors.end())
        fault("rank " + std::to_string(r) + " ended by itself: " + actors.end()->reason);
    }
  }

  void judge_pools() {
    if (job_may_end())
      return;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      auto& r = ranks_[i];
      if (!alive(i) || r->actors->end() || given_up().contains({static_cast<std::uint32_t>(i)}))
        continue;
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
    shards_.clear();
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
  std::set<rank_id> dead_;
  std::set<rank_id> frozen_;
  std::set<rank_id> hit_; ///< by any mishap so far
  bool ready_ = false;
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
