#include "runtime/ingress/service.hpp"

#include <chrono>
#include <random>

#include <fmt/format.h>

#include "runtime/core/clock.hpp"
#include "runtime/ingress/answer_json.hpp"
#include "runtime/ingress/generation.hpp"
#include "runtime/ingress/page.hpp"
#include "runtime/ingress/text_calls.hpp"

namespace tokenrouter {

namespace {

constexpr unsigned liveness_deadline_ms = 1000;
constexpr unsigned figures_deadline_ms = 250; ///< then the last known ones do

std::int64_t unix_time_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Takes as long for a wrong key as for a right one of that length.
bool same_key(std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

answer_json model_json(const std::string& name, std::int64_t started_s, const engine_facts& facts) {
  answer_json model;
  model["id"] = name;
  model["object"] = "model";
  model["created"] = started_s;
  model["owned_by"] = "tokenrouter";
  model["max_model_len"] = facts.context_tokens_max;
  return model;
}

const char* phase_fault(engine_phase phase) {
  switch (phase) {
  case engine_phase::loading:
    return "loading";
  case engine_phase::ready:
    return "";
  case engine_phase::draining:
    return "draining";
  case engine_phase::failed:
    return "failed";
  }
  return "unknown";
}

} // namespace

const service::route service::routes_[] = {
    {"GET", "/", &service::page},
    {"POST", "/v1/chat/completions", &service::chat},
    {"POST", "/v1/completions", &service::completion},
    {"POST", "/generate", &service::generate},
    {"GET", "/v1/models", &service::models},
    {"POST", "/tokenize", &service::tokenize},
    {"POST", "/detokenize", &service::detokenize},
    {"GET", "/health", &service::health},
    {"GET", "/metrics", &service::metrics_page},
    {"GET", "/v1/routing", &service::routing},
};

service::service(engine& job, service_options options)
    : job_(job), options_(std::move(options)), started_s_(unix_time_s()),
      id_stem_(fmt::format("{:08x}", std::random_device{}())) {
  for (const auto& model : job_.facts().models)
    model_names_.push_back(model.name);
}

bool service::may_enter(const http_call& call, std::string_view path) const {
  if (options_.api_keys.empty() || path == "/health" || path == "/")
    return true;
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view given = call.authorization;
  if (!given.starts_with(scheme))
    return false;
  bool known = false;
  for (const auto& key : options_.api_keys)
    known = same_key(given.substr(scheme.size()), key) || known;
  return known;
}

void service::handle(const http_call& call, const std::shared_ptr<exchange>& client) {
  const std::string_view target = call.target;
  const std::string_view path = target.substr(0, target.find('?'));
  if (!may_enter(call, path))
    return reply_error(
        *client, counted_,
        {401, "give a valid API key: Authorization: Bearer KEY", "", "invalid_api_key", 0});
  bool other_method = false;
  for (const route& x : routes_) {
    if (x.path != path)
      continue;
    if (x.method == call.method)
      return (this->*x.act)(call, client);
    other_method = true;
  }
  constexpr std::string_view one_model = "/v1/models/";
  if (call.method == "GET" && path.starts_with(one_model)) {
    for (const auto& name : served_names())
      if (path.substr(one_model.size()) == name)
        return reply_json(*client, dump(model_json(name, started_s_, job_.facts())));
    return reply_error(*client, counted_,
                       {404, "there is no such model here", "model", "model_not_found", 0});
  }
  if (other_method)
    return reply_error(*client, counted_,
                       {405, "the method is not " + call.method + " here", "", "", 0});
  reply_error(*client, counted_, {404, "there is nothing at " + std::string(path), "", "", 0});
}

std::vector<std::string> service::served_names() const {
  std::vector<std::string> names = {options_.tools.model_name};
  const auto& single = options_.tools.single_models;
  names.insert(names.end(), single.begin(), single.end());
  return names;
}

std::string service::fresh_id(const char* prefix) {
  return prefix + id_stem_ + fmt::format("{:012x}", next_id_.fetch_add(1));
}

void service::reply_json(exchange& client, std::string body) {
  counted_.note_reply(200);
  http_reply reply;
  reply.body = std::move(body);
  client.reply(std::move(reply));
}

void service::generate_text(api_result<generation_call> parsed, const char* id_prefix,
                            const std::shared_ptr<exchange>& client) {
  if (!parsed)
    return reply_error(*client, counted_, parsed.error());
  incoming_call incoming{fresh_id(id_prefix), monotonic_us(), client};
  answer_facts facts{incoming.id, unix_time_s(), options_.tools.words, model_names_};
  auto format = parsed->form == api_form::generate ? make_generate_answer(*parsed, std::move(facts))
                                                   : make_openai_answer(*parsed, std::move(facts));
  start_generation(std::move(*parsed), std::move(format), std::move(incoming),
                   {job_, counted_, options_.unsent_bytes_max});
}

void service::chat(const http_call& call, const std::shared_ptr<exchange>& client) {
  generate_text(parse_chat(call.body, options_.tools), "chatcmpl-", client);
}

void service::completion(const http_call& call, const std::shared_ptr<exchange>& client) {
  generate_text(parse_completion(call.body, options_.tools), "cmpl-", client);
}

void service::generate(const http_call& call, const std::shared_ptr<exchange>& client) {
  generate_text(parse_generate(call.body, options_.tools), "gen-", client);
}

void service::page(const http_call&, const std::shared_ptr<exchange>& client) {
  counted_.note_reply(200);
  client->reply({200, "text/html; charset=utf-8", std::string(page_html()), 0});
}

void service::models(const http_call&, const std::shared_ptr<exchange>& client) {
  answer_json out;
  out["object"] = "list";
  out["data"] = answer_json::array();
  for (const auto& name : served_names())
    out["data"].push_back(model_json(name, started_s_, job_.facts()));
  reply_json(*client, dump(out));
}

void service::tokenize(const http_call& call, const std::shared_ptr<exchange>& client) {
  auto body = tokenize_answer(call.body, options_.tools, job_.facts().context_tokens_max);
  if (!body)
    return reply_error(*client, counted_, body.error());
  reply_json(*client, std::move(*body));
}

void service::detokenize(const http_call& call, const std::shared_ptr<exchange>& client) {
  auto body = detokenize_answer(call.body, options_.tools);
  if (!body)
    return reply_error(*client, counted_, body.error());
  reply_json(*client, std::move(*body));
}

namespace {

/// Ranks that the job goes on without, and what they had; empty: none.
std::string lost_text(const engine_facts& facts, const engine_counts& counts) {
  std::string text;
  for (const auto rank : counts.lost_ranks)
    text += fmt::format("{}rank {}", text.empty() ? "" : ", ", rank);
  for (std::size_t i = 0; i < counts.models.size(); ++i)
    if (const auto lost = counts.models[i].lost_replicas; lost > 0)
      text += fmt::format(", {} of {} replicas of {}", lost, facts.models.at(i).ranks.size(),
                          facts.models[i].name);
  return text;
}

} // namespace

void service::reply_health(exchange& client, const std::string& fault) {
  http_reply reply;
  answer_json body;
  const std::string lost = lost_text(job_.facts(), job_.counts());
  body["status"] = !fault.empty() ? fault : lost.empty() ? "ok" : "degraded";
  if (!lost.empty())
    body["lost"] = lost;
  reply.status = fault.empty() ? 200 : 503;
  reply.retry_after_s = fault.empty() ? 0 : 1;
  reply.body = dump(body);
  counted_.note_reply(reply.status);
  client.reply(std::move(reply));
}

/// Alive is who answers: the question goes through the control threads of all ranks, and its answer
/// comes back from there or not at all.
void service::health(const http_call&, const std::shared_ptr<exchange>& client) {
  const auto phase = job_.counts().phase;
  if (phase != engine_phase::ready)
    return reply_health(*client, phase_fault(phase));
  auto answered = std::make_shared<bool>(false);
  const auto answer = [this, client, answered](const std::string& fault) {
    if (!std::exchange(*answered, true))
      reply_health(*client, fault);
  };
  client->after_ms(liveness_deadline_ms, [this, answer] {
    const std::string missing = job_.counts().unanswered;
    answer(missing.empty() ? "the control thread does not respond" : "no answer from " + missing);
  });
  job_.ask_status([client, answer](const std::string& fault) {
    client->post([answer, fault] { answer(fault); });
  });
}

void service::metrics_page(const http_call&, const std::shared_ptr<exchange>& client) {
  auto answered = std::make_shared<bool>(false);
  const auto answer = [this, client, answered] {
    if (!std::exchange(*answered, true))
      reply_metrics(*client);
  };
  client->after_ms(figures_deadline_ms, answer);
  job_.ask_status([client, answer](const std::string&) { client->post(answer); });
}

void service::reply_metrics(exchange& client) {
  http_reply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = counted_.page(job_.facts(), job_.counts(), options_.tools.model_name);
  counted_.note_reply(200);
  client.reply(std::move(reply));
}

void service::routing(const http_call&, const std::shared_ptr<exchange>& client) {
  const auto& facts = job_.facts();
  const auto counts = job_.counts();
  answer_json models = answer_json::array();
  for (std::size_t i = 0; i < facts.models.size(); ++i) {
    const auto& x = facts.models[i];
    answer_json one;
    one["name"] = x.name;
    one["role"] = x.role;
    one["ranks"] = x.ranks;
    one["context_tokens_max"] = x.context_tokens_max;
    one["pool_tokens"] = counts.models.at(i).pool_tokens;
    one["generated_tokens"] = counts.models.at(i).generated_tokens;
    one["computed_tokens"] = counts.models.at(i).computed_tokens;
    one["cached_tokens"] = counts.models.at(i).cached_tokens;
    one["fetched_tokens"] = counts.models.at(i).fetched_tokens;
    models.push_back(std::move(one));
  }
  answer_json out;
  out["method"] = facts.method;
  out["entry_model"] = facts.entry_model;
  out["ranks"] = facts.ranks;
  out["models"] = std::move(models);
  out["requests"] = {{"waiting", counts.waiting},   {"running", counts.running},
                     {"finished", counts.finished}, {"cancelled", counts.cancelled},
                     {"failed", counts.failed},     {"handoffs", counts.handoffs}};
  reply_json(*client, dump(out));
}

} // namespace tokenrouter
