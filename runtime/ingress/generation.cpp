#include "runtime/ingress/generation.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/core/log.hpp"

namespace tokenrouter {

namespace {

void append(generation_delta& to, generation_delta&& from) {
  const auto move_all = [](auto& a, auto& b) {
    a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  };
  move_all(to.prompt_tokens, from.prompt_tokens);
  move_all(to.tokens, from.tokens);
  to.text += from.text;
}

class generation : public std::enable_shared_from_this<generation> {
 public:
  generation(generation_call call, std::unique_ptr<answer_format> format, incoming_call incoming,
             const generation_host& host)
      : call_(std::move(call)), format_(std::move(format)), incoming_(std::move(incoming)),
        host_(host) {}

  void start();

  /// News of one choice, on the exchange's thread.
  void take(std::size_t index, generation_delta&& fresh, std::optional<generation_end>&& end);

 private:
  generation_order order_of(std::size_t index, std::uint32_t room_tokens) const;
  void note(std::size_t index, const generation_delta& fresh);
  void send(const std::vector<std::string>& events);
  void fail(const api_error& x);
  void finish();
  void cancel_all();
  void log_end(const char* how) const;

  generation_call call_;
  std::unique_ptr<answer_format> format_;
  incoming_call incoming_;
  generation_host host_;
  std::vector<choice_output> choices_;
  std::vector<std::uint64_t> tickets_;
  std::vector<std::uint64_t> last_us_; ///< when each choice last had news
  std::size_t ended_choices_ = 0;
  bool streaming_ = false;
  bool over_ = false;
};

/// Carries what the control thread tells over to the exchange's: collects it until that has a turn.
class choice_sink final : public generation_sink, public std::enable_shared_from_this<choice_sink> {
 public:
  choice_sink(std::shared_ptr<generation> owner, std::shared_ptr<exchange> client,
              std::size_t index)
      : owner_(std::move(owner)), client_(std::move(client)), index_(index) {}

  void on_delta(generation_delta&& x) override {
    add([&] { append(fresh_, std::move(x)); });
  }
  void on_end(generation_end&& x) override {
    add([&] { end_ = std::move(x); });
  }

 private:
  template <class Change>
  void add(Change change) {
    {
      const std::lock_guard guard(mutex_);
      change();
      if (std::exchange(posted_, true))
        return;
    }
    client_->post([self = shared_from_this()] { self->hand_over(); });
  }

  void hand_over() {
    generation_delta fresh;
    std::optional<generation_end> end;
    {
      const std::lock_guard guard(mutex_);
      posted_ = false;
      fresh = std::exchange(fresh_, {});
      end = std::exchange(end_, std::nullopt);
    }
    owner_->take(index_, std::move(fresh), std::move(end));
  }

