#include "tests/actors/rank_bench.hpp"

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"

namespace tokenrouter::test {

namespace {

constexpr token_id eos = 0;

struct client_box {};

rank_client::behavior_type client(rank_client::stateful_pointer<client_box> self, client_log* log,
                                  gateway_actor gateway) {
  return {
      [log](const token_delta& x) {
        auto& list = log->streamed[x.client_tag];
        list.insert(list.end(), x.commits.begin(), x.commits.end());
        if (!x.prompt.empty())
          log->prompts.emplace(x.client_tag, x.prompt);
      },
      [log](const request_done& x) {
        ++log->answers;
        log->done.emplace(x.client_tag, x);
      },
      [self, gateway](submit& x) { self->send(gateway, std::move(x)); },
      [self, gateway](const cancel& x) { self->send(gateway, x); },
  };
}

} // namespace

rank_bench::rank_bench(rank_options options)
    : options_(std::move(options)), config_(options_.virtual_time), system_(config_),
      actors_(std::make_unique<rank_actors>(system_, plan(), nullptr)) {
  client_ = system_.spawn(client, &log_, actors_->gateway());
}

rank_bench::~rank_bench() {
  shut_down();
}

method_topology rank_bench::topology() const {
  return {options_.roles, {0}};
}

method_parameters rank_bench::parameters() const {
  method_parameters x;
  x.threshold = options_.threshold;
  return x;
}

scripted_options rank_bench::backend_of(std::size_t model) const {
  scripted_options x;
  x.seed = 7;
  x.weights_id = model;
  x.vocab_tokens = rank_vocab_tokens;
  x.context_tokens_max = rank_context_tokens;
  x.eos_token = eos;
  x.eos_odds = options_.eos_odds;
  x.heads = 1;
  x.step_base_us = options_.step_us;
  return x;
}

rank_plan rank_bench::plan() const {
  rank_plan x;
  x.make_entry = [this]() -> std::unique_ptr<const method_entry> {
    return make_entry(topology(), parameters()).value();
  };
  x.eos_tokens = {eos};
  x.context_tokens_max = rank_context_tokens;
  x.vocab_tokens = rank_vocab_tokens;
  x.inline_models = options_.virtual_time;
  x.takes_clients = true;
  x.open_trace = options_.open_trace;
  for (std::uint16_t i = 0; i < options_.roles.size(); ++i) {
    const std::string name = "m" + std::to_string(i);
    x.replicas.push_back({{{i}, 0}, {0}});
    x.admission.push_back({name, rank_context_tokens, 0});
    local_replica one;
    one.facts = {{{i}, 0}, options_.pool_blocks * limits::block_tokens, rank_vocab_tokens, 1};
    one.limits = {options_.rows_max, 512};
    one.kv_blocks = options_.pool_blocks;
    one.load = [backend = backend_of(i), fine = options_.loads, wrap = options_.wrap](
                   const shard_group&) -> result<std::unique_ptr<tokenrouter::backend>> {
      if (!fine)
        return fail(errc::not_found, "there is no such model");
      std::unique_ptr<tokenrouter::backend> device = std::make_unique<scripted_backend>(backend);
      return wrap ? wrap(std::move(device)) : std::move(device);
    };
    one.make_role = [this, i]() -> std::unique_ptr<const method_role> {
      return make_role({i}, topology(), parameters()).value();
    };
    x.local.push_back(std::move(one));
  }
  return x;
}

void rank_bench::submit(std::uint64_t tag, std::vector<token_id> prompt,
                        std::uint32_t max_new_tokens) {
  tokenrouter::submit order;
  order.client_tag = tag;
  order.prompt = std::move(prompt);
  order.spec.max_new_tokens = max_new_tokens;
  post(std::move(order));
}

void rank_bench::post(tokenrouter::submit order) {
  caf::anon_send(client_, std::move(order));
}

void rank_bench::cancel(std::uint64_t tag) {
  caf::anon_send(client_, tokenrouter::cancel{tag});
}

void rank_bench::run_until(std::uint64_t us) {
  loop().run_ready();
  loop().advance_to(us);
  loop().run_ready();
}

void rank_bench::run_until_answered(std::size_t count) {
  loop().run_ready();
  while (log_.done.size() < count) {
    const auto next_us = loop().next_timer_us();
    if (!next_us)
      return;
    run_until(*next_us);
  }
}

std::vector<token_id> rank_bench::expected(const std::vector<token_id>& prompt,
                                           std::uint32_t max_new_tokens) const {
  std::vector<token_id> tokens = prompt;
  method_state state;
  model_id model{0};
  for (;;) {
    const auto role = make_role(model, topology(), parameters()).value();
    const auto answer = scripted_answer(backend_of(model.value), tokens, role->needs().signals, {},
                                        sample_stream(model.value));
    route_input in;
    in.position = static_cast<std::uint32_t>(tokens.size());
    in.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
    in.proposed = answer.token;
    in.head_score = answer.head_scores[0];
    const auto decision = role->route(in, state);
    if (decision.action != route_action::go_drop) {
      tokens.push_back(answer.token);
      if (answer.token == eos || tokens.size() - prompt.size() >= max_new_tokens ||
          tokens.size() >= rank_context_tokens)
        return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
    }
    if (decision.action != route_action::stay)
      model = decision.target;
  }
}

bool rank_bench::pools_are_whole() {
  bool whole = true;
  caf::scoped_actor self(system_);
  for (const auto& pool : actors_->pools()) {
    self->send(pool, caf::get_atom::value);
    loop().run_ready();
    self->receive([&](const pool_facts& x) {
      whole = whole && x.free_blocks + x.cached_blocks == x.total_blocks && x.parked_requests == 0;
    });
  }
  return whole;
}

void rank_bench::shut_down() {
  if (!actors_)
    return;
  caf::anon_send_exit(client_, caf::exit_reason::user_shutdown);
  client_ = nullptr;
  actors_->shut_down();
  actors_.reset();
  loop().run_ready();
}

} // namespace tokenrouter::test
