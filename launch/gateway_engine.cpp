#include "launch/gateway_engine.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

const char* refusal_of(engine_phase phase) {
  switch (phase) {
  case engine_phase::loading:
    return "the models are still loading";
  case engine_phase::ready:
    return nullptr;
  case engine_phase::draining:
    return "the server is shutting down";
  case engine_phase::failed:
    return "the job has failed";
  }
  return nullptr;
}

std::vector<token_logprob> top_of(const std::vector<token_score>& from) {
  std::vector<token_logprob> top;
  for (const auto& x : from)
    top.push_back({x.token, x.logprob.value});
  return top;
}

generated_token token_of(const commit& x) {
  return {x.token, x.model, x.logprob.value, x.score.value, top_of(x.top)};
}

generated_token token_of(const scored_token_info& x) {
  return {x.token, {}, x.logprob.value, std::numeric_limits<float>::quiet_NaN(), top_of(x.top)};
}

submit submit_of(std::uint64_t tag, generation_order&& order) {
  submit x;
  x.client_tag = tag;
  x.prompt = std::move(order.prompt);
  x.spec.max_new_tokens = order.max_new_tokens;
  x.spec.ignore_eos = order.ignore_eos;
  x.spec.sampling = order.sampling;
  x.spec.request_score.value = order.request_score;
  x.spec.threshold = order.threshold.value_or(-1);
  x.spec.top_logprobs = order.top_logprobs;
  x.spec.prompt_logprobs = order.prompt_logprobs;
  x.only_model = order.only_model;
  x.stop = std::move(order.stop);
  return x;
}

} // namespace

request_client::behavior_type gateway_engine::client(request_client::stateful_pointer<client_box>,
                                                     gateway_engine* owner) {
  return {
      [owner](const token_delta& x) { owner->take_delta(x); },
      [owner](const request_done& x) { owner->take_done(x); },
  };
}

status_client::behavior_type gateway_engine::asker(status_client::stateful_pointer<client_box>,
                                                   gateway_engine* owner) {
  return {[owner](const replica_status& x) { owner->take_status(x); }};
}

gateway_engine::gateway_engine(caf::actor_system& system, gateway_actor gateway, options settings)
    : options_(std::move(settings)), loop_(reactor::of(system)), gateway_(std::move(gateway)),
      client_(system.spawn(client, this)), asker_(system.spawn(asker, this)) {
  counts_.models.resize(options_.facts.models.size());
  loop_.attach(this);
}

gateway_engine::~gateway_engine() {
  check(closed_, "an engine is closed before its job goes");
}

void gateway_engine::on_ready(const std::vector<replica_facts>& replicas) {
  const std::lock_guard guard(mutex_);
  for (const auto& x : replicas) {
    replicas_.push_back(x.replica);
    counts_.models.at(x.replica.model.value).pool_tokens += x.pool_tokens;
    counts_.pool_tokens_min = counts_.pool_tokens_min == 0
                                  ? x.pool_tokens
                                  : std::min(counts_.pool_tokens_min, x.pool_tokens);
  }
  if (counts_.phase == engine_phase::loading)
    counts_.phase = engine_phase::ready;
}

void gateway_engine::on_loss(rank_id rank, const std::vector<replica_id>& replicas) {
  for (const replica_id x : replicas) {
    std::erase(replicas_, x);
    std::erase(status_.missing, x);
    std::erase_if(status_.answers, [&](const auto& one) { return one.from == x; });
  }
  {
    const std::lock_guard guard(mutex_);
    counts_.lost_ranks.push_back(rank.value);
    for (const replica_id x : replicas)
      ++counts_.models.at(x.model.value).lost_replicas;
  }
  note_unanswered();
  if (!status_.waiting.empty() && status_.missing.empty())
    finish_status();
}

