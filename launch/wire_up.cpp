#include "launch/wire_up.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <caf/send.hpp>

#include "actors/kv_pool.hpp"
#include "runtime/core/check.hpp"
#include "runtime/transport/transport_poller.hpp"

namespace tokenrouter {

namespace {

constexpr std::uint64_t shut_down_us_max = 2'000'000;
constexpr std::uint64_t missed_heartbeats = 3; // one that is late, and two that are not there

template <class Handle>
caf::actor untyped(const Handle& handle) {
  return caf::actor_cast<caf::actor>(handle);
}

scheduler_config config_of(const rank_plan& plan, const local_replica& replica) {
  scheduler_config config;
  config.self = replica.facts.replica;
  config.models = static_cast<std::uint32_t>(plan.admission.size());
  config.replicas = static_cast<std::uint32_t>(
      std::count_if(plan.replicas.begin(), plan.replicas.end(), [&](const replica_plan& other) {
        return other.replica.model == replica.facts.replica.model;
      }));
  config.limits = replica.limits;
  config.thresholds = plan.thresholds;
  config.delay_timeout_us = plan.delay_timeout_us;
  config.keep_prefixes = replica.keep_prefixes;
  config.drop_kv = replica.drop_kv;
  config.resumable = plan.degrade && plan.ranks > 1;
  config.fetch_min_tokens = replica.fetch_min_tokens;
  config.measure = plan.automatic.has_value();
  config.eos_tokens = plan.eos_tokens;
  config.context_tokens_max = plan.context_tokens_max;
  config.trace = static_cast<bool>(plan.open_trace);
  return config;
}

} // namespace

rank_actors::rank_actors(caf::actor_system& system, rank_plan plan, transport* wire)
    : system_(system), reactor_(reactor::of(system)), plan_(std::move(plan)), wire_(wire),
      mover_(plan_.self, wire == nullptr ? nullptr : &wire->bulk(), plan_.bulk_bytes_max) {
  check(plan_.ranks == 1 || wire_ != nullptr, "several ranks need a transport");
  switchboard_options board{
      plan_.self, {}, plan_.shards, [this](bool awake) { note_in_flight(awake); }};
  for (const auto& replica : plan_.replicas)
    board.placement.emplace(replica.replica, replica.rank);
  switchboard_ = system_.spawn(switchboard, std::move(board));
  keep("switchboard", untyped(switchboard_));
  if (plan_.open_trace)
    spawn_tracer();
  if (plan_.takes_clients)
    spawn_gateway();
  spawn_supervisor();
  if (plan_.automatic && plan_.self == rank_id{0})
    spawn_planner();
  for (const auto& replica : plan_.local)
    spawn_replica(replica);
  for (const auto& follower : plan_.followers)
    spawn_follower(follower);
  if (wire_ != nullptr)
    spawn_links(*wire_);
  for (const auto& [name, one, replica] : all_)
    caf::anon_send(local_.supervisor, watch{one.address(), name, replica});
  keep("supervisor", untyped(local_.supervisor));
  caf::anon_send(switchboard_, local_);
}

rank_actors::~rank_actors() {
  shut_down();
}

void rank_actors::keep(std::string name, caf::actor one, std::optional<replica_id> replica) {
  all_.push_back({std::move(name), std::move(one), replica});
}

void rank_actors::stop_all_shards() {
  for (const auto& [replica, stop] : plan_.stop_shards)
    *stop = true;
}

void rank_actors::note_loss(const job_loss& loss) {
  lost_ranks_.insert(loss.rank);
  for (const replica_id replica : loss.replicas)
    if (const auto found = plan_.stop_shards.find(replica); found != plan_.stop_shards.end())
      *found->second = true;
  if (plan_.on_loss)
    plan_.on_loss(loss);
}

void rank_actors::spawn_gateway() {
  gateway_options options;
  options.self = plan_.self;
  options.entry = plan_.make_entry();
  options.models = plan_.admission;
  options.vocab_tokens = plan_.vocab_tokens;
  options.outlet = switchboard_;
  options.questions = switchboard_;
  options.tracer = tracer_;
  options.make_text = plan_.make_text;
  options.now_us = [this] { return reactor_.now_us(); };
  local_.gateway = system_.spawn(tokenrouter::gateway, std::move(options));
  keep("gateway", untyped(local_.gateway));
}

void rank_actors::spawn_supervisor() {
  supervisor_options options;
  options.config.self = plan_.self;
  options.config.ranks = plan_.ranks;
  for (const auto& replica : plan_.local) {
    options.config.local.push_back(replica.facts);
    options.config.fetchers += replica.fetch_min_tokens > 0;
  }
  options.config.followers = static_cast<std::uint32_t>(plan_.followers.size());
  for (const auto& one : plan_.admission)
    options.config.model_names.push_back(one.name);
  options.config.degrade = plan_.degrade;
  for (const auto& one : plan_.replicas)
    options.config.shards.emplace_back(one.replica, one.rank);
  for (const auto& [shard, rank] : plan_.shards)
    options.config.shards.emplace_back(shard.replica, rank);
  options.loss_known_us = 2 * plan_.peer_timeout_us;
  options.outlet = switchboard_;
  options.gateway = local_.gateway;
  options.on_ready = plan_.on_ready;
  options.on_end = [this](const job_end& end) {
    end_ = end;
    stop_all_shards();
  };
  options.on_loss = [this](const job_loss& loss) { note_loss(loss); };
  local_.supervisor = system_.spawn(tokenrouter::supervisor, std::move(options));
}

void rank_actors::spawn_planner() {
  planner_options options{*plan_.automatic, {}, switchboard_};
  options.config.stop = stop_planner_;
  for (const auto& one : plan_.replicas)
    options.replicas.push_back(one.replica);
  if (plan_.inline_models) {
    local_.planner = system_.spawn(planner, std::move(options));
  } else {
    local_.planner = system_.spawn<caf::detached>(planner, std::move(options));
    reactor_.wake_at_exit(untyped(local_.planner));
  }
  keep("planner", untyped(local_.planner));
}

void rank_actors::spawn_tracer() {
  const auto one = system_.spawn<tracer, caf::detached>(plan_.open_trace);
  reactor_.wake_at_exit(one);
  keep("tracer", one);
  tracer_ = caf::actor_cast<tracer_actor>(one);
}

void rank_actors::spawn_replica(const local_replica& replica) {
  const auto pool = system_.spawn(kv_pool, replica.kv_blocks, replica.keep_prefixes);
  keep("kv_pool", untyped(pool));
  pools_.push_back(pool);

  const auto runner = spawn_model({.self = {replica.facts.replica, 0},
                                   .kv_blocks = replica.kv_blocks,
                                   .cores = replica.cores,
                                   .spin_us = plan_.model_spin_us,
                                   .load = replica.load,
                                   .group = replica.group,
                                   .make_group = replica.make_group,
                                   .outlet = switchboard_,
                                   .in_step = replica.in_step});

  scheduler_options options;
  options.config = config_of(plan_, replica);
  options.make_role = replica.make_role;
  options.outlet = switchboard_;
  options.pool = pool;
  options.model = caf::actor_cast<model_actor>(runner);
  if (replica.fetch_min_tokens > 0) {
    options.fetcher = spawn_fetcher(replica, pool);
    spawn_mover({.self = {replica.facts.replica, 0},
                 .kv_blocks = replica.kv_blocks,
                 .reads_in_place = replica.reads_in_place},
                runner);
  }
  options.shards = static_cast<std::uint16_t>(replica.group.count);
  options.tracer = tracer_;
  options.now_us = [this] { return reactor_.now_us(); };
  options.in_flight = [this](bool busy) { note_in_flight(busy); };
  const auto leader = system_.spawn(scheduler, std::move(options));
  keep("scheduler", untyped(leader));
  local_.schedulers.emplace(replica.facts.replica, leader);
}

kv_fetcher_actor rank_actors::spawn_fetcher(const local_replica& replica,
                                            const kv_pool_actor& pool) {
  const replica_id self = replica.facts.replica;
  kv_fetcher_options options;
  options.config.self = self;
  options.config.shards = static_cast<std::uint16_t>(replica.group.count);
  options.config.min_tokens = replica.fetch_min_tokens;
  options.config.piece_bytes = plan_.fetch_piece_bytes;
  options.config.in_place_piece_bytes = plan_.in_place_piece_bytes;
  options.config.weighs_cost = replica.reads_in_place;
  for (const auto& other : plan_.replicas)
    if (other.replica.model == self.model && other.replica != self)
      options.config.siblings.push_back({other.replica, other.rank});
  options.model_name = plan_.admission.at(self.model.value).name;
  options.outlet = switchboard_;
  options.pool = pool;
  options.observer = local_.supervisor;
  options.now_us = [this] { return reactor_.now_us(); };
  options.describe = [this](rank_id rank) {
    return rank == plan_.self ? std::string("host memory") : wire_->describe(rank);
  };
  options.tell = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const auto one = system_.spawn(kv_fetcher, std::move(options));
  keep("kv_fetcher", untyped(one));
  local_.fetchers.emplace(self, one);
  return one;
}

/// Of the config, the siblings are filled in here.
void rank_actors::spawn_mover(kv_mover_config config, const caf::actor& runner) {
  const shard_id self = config.self;
  kv_mover_options options;
  options.config = std::move(config);
  for (const auto& other : plan_.replicas)
    if (other.replica.model == self.replica.model && other.replica != self.replica)
      options.config.siblings[other.replica] =
          self.index == 0 ? other.rank : plan_.shards.at({other.replica, self.index});
  options.outlet = switchboard_;
  options.model = caf::actor_cast<kv_host_actor>(runner);
  options.mover = &mover_;
  const auto one = system_.spawn(kv_mover, std::move(options));
  keep("kv_mover", untyped(one));
  local_.movers.emplace(self, one);
}

void rank_actors::spawn_follower(const local_follower& follower) {
  const auto runner = spawn_model({.self = follower.self,
                                   .kv_blocks = follower.kv_blocks,
                                   .cores = follower.cores,
                                   .spin_us = plan_.model_spin_us,
                                   .load = follower.load,
                                   .group = follower.group,
                                   .make_group = {},
                                   .outlet = {},
                                   .in_step = {}});
  local_.shards.emplace(follower.self, caf::actor_cast<shard_actor>(runner));
  if (follower.moves_kv)
    spawn_mover({.self = follower.self,
                 .kv_blocks = follower.kv_blocks,
                 .reads_in_place = follower.reads_in_place},
                runner);
}

caf::actor rank_actors::spawn_model(model_options options) {
  const auto observer = caf::actor_cast<model_observer>(local_.supervisor);
  const replica_id replica = options.self.replica;
  caf::actor runner;
  if (plan_.inline_models) {
    runner = system_.spawn(inline_model, std::move(options), observer);
  } else {
    runner = system_.spawn<model, caf::detached>(std::move(options), observer);
    reactor_.wake_at_exit(runner);
  }
  keep("model", runner, replica);
  return runner;
}

void rank_actors::spawn_links(transport& wire) {
  for (std::uint32_t r = 0; r < plan_.ranks; ++r) {
    if (r == plan_.self.value)
      continue;
    link_options options;
    options.self = plan_.self;
    options.peer = {r};
    options.greeting = plan_.greeting;
    options.heartbeat_us = plan_.heartbeat_us;
    options.peer_timeout_us = plan_.peer_timeout_us;
    options.wire = &wire;
    options.outlet = switchboard_;
    options.observer = local_.supervisor;
    options.now_us = [this] { return reactor_.now_us(); };
    options.on_closed = [this] { ++closed_links_; };
    const auto one = system_.spawn(link, std::move(options));
    keep("link", untyped(one));
    local_.links.emplace(rank_id{r}, one);
  }
  wire.on_frame([this](rank_id from, const frame_header& header,
                       std::span<const std::byte> payload) { take_frame(from, header, payload); });
  wire_poller_ = std::make_unique<transport_poller>(wire);
  reactor_.attach(wire_poller_.get());
}

void rank_actors::take_frame(rank_id from, const frame_header& header,
                             std::span<const std::byte> payload) {
  heard_us_[from] = reactor_.now_us();
  if (const auto found = local_.links.find(from); found != local_.links.end())
    caf::anon_send(found->second, incoming_frame{header, {payload.begin(), payload.end()}});
}

std::string rank_actors::find_silent_peers() const {
  std::string text;
  const std::uint64_t now_us = reactor_.now_us();
  for (const auto& [peer, one] : local_.links) {
    if (lost_ranks_.contains(peer))
      continue;
    const auto heard = heard_us_.find(peer);
    if (heard != heard_us_.end() &&
        now_us - heard->second <= missed_heartbeats * plan_.heartbeat_us)
      continue;
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(peer.value);
  }
  return text.empty() ? text : text + ": no sign of life";
}

void rank_actors::note_in_flight(bool busy) {
  if (busy)
    reactor_.hold_awake();
  else
    reactor_.release_awake();
}

void rank_actors::say_goodbye() {
  *stop_planner_ = true;
  // What was sent before the end (the word to the peers that it is the end) leaves first.
  reactor_.run_ready();
  for (const auto& [peer, one] : local_.links)
    caf::anon_send(one, caf::close_atom::value);
  reactor_.run_ready();
  if (wire_ != nullptr && !reactor_.virtual_time()) {
    const std::uint64_t until_us = reactor_.now_us() + shut_down_us_max;
    reactor_.run_until(
        [&] { return closed_links_ == local_.links.size() || reactor_.now_us() >= until_us; });
    while (wire_->pending_sends() > 0 && reactor_.now_us() < until_us)
      wire_->progress();
  }
}

void rank_actors::shut_down() {
  if (std::exchange(down_, true))
    return;
  stop_all_shards();
  say_goodbye();
  for (const auto& kept : all_)
    caf::anon_send_exit(kept.one, caf::exit_reason::user_shutdown);
  all_.clear();
  pools_.clear();
  local_ = {};
  switchboard_ = nullptr;
  tracer_ = nullptr;
  if (reactor_.virtual_time())
    reactor_.run_ready();
  else
    reactor_.run_until_no_actors();
  if (wire_poller_)
    reactor_.detach(wire_poller_.get());
  if (wire_ != nullptr)
    wire_->on_frame([](rank_id, const frame_header&, std::span<const std::byte>) {});
}

} // namespace tokenrouter
