#include "runtime/ingress/metrics.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tokenrouter {

namespace {

double seconds(std::uint64_t us) {
  return static_cast<double>(us) / 1e6;
}

/// A label's value: Prometheus escapes backslash, quote and line end.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"')
      out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

void write_heading(std::string& out, const std::string& name, const char* type,
                   const std::string& help) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

/// One value under each of its names.
void write_value(std::string& out, std::initializer_list<const char*> names, const char* type,
                 const std::string& help, const std::string& label, double value) {
  for (const char* name : names) {
    write_heading(out, name, type, help);
    out += fmt::format("{}{{{}}} {}\n", name, label, value);
  }
}

const char* phase_text(engine_phase phase) {
  switch (phase) {
  case engine_phase::loading:
    return "loading";
  case engine_phase::ready:
    return "ready";
  case engine_phase::draining:
    return "draining";
  case engine_phase::failed:
    return "failed";
  }
  return "unknown";
}

void write_models(std::string& out, const engine_facts& facts, const engine_counts& counts) {
  struct column {
    const char* name;
    const char* help;
    std::uint64_t engine_model_counts::*value;
  };
  for (const column& c :
       {column{"tokenrouter_model_generated_tokens_total", "Tokens a model wrote",
               &engine_model_counts::generated_tokens},
        column{"tokenrouter_model_computed_tokens_total", "Positions a model ran",
               &engine_model_counts::computed_tokens},
        column{"tokenrouter_model_cached_tokens_total",
               "Positions a model took from its prefix cache", &engine_model_counts::cached_tokens},
        column{"tokenrouter_model_fetched_tokens_total",
               "Of these, positions from another replica's prefix cache",
               &engine_model_counts::fetched_tokens}}) {
    write_heading(out, c.name, "counter", c.help);
    for (std::size_t i = 0; i < counts.models.size(); ++i)
      out += fmt::format("{}{{model=\"{}\"}} {}\n", c.name, escaped(facts.models.at(i).name),
                         counts.models[i].*c.value);
  }
}

} // namespace

void metrics::histogram::add(double s, std::uint64_t times) {
  const auto bucket = std::ranges::lower_bound(bounds_s, s) - bounds_s.begin();
  buckets[static_cast<std::size_t>(bucket)] += times;
  count += times;
  sum_s += s * static_cast<double>(times);
}

void metrics::note_reply(unsigned status) {
  const std::lock_guard guard(mutex_);
  ++replies_[status];
}

void metrics::note_prompt(std::uint64_t tokens) {
  const std::lock_guard guard(mutex_);
  prompt_tokens_ += tokens;
}

void metrics::note_first_token(std::uint64_t us) {
  const std::lock_guard guard(mutex_);
  ttft_.add(seconds(us), 1);
}

void metrics::note_tokens(std::uint64_t tokens, std::uint64_t us) {
  const std::lock_guard guard(mutex_);
  generated_tokens_ += tokens;
  if (tokens > 0 && us > 0)
    inter_token_.add(seconds(us) / static_cast<double>(tokens), tokens);
}

void metrics::note_end(finish_reason finish, std::uint64_t total_us) {
  const std::lock_guard guard(mutex_);
  ++ends_[finish == finish_reason::stop        ? "stop"
          : finish == finish_reason::length    ? "length"
          : finish == finish_reason::cancelled ? "abort"
                                               : "error"];
  total_.add(seconds(total_us), 1);
}

void metrics::write_histogram(std::string& out, const std::string& name, const std::string& help,
                              const std::string& label, const histogram& h) {
  write_heading(out, name, "histogram", help);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_s.size(); ++i) {
    below += h.buckets[i];
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, label, bounds_s[i], below);
  }
  out += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, label, h.count);
  out += fmt::format("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, label, h.sum_s, name, label,
                     h.count);
}