void gateway_engine::close(const std::string& why) {
  if (std::exchange(closed_, true))
    return;
  {
    const std::lock_guard guard(mutex_);
    counts_.phase = engine_phase::failed;
    counts_.why = why;
    accepting_ = false;
  }
  poll(); // whatever was accepted gets its end below
  while (!generations_.empty()) {
    generation_end x;
    x.finish = finish_reason::failed;
    x.failure = {errc::unavailable, why};
    end(generations_.begin(), std::move(x));
  }
  loop_.detach(this);
  caf::anon_send_exit(client_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(asker_, caf::exit_reason::user_shutdown);
  client_ = nullptr;
  asker_ = nullptr;
  status_ = {};
  gateway_ = nullptr;
}

engine_counts gateway_engine::counts() const {
  const std::lock_guard guard(mutex_);
  return counts_;
}

result<std::uint64_t> gateway_engine::submit(generation_order order,
                                             std::shared_ptr<generation_sink> sink) {
  command x;
  x.what = command::kind::submit;
  x.order = std::move(order);
  x.sink = std::move(sink);
  const std::lock_guard guard(mutex_);
  if (const char* why = refusal_of(counts_.phase))
    return fail(errc::unavailable, why);
  if (live_ >= options_.requests_max)
    return fail(errc::capacity, "too many generations are under way (" +
                                    std::to_string(options_.requests_max) + "): try again later");
  ++live_;
  const std::uint64_t generation = next_generation_++;
  x.generation = generation;
  push_locked(std::move(x));
  return generation;
}

void gateway_engine::cancel(std::uint64_t generation) {
  command x;
  x.what = command::kind::cancel;
  x.generation = generation;
  push(std::move(x));
}

void gateway_engine::cancel_all() {
  command x;
  x.what = command::kind::cancel_all;
  push(std::move(x));
}

void gateway_engine::ask_status(std::function<void(std::string)> answer) {
  command x;
  x.answer = std::move(answer);
  push(std::move(x));
}

void gateway_engine::begin_drain() {
  const std::lock_guard guard(mutex_);
  if (counts_.phase == engine_phase::loading || counts_.phase == engine_phase::ready)
    counts_.phase = engine_phase::draining;
}

void gateway_engine::push(command x) {
  const std::lock_guard guard(mutex_);
  push_locked(std::move(x));
}

/// Under the lock to the end: after `close` there may be no loop to wake.
void gateway_engine::push_locked(command x) {
  if (!accepting_)
    return;
  queue_.push_back(std::move(x));
  loop_.wake();
}

bool gateway_engine::prepare_sleep() {
  const std::lock_guard guard(mutex_);
  return queue_.empty();
}

std::size_t gateway_engine::poll() {
  std::deque<command> taken;
  {
    const std::lock_guard guard(mutex_);
    taken.swap(queue_);
  }
  for (auto& x : taken)
    carry_out(std::move(x));
  return taken.size();
}

void gateway_engine::carry_out(command&& x) {
  switch (x.what) {
  case command::kind::submit:
    start(std::move(x));
    break;
  case command::kind::cancel:
    if (generations_.contains(x.generation))
      caf::send_as(client_, gateway_, tokenrouter::cancel{x.generation});
    break;
  case command::kind::cancel_all:
    for (const auto& [generation, live] : generations_)
      caf::send_as(client_, gateway_, tokenrouter::cancel{generation});
    break;
  case command::kind::ask:
    begin_status(std::move(x.answer));
    break;
  }
}

void gateway_engine::begin_status(std::function<void(std::string)> answer) {
  const std::string fault = options_.find_fault ? options_.find_fault() : std::string();
  if (!fault.empty() || replicas_.empty() || closed_)
    return answer(fault);
  status_.waiting.push_back(std::move(answer));
  if (status_.waiting.size() > 1)
    return;
  status_.missing = replicas_;
  status_.answers.clear();
  note_unanswered();
  caf::send_as(asker_, gateway_, tokenrouter::ask_status{++status_.number});
}

void gateway_engine::take_status(const replica_status& x) {
  if (x.number != status_.number || std::erase(status_.missing, x.from) == 0)
    return;
  status_.answers.push_back(x);
  note_unanswered();
  if (status_.missing.empty())
    finish_status();
}

void gateway_engine::finish_status() {
  {
    const std::lock_guard guard(mutex_);
    for (auto& model : counts_.models)
      model.kv_usage_share = 0;
    for (const auto& one : status_.answers) {
      double& most = counts_.models.at(one.from.model.value).kv_usage_share;
      if (one.total_blocks > 0)
        most = std::max(most, static_cast<double>(one.used_blocks) / one.total_blocks);
    }
  }
  const std::string fault = find_hung();
  for (auto& answer : std::exchange(status_.waiting, {}))
    answer(fault);
}

void gateway_engine::note_unanswered() {
  std::string names;
  for (const replica_id x : status_.missing) {
    const auto& model = options_.facts.models.at(x.model.value);
    names += (names.empty() ? "" : ", ") + model.name + " on rank " +
             std::to_string(model.ranks.at(x.index));
  }
  const std::lock_guard guard(mutex_);
  counts_.unanswered = std::move(names);
}

std::string gateway_engine::find_hung() const {
  for (const auto& x : status_.answers) {
    if (options_.step_timeout_us == 0 || x.step_age_us <= options_.step_timeout_us)
      continue;
    const auto& model = options_.facts.models.at(x.from.model.value);
    return model.name + " on rank " + std::to_string(model.ranks.at(x.from.index)) +
           " has been at one step for " + std::to_string(x.step_age_us / 1000) + " ms";
  }
  return {};
}

void gateway_engine::start(command&& x) {
  {
    const std::lock_guard guard(mutex_);
    ++counts_.waiting;
  }
  generations_.emplace(x.generation, live_generation{std::move(x.sink), 0});
  if (!closed_)
    caf::send_as(client_, gateway_, submit_of(x.generation, std::move(x.order)));
}

void gateway_engine::take_delta(const token_delta& x) {
  const auto found = generations_.find(x.client_tag);
  if (found == generations_.end())
    return;
  auto& live = found->second;
  const bool first = live.output_tokens == 0 && !x.commits.empty();
  live.output_tokens += x.commits.size();
  generation_delta delta;
  delta.text = x.text;
  for (const auto& one : x.prompt)
    delta.prompt_tokens.push_back(token_of(one));
  for (const auto& one : x.commits)
    delta.tokens.push_back(token_of(one));
  {
    const std::lock_guard guard(mutex_);
    counts_.waiting -= first ? 1 : 0;
    counts_.running += first ? 1 : 0;
    for (const auto& one : x.commits)
      if (one.model.value < counts_.models.size())
        ++counts_.models[one.model.value].generated_tokens;
  }
  live.sink->on_delta(std::move(delta));
}

void gateway_engine::take_done(const request_done& x) {
  const auto found = generations_.find(x.client_tag);
  if (found == generations_.end())
    return;
  generation_end out;
  out.finish = x.finish;
  out.failure = x.failure;
  out.handoffs = x.handoffs;
  out.ttft_us = x.ttft_us;
  out.total_us = x.total_us;
  for (const auto& work : x.usage)
    out.work.push_back(
        {work.generated_tokens, work.computed_tokens, work.cached_tokens, work.fetched_tokens});
  end(found, std::move(out));
}

void gateway_engine::end(std::unordered_map<std::uint64_t, live_generation>::iterator at,
                         generation_end&& x) {
  const live_generation live = std::move(at->second);
  generations_.erase(at);
  {
    const std::lock_guard guard(mutex_);
    auto& group = live.output_tokens == 0 ? counts_.waiting : counts_.running;
    --group;
    counts_.handoffs += x.handoffs;
    counts_.ttft_us += x.ttft_us;
    counts_.ttft_count += live.output_tokens > 0 ? 1 : 0;
    for (std::size_t i = 0; i < std::min(x.work.size(), counts_.models.size()); ++i) {
      counts_.models[i].computed_tokens += x.work[i].computed_tokens;
      counts_.models[i].cached_tokens += x.work[i].cached_tokens;
      counts_.models[i].fetched_tokens += x.work[i].fetched_tokens;
    }
    auto& ended = x.finish == finish_reason::cancelled ? counts_.cancelled
                  : x.finish == finish_reason::failed  ? counts_.failed
                                                       : counts_.finished;
    ++ended;
  }
  --live_;
  live.sink->on_end(std::move(x));
}

} // namespace tokenrouter