  std::shared_ptr<generation> owner_;
  std::shared_ptr<exchange> client_;
  std::size_t index_;
  std::mutex mutex_; ///< guards all below
  generation_delta fresh_;
  std::optional<generation_end> end_;
  bool posted_ = false;
};

/// `room_tokens`: as many tokens as prompt and output may have together.
generation_order generation::order_of(std::size_t index, std::uint32_t room_tokens) const {
  generation_order order = call_.each;
  order.prompt = choices_[index].prompt;
  order.sampling.seed += index % call_.choices_per_prompt;
  const auto prompt = static_cast<std::uint32_t>(order.prompt.size());
  order.max_new_tokens =
      call_.max_new_tokens.value_or(room_tokens > prompt ? room_tokens - prompt : 1);
  order.max_new_tokens = std::max(order.max_new_tokens, 1u); // echo alone still runs the prompt
  order.top_logprobs = call_.logprobs ? call_.top_logprobs : 0;
  order.prompt_logprobs = call_.echo && call_.logprobs;
  return order;
}

void generation::start() {
  const auto counts = host_.job.counts();
  const auto room_tokens =
      std::min(host_.job.facts().context_tokens_max, std::max(counts.pool_tokens_min, 1u));
  const std::size_t count = call_.prompts.size() * call_.choices_per_prompt;
  choices_.resize(count);
  last_us_.resize(count, 0);
  std::uint64_t prompt_tokens = 0;
  for (std::size_t i = 0; i < count; ++i) {
    choices_[i].index = static_cast<std::uint32_t>(i);
    choices_[i].prompt = call_.prompts[i / call_.choices_per_prompt];
    prompt_tokens += choices_[i].prompt.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto ticket =
        host_.job.submit(order_of(i, room_tokens),
                         std::make_shared<choice_sink>(shared_from_this(), incoming_.client, i));
    if (ticket) {
      tickets_.push_back(*ticket);
      continue;
    }
    const bool full = ticket.error().code == errc::capacity;
    return fail({full ? 429u : 503u, ticket.error().message, "",
                 full ? "too_many_requests" : "unavailable", 1});
  }
  host_.counted.note_prompt(prompt_tokens);
  incoming_.client->on_client_gone([self = shared_from_this()] {
    if (std::exchange(self->over_, true))
      return;
    self->cancel_all();
    self->log_end("client gone");
  });
}

void generation::note(std::size_t index, const generation_delta& fresh) {
  if (fresh.tokens.empty())
    return;
  const std::uint64_t now_us = monotonic_us();
  std::uint64_t& last_us = last_us_[index];
  if (last_us == 0)
    host_.counted.note_first_token(now_us - incoming_.received_us);
  host_.counted.note_tokens(fresh.tokens.size(), last_us == 0 ? 0 : now_us - last_us);
  last_us = now_us;
}

void generation::take(std::size_t index, generation_delta&& fresh,
                      std::optional<generation_end>&& end) {
  if (end)
    host_.counted.note_end(end->finish, monotonic_us() - incoming_.received_us);
  if (over_)
    return;
  note(index, fresh);
  choice_output& choice = choices_[index];
  if (call_.max_new_tokens == 0u) {
    fresh.tokens.clear();
    fresh.text.clear();
  }
  const generation_delta shown = call_.stream ? fresh : generation_delta{};
  append(choice.all, std::move(fresh));
  if (end && end->finish != finish_reason::stop && end->finish != finish_reason::length)
    return fail(to_api_error(end->failure, call_.prompt_param));
  std::vector<std::string> events;
  if (call_.stream && !(shown.tokens.empty() && shown.text.empty()))
    format_->piece(choice, shown, events);
  if (end) {
    choice.end = std::move(end);
    ++ended_choices_;
    if (call_.stream)
      format_->last(choice, events);
  }
  if (!events.empty())
    send(events);
  if (!over_ && ended_choices_ == choices_.size())
    finish();
}

void generation::send(const std::vector<std::string>& events) {
  if (!std::exchange(streaming_, true)) {
    host_.counted.note_reply(200);
    incoming_.client->begin_stream();
  }
  std::string piece;
  for (const auto& x : events)
    piece += "data: " + x + "\n\n";
  incoming_.client->write_piece(std::move(piece));
  if (incoming_.client->unsent_bytes() <= host_.unsent_bytes_max)
    return;
  over_ = true;
  cancel_all();
  incoming_.client->abort();
  log_end("client too slow");
}

void generation::fail(const api_error& x) {
  over_ = true;
  cancel_all();
  log_end(x.message.c_str());
  if (!streaming_)
    return reply_error(*incoming_.client, host_.counted, x);
  incoming_.client->write_piece("data: " + error_body(x) + "\n\ndata: [DONE]\n\n");
  incoming_.client->end_stream();
}

void generation::finish() {
  log_end("done");
  if (call_.stream) {
    std::vector<std::string> events;
    format_->closing(choices_, events);
    send(events);
    over_ = true;
    return incoming_.client->end_stream();
  }
  over_ = true;
  http_reply reply;
  reply.body = format_->whole(choices_);
  host_.counted.note_reply(reply.status);
  incoming_.client->reply(std::move(reply));
}

void generation::cancel_all() {
  for (const std::uint64_t ticket : tickets_)
    host_.job.cancel(ticket);
}

void generation::log_end(const char* how) const {
  std::size_t tokens = 0;
  for (const auto& x : choices_)
    tokens += x.all.tokens.size();
  spdlog::info("request={} choices={} output_tokens={} total_ms={} end=\"{}\"", incoming_.id,
               choices_.size(), tokens, (monotonic_us() - incoming_.received_us) / 1000, how);
}

} // namespace

void start_generation(generation_call call, std::unique_ptr<answer_format> format,
                      incoming_call incoming, const generation_host& host) {
  std::make_shared<generation>(std::move(call), std::move(format), std::move(incoming), host)
      ->start();
}

void reply_error(exchange& client, metrics& counted, const api_error& x) {
  counted.note_reply(x.status);
  http_reply reply;
  reply.status = x.status;
  reply.body = error_body(x);
  reply.retry_after_s = x.retry_after_s;
  client.reply(std::move(reply));
}

} // namespace tokenrouter
