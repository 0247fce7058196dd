#include "actors/gateway.hpp"

#include <algorithm>
#include <array>

#include "runtime/policy/lost_models.hpp"

namespace tokenrouter {

namespace {

using self_pointer = gateway_actor::stateful_pointer<gateway_box>;

void answer_unstarted(self_pointer self, const request_client& client, const submit& order,
                      finish_reason finish, error why) {
  request_done done;
  done.client_tag = order.client_tag;
  done.finish = finish;
  done.failure = std::move(why);
  done.usage.resize(self->state.options.models.size());
  self->send(client, std::move(done));
}

result<void> judge(const gateway_box& box, const submit& order) {
  admission_request x;
  x.prompt_tokens = static_cast<std::uint32_t>(order.prompt.size());
  x.max_new_tokens = order.spec.max_new_tokens;
  x.vocab_tokens = box.options.vocab_tokens;
  for (token_id token : order.prompt) {
    if (token < 0)
      return fail(errc::invalid_argument,
                  "prompt token id " + std::to_string(token) + " is negative");
    x.largest_token = std::max(x.largest_token, static_cast<std::uint32_t>(token));
  }
  if (box.by_tag.count(order.client_tag) != 0)
    return fail(errc::invalid_argument, "a request of this name is still running");
  return admit(x, box.options.models);
}

/// Chooses the replicas that serve a request and counts it as theirs.
std::vector<std::uint16_t> take_replicas(gateway_box& box, std::span<const token_id> prompt) {
  std::vector<std::uint16_t> chosen;
  for (auto& live : box.load) {
    chosen.push_back(choose_replica(live, prompt));
    if (chosen.back() != no_replica)
      ++live[chosen.back()];
  }
  return chosen;
}

void forget(gateway_box& box, const request_ended& x) {
  box.by_tag.erase(x.client_tag);
  const auto found = box.requests.find(x.request);
  if (found == box.requests.end())
    return;
  const auto& replicas = found->second.replicas;
  for (std::size_t model = 0; model < replicas.size(); ++model)
    if (replicas[model] != no_replica)
      --box.load[model][replicas[model]];
  box.requests.erase(found);
}

/// For each model some replica that lives, or no_replica.
std::vector<std::uint16_t> replicas_left(const gateway_box& box) {
  std::vector<std::uint16_t> left;
  for (const auto& live : box.load)
    left.push_back(choose_replica(live, {}));
  return left;
}

model_id fallback_model(const gateway_box& box) {
  std::vector<double> parameters_billion;
  for (const auto& model : box.options.models)
    parameters_billion.push_back(model.parameters_billion);
  return largest_left(parameters_billion, replicas_left(box)).value_or(model_id{});
}

std::string out_of_service(const gateway_box& box, model_id model) {
  return "model '" + box.options.models.at(model.value).name +
         "' is out of service: every rank with a replica of it was lost; ask for another model, or "
         "restart the job";
}

/// Requests served by what is lost get others; each learns who is gone.
void lose(self_pointer self, const replicas_lost& x) {
  auto& box = self->state;
  for (const replica_id lost : x.replicas) {
    std::erase(box.replicas, lost);
    box.load.at(lost.model.value).at(lost.index) = lost_replica;
  }
  const model_id fallback = fallback_model(box);
  for (auto& [id, live] : box.requests) {
    for (const replica_id lost : x.replicas) {
      auto& serves = live.replicas.at(lost.model.value);
      if (serves != lost.index)
        continue;
      const std::array spread{static_cast<token_id>(id.value)};
      serves = choose_replica(box.load[lost.model.value], spread);
      if (serves != no_replica)
        ++box.load[lost.model.value][serves];
    }
    std::string failure;
    if (live.only_model && is_out(live.replicas, *live.only_model))
      failure = out_of_service(box, *live.only_model);
    self->send(live.actor,
               replicas_changed{x.replicas, live.replicas, fallback, std::move(failure)});
  }
}

void accept(self_pointer self, const request_client& client, submit&& order) {
  auto& box = self->state;
  if (auto verdict = judge(box, order); !verdict) {
    answer_unstarted(self, client, order, finish_reason::failed, verdict.error());
    return;
  }
  const start_input begin{order.spec.sampling.seed, order.prompt, order.spec.request_score.value,
                          order.spec.own_threshold()};
  auto start = box.options.entry->start(begin);
  if (order.only_model) {
    start.model = *order.only_model;
    order.spec.pinned = true;
  }
  if (start.model.value >= box.options.models.size()) {
    answer_unstarted(self, client, order, finish_reason::failed,
                     {errc::internal, "the routing method starts requests on a model that the job "
                                      "does not have"});
    return;
  }
  if (is_out(replicas_left(box), start.model)) {
    if (order.only_model) {
      answer_unstarted(self, client, order, finish_reason::failed,
                       {errc::unavailable, out_of_service(box, start.model)});
      return;
    }
    start.model = fallback_model(box);
    order.spec.pinned = true;
  }
  auto options = std::make_shared<request_options>();
  options->id = make_request_id(box.options.self, box.next_counter++);
  options->order = std::move(order);
  options->order.spec.prompt_tokens = static_cast<std::uint32_t>(options->order.prompt.size());
  options->order.spec.replicas = take_replicas(box, options->order.prompt);
  options->start = std::move(start);
  options->replicas = box.replicas;
  options->models = static_cast<std::uint32_t>(box.options.models.size());
  options->client = client;
  options->outlet = box.options.outlet;
  options->registry = caf::actor_cast<request_registry>(self->address());
  options->tracer = box.options.tracer;
  options->text = box.options.make_text ? box.options.make_text() : nullptr;
  options->now_us = box.options.now_us;
  box.by_tag.emplace(options->order.client_tag, options->id);
  const request_id id = options->id;
  auto replicas = options->order.spec.replicas;
  const auto only_model = options->order.only_model;
  box.requests.emplace(id, gateway_box::live_request{self->spawn(request, std::move(options)),
                                                     std::move(replicas), only_model});
}

void open(self_pointer self, const open_gateway& x) {
  auto& box = self->state;
  box.load.resize(box.options.models.size());
  for (const auto& facts : x.replicas) {
    const std::size_t model = facts.replica.model.value;
    if (model >= box.options.models.size())
      continue;
    box.replicas.push_back(facts.replica);
    auto& live = box.load[model];
    live.resize(std::max<std::size_t>(live.size(), facts.replica.index + std::size_t{1}));
    auto& pool_tokens = box.options.models[model].pool_tokens;
    pool_tokens = pool_tokens == 0 ? facts.pool_tokens : std::min(pool_tokens, facts.pool_tokens);
  }
  box.open = true;
  for (auto& early : std::exchange(box.waiting, {}))
    accept(self, early.client, std::move(early.order));
}

/// A request that was not let in yet. True if there was one.
bool cancel_waiting(self_pointer self, const cancel& x) {
  auto& box = self->state;
  const auto found = std::find_if(box.waiting.begin(), box.waiting.end(), [&](const auto& early) {
    return early.order.client_tag == x.client_tag;
  });
  if (found == box.waiting.end())
    return false;
  answer_unstarted(self, found->client, found->order, finish_reason::cancelled,
                   {errc::cancelled, "cancelled by the client"});
  box.waiting.erase(found);
  return true;
}

template <class Message>
void forward(self_pointer self, request_id id, Message&& x) {
  auto& box = self->state;
  if (const auto found = box.requests.find(id); found != box.requests.end())
    self->send(found->second.actor, std::forward<Message>(x));
  else
    ++box.late_messages;
}

/// Commits of one step are for several requests: each gets its own part.
void split(self_pointer self, commit_batch&& x) {
  std::unordered_map<request_id, commit_batch> parts;
  for (auto& one : x.commits)
    parts[one.request].commits.push_back(one);
  for (auto& one : x.resumes)
    parts[one.request].resumes.push_back(std::move(one));
  for (auto& one : x.prompts)
    parts[one.request].prompts.push_back(std::move(one));
  for (auto& [id, part] : parts) {
    part.home = x.home;
    forward(self, id, std::move(part));
  }
}

} // namespace

gateway_actor::behavior_type gateway(self_pointer self, gateway_options options) {
  self->state.options = std::move(options);
  return {
      [self](const open_gateway& x) { open(self, x); },
      [self](submit& x) {
        auto client = caf::actor_cast<request_client>(self->current_sender());
        if (self->state.open)
          accept(self, client, std::move(x));
        else
          self->state.waiting.push_back({std::move(client), std::move(x)});
      },
      [self](const cancel& x) {
        auto& box = self->state;
        if (cancel_waiting(self, x))
          return;
        if (const auto found = box.by_tag.find(x.client_tag); found != box.by_tag.end())
          forward(self, found->second, x);
      },
      [self](commit_batch& x) { split(self, std::move(x)); },
      [self](request_failed& x) { forward(self, x.request, std::move(x)); },
      [self](const released& x) { forward(self, x.request, x); },
      [self](const replicas_lost& x) { lose(self, x); },
      [self](const ask_status& x) {
        auto& box = self->state;
        box.status_asker = caf::actor_cast<status_client>(self->current_sender());
        for (const replica_id replica : box.replicas)
          self->send(box.options.questions, status_query{x.number, box.options.self, replica});
      },
      [self](const replica_status& x) {
        if (self->state.status_asker)
          self->send(self->state.status_asker, x);
      },
      [self](const request_ended& x) { forget(self->state, x); },
  };
}

} // namespace tokenrouter
