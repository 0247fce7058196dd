#include "actors/request.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/policy/lost_models.hpp"

namespace tokenrouter {

namespace {

using self_pointer = request_actor::stateful_pointer<request_box>;

void start(self_pointer self) {
  const auto& options = *self->state.options;
  for (replica_id replica : options.replicas)
    self->send(options.outlet, announce{options.id, replica});
  handoff first;
  first.request = options.id;
  first.turn = 1;
  const model_id model = options.start.model;
  first.from = first.to = {model, options.order.spec.replicas.at(model.value)};
  first.state = options.start.state;
  first.tokens = options.order.prompt;
  first.spec = options.order.spec;
  self->send(options.outlet, std::move(first));
}

/// The request has ended: every replica gives back what it holds.
void release_all(self_pointer self) {
  auto& box = self->state;
  for (replica_id replica : box.options->replicas)
    self->send(box.options->outlet, release{box.options->id, replica});
  box.awaited_releases = box.options->replicas;
}

void answer(self_pointer self) {
  auto& box = self->state;
  const auto& options = *box.options;
  request_done done = box.core->result();
  done.client_tag = options.order.client_tag;
  done.text = std::move(box.text);
  if (options.tracer) {
    trace_batch batch;
    std::uint64_t fetched_tokens = 0;
    for (const auto& work : done.usage)
      fetched_tokens += work.fetched_tokens;
    batch.requests.push_back({options.now_us(), options.id.value, options.order.spec.prompt_tokens,
                              static_cast<std::uint32_t>(done.output.size()), done.handoffs,
                              static_cast<std::uint32_t>(done.ttft_us), done.total_us,
                              static_cast<std::uint16_t>(done.finish), 0,
                              static_cast<std::uint32_t>(fetched_tokens)});
    self->send(options.tracer, std::move(batch));
  }
  self->send(options.client, std::move(done));
  self->send(options.registry, request_ended{options.id, options.order.client_tag});
  self->quit();
}

/// Text of the tokens just committed; cuts them at a stop string.
void take_text(request_box& box, token_delta& delta, bool is_last) {
  const auto& options = *box.options;
  const std::size_t before = box.core->output_tokens() - delta.commits.size();
  for (std::size_t i = 0; i < delta.commits.size(); ++i) {
    std::string piece = options.text->push(delta.commits[i].token);
    if (is_last && i + 1 == delta.commits.size())
      piece += options.text->finish();
    delta.text += box.stops.push(piece);
    if (box.stops.stopped()) {
      delta.commits.resize(i + 1);
      delta.commits.back().finish = finish_reason::stop;
      box.core->stop_after(before + i + 1, options.now_us());
      break;
    }
  }
  if (is_last)
    delta.text += box.stops.finish();
  box.text += delta.text;
}

void take_commits(self_pointer self, commit_batch&& batch) {
  auto& box = self->state;
  const auto& options = *box.options;
  if (box.core->ended())
    return;
  // From another rank, the first token may overtake what is told of the prompt.
  const bool told_before = box.prompt_told;
  box.prompt_told = box.prompt_told || !batch.prompts.empty();
  if (options.order.spec.prompt_logprobs && !box.prompt_told) {
    std::ranges::move(batch.commits, std::back_inserter(box.held.commits));
    std::ranges::move(batch.resumes, std::back_inserter(box.held.resumes));
    return;
  }
  auto held = std::exchange(box.held, {});
  std::ranges::move(held.commits, std::back_inserter(batch.commits));
  std::ranges::move(held.resumes, std::back_inserter(batch.resumes));
  token_delta delta;
  delta.client_tag = options.order.client_tag;
  box.core->on_resumes(std::move(batch.resumes));
  delta.commits = box.core->on_commits(std::move(batch.commits), options.now_us());
  if (!told_before)
    for (auto& one : batch.prompts)
      delta.prompt = std::move(one.tokens);
  if (options.text)
    take_text(box, delta, box.core->ended());
  if (!delta.commits.empty() || !delta.prompt.empty())
    self->send(options.client, std::move(delta));
  if (box.core->ended())
    release_all(self);
}

void end_early(self_pointer self, finish_reason reason, error failure) {
  auto& box = self->state;
  if (box.core->ended())
    return;
  box.core->end(reason, std::move(failure), box.options->now_us());
  if (box.options->text) {
    box.text += box.stops.push(box.options->text->finish());
    box.text += box.stops.finish();
  }
  release_all(self);
}

/// All turns so far are void. What the client has seen stands, the rest is made again.
void take_up_again(self_pointer self, model_id fallback) {
  auto& box = self->state;
  auto& options = *box.options;
  auto& spec = options.order.spec;
  const auto turn = box.core->begin_epoch();
  if (!turn) {
    end_early(self, finish_reason::failed,
              {errc::unavailable, "too many ranks were lost while the request was under way"});
    return;
  }
  box.held = {};
  handoff again;
  again.request = options.id;
  again.turn = *turn;
  again.tokens = options.order.prompt;
  for (const auto& x : box.core->output())
    again.tokens.push_back(x.token);
  model_id next = options.start.model;
  again.state = options.start.state;
  if (const auto& at = box.core->resume(); at && at->position == again.tokens.size()) {
    next = at->next;
    again.state = at->state;
  }
  const auto goes_on = choose_resumption(next, options.start.model, fallback, spec.replicas);
  spec.pinned = spec.pinned || goes_on.pinned;
  again.from = again.to = {goes_on.model, spec.replicas.at(goes_on.model.value)};
  again.spec = spec;
  again.spec.prompt_logprobs = spec.prompt_logprobs && !box.prompt_told;
  for (replica_id replica : options.replicas)
    self->send(options.outlet, recall{options.id, *turn, replica});
  self->send(options.outlet, std::move(again));
}

/// Nobody waits for what is lost; a request that it served goes on elsewhere, or ends with why.
void take_loss(self_pointer self, const replicas_changed& x) {
  auto& box = self->state;
  auto& options = *box.options;
  const auto is_lost = [&](replica_id one) {
    return std::find(x.lost.begin(), x.lost.end(), one) != x.lost.end();
  };
  std::erase_if(options.replicas, is_lost);
  if (box.core->ended()) {
    if (std::erase_if(box.awaited_releases, is_lost) > 0 && box.awaited_releases.empty())
      answer(self);
    return;
  }
  if (options.order.spec.replicas == x.replicas)
    return;
  options.order.spec.replicas = x.replicas;
  if (!x.failure.empty())
    end_early(self, finish_reason::failed, {errc::unavailable, x.failure});
  else
    take_up_again(self, x.fallback);
}

} // namespace

request_actor::behavior_type request(self_pointer self, std::shared_ptr<request_options> options) {
  auto& box = self->state;
  box.options = std::move(options);
  box.stops = stop_scanner(box.options->order.stop);
  box.core.emplace(box.options->id, box.options->order.spec.prompt_tokens, box.options->models,
                   box.options->now_us());
  start(self);
  return {
      [self](commit_batch& x) { take_commits(self, std::move(x)); },
      [self](request_failed& x) {
        end_early(self, finish_reason::failed, {x.code, std::move(x.message)});
      },
      [self](const cancel&) {
        end_early(self, finish_reason::cancelled, {errc::cancelled, "cancelled by the client"});
      },
      [self](const released& x) {
        auto& b = self->state;
        b.core->on_released(x);
        if (std::erase(b.awaited_releases, x.from) > 0 && b.awaited_releases.empty())
          answer(self);
      },
      [self](const replicas_changed& x) { take_loss(self, x); },
  };
}

} // namespace tokenrouter