std::string metrics::page(const engine_facts& facts, const engine_counts& counts,
                          const std::string& model_name) const {
  const std::string label = "model_name=\"" + escaped(model_name) + "\"";
  double used = 0;
  for (const auto& model : counts.models)
    used = std::max(used, model.kv_usage_share);
  std::string out;
  write_value(out, {"tokenrouter_requests_running", "vllm:num_requests_running"}, "gauge",
              "Continuations with a token and no end yet", label, counts.running);
  write_value(out, {"tokenrouter_requests_waiting", "vllm:num_requests_waiting"}, "gauge",
              "Continuations without a token yet", label, counts.waiting);
  write_value(
      out, {"tokenrouter_kv_usage_ratio", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"},
      "gauge", "Share of the fullest KV pool that requests hold (1: full)", label, used);
  write_value(out, {"tokenrouter_handoffs_total"}, "counter",
              "Handoffs between models, of requests that have ended", label,
              static_cast<double>(counts.handoffs));
  const char* inside = "tokenrouter_engine_time_to_first_token_seconds";
  write_heading(out, inside, "summary",
                "The same inside the job, of continuations that have ended");
  out += fmt::format("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", inside, label, seconds(counts.ttft_us),
                     inside, label, counts.ttft_count);
  write_heading(out, "tokenrouter_phase", "gauge", "What the job is at");
  out += fmt::format("tokenrouter_phase{{phase=\"{}\"}} 1\n", phase_text(counts.phase));
  write_models(out, facts, counts);
  write_heading(out, "tokenrouter_lost_ranks", "gauge", "Ranks that the job goes on without");
  out += fmt::format("tokenrouter_lost_ranks {}\n", counts.lost_ranks.size());
  write_heading(out, "tokenrouter_model_lost_replicas", "gauge",
                "Replicas of a model that were lost with a rank");
  for (std::size_t i = 0; i < counts.models.size(); ++i)
    out += fmt::format("tokenrouter_model_lost_replicas{{model=\"{}\"}} {}\n",
                       escaped(facts.models.at(i).name), counts.models[i].lost_replicas);
  write_heading(out, "tokenrouter_model_kv_usage_ratio", "gauge",
                "Share of a model's fullest KV pool that requests hold");
  for (std::size_t i = 0; i < counts.models.size(); ++i)
    out += fmt::format("tokenrouter_model_kv_usage_ratio{{model=\"{}\"}} {}\n",
                       escaped(facts.models.at(i).name), counts.models[i].kv_usage_share);

  const std::lock_guard guard(mutex_);
  write_value(out, {"tokenrouter_prompt_tokens_total", "vllm:prompt_tokens_total"}, "counter",
              "Tokens of prompts", label, static_cast<double>(prompt_tokens_));
  write_value(out, {"tokenrouter_generated_tokens_total", "vllm:generation_tokens_total"},
              "counter", "Tokens of answers", label, static_cast<double>(generated_tokens_));
  for (const char* name : {"tokenrouter_requests_total", "vllm:request_success_total"}) {
    write_heading(out, name, "counter", "Continuations that have ended");
    for (const auto& [finish, count] : ends_)
      out += fmt::format("{}{{{},finished_reason=\"{}\"}} {}\n", name, label, finish, count);
  }
  write_heading(out, "tokenrouter_http_replies_total", "counter", "Answers by HTTP status");
  for (const auto& [status, count] : replies_)
    out += fmt::format("tokenrouter_http_replies_total{{status=\"{}\"}} {}\n", status, count);
  for (const char* name :
       {"tokenrouter_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"})
    write_histogram(out, name, "From a call's last byte to its first token", label, ttft_);
  for (const char* name :
       {"tokenrouter_inter_token_latency_seconds", "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds"})
    write_histogram(out, name, "Between tokens", label, inter_token_);
  for (const char* name : {"tokenrouter_request_seconds", "vllm:e2e_request_latency_seconds"})
    write_histogram(out, name, "From a call's last byte to the end of a continuation", label,
                    total_);
  return out;
}

} // namespace tokenrouter
