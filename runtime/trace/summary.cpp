#include "runtime/trace/summary.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "runtime/core/quantile.hpp"

namespace tokenrouter {

namespace {

void add_steps(const trace_file& file, trace_summary& out) {
  for (const auto& x : file.events.steps) {
    if (x.model >= out.models.size())
      continue;
    auto& m = out.models[x.model];
    ++m.steps;
    m.rows += x.rows;
    m.computed_tokens += x.tokens;
    m.prefill_tokens += x.prefill_tokens;
    m.stages.wait_us += x.wait_us;
    m.stages.plan_us += x.plan_us;
    m.stages.hop_us += x.turnaround_us > x.step_us ? x.turnaround_us - x.step_us : 0;
    m.stages.step_us += x.step_us;
    m.stages.route_us += x.route_us;
  }
}

/// Clocks are compared on one host only.
void add_handoffs(const std::vector<trace_file>& files, trace_summary& out) {
  struct sending {
    std::uint64_t time_us;
    const std::string* host;
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, sending> sent;
  for (const auto& file : files)
    for (const auto& x : file.events.handoffs)
      if (x.side == handoff_side::sent) {
        ++out.handoffs[{x.from_model, x.to_model}];
        sent[{x.request, x.turn}] = {x.time_us, &file.origin.host};
      }
  for (const auto& file : files)
    for (const auto& x : file.events.handoffs) {
      if (x.side != handoff_side::received)
        continue;
      const auto found = sent.find({x.request, x.turn});
      if (found != sent.end() && *found->second.host == file.origin.host &&
          x.time_us >= found->second.time_us)
        out.handoff_us.push_back(x.time_us - found->second.time_us);
    }
  std::sort(out.handoff_us.begin(), out.handoff_us.end());
}

double per_step(std::uint64_t sum_us, std::uint64_t steps) {
  return steps == 0 ? 0.0 : static_cast<double>(sum_us) / static_cast<double>(steps);
}

} // namespace

result<trace_summary> summarise(const std::vector<trace_file>& files) {
  trace_summary out;
  for (const auto& file : files) {
    if (out.model_names.empty()) {
      out.model_names = file.origin.model_names;
      out.models.resize(out.model_names.size());
    } else if (out.model_names != file.origin.model_names) {
      return fail(errc::mismatch, "the trace files are of different jobs: their models differ");
    }
    for (const auto& x : file.events.tokens) {
      ++out.output_tokens;
      if (x.model < out.models.size())
        ++out.models[x.model].tokens;
    }
    for (const auto& x : file.events.requests) {
      ++out.requests;
      if (x.output_tokens > 0)
        out.ttft_us.push_back(x.ttft_us);
    }
    add_steps(file, out);
  }
  std::sort(out.ttft_us.begin(), out.ttft_us.end());
  add_handoffs(files, out);
  return out;
}

std::string to_text(const trace_summary& s) {
  std::size_t width = 5;
  for (const auto& name : s.model_names)
    width = std::max(width, name.size());
  std::string out = fmt::format("{:<{}} {:>9} {:>7} {:>10} {:>10} {:>9} {:>10}\n", "model", width,
                                "tokens", "share", "computed", "prefill", "steps", "rows/step");
  for (std::size_t i = 0; i < s.models.size(); ++i) {
    const auto& m = s.models[i];
    const double share = s.output_tokens == 0 ? 0.0
                                              : 100.0 * static_cast<double>(m.tokens) /
                                                    static_cast<double>(s.output_tokens);
    out += fmt::format("{:<{}} {:>9} {:>5.1f} % {:>10} {:>10} {:>9} {:>10.2f}\n", s.model_names[i],
                       width, m.tokens, share, m.computed_tokens, m.prefill_tokens, m.steps,
                       per_step(m.rows, m.steps));
  }
  out += fmt::format("\n{:<{}} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "us/step", width, "wait",
                     "plan", "hop", "step", "route");
  for (std::size_t i = 0; i < s.models.size(); ++i) {
    const auto& m = s.models[i];
    out += fmt::format("{:<{}} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n",
                       s.model_names[i], width, per_step(m.stages.wait_us, m.steps),
                       per_step(m.stages.plan_us, m.steps), per_step(m.stages.hop_us, m.steps),
                       per_step(m.stages.step_us, m.steps), per_step(m.stages.route_us, m.steps));
  }
  out += "\n";
  std::uint64_t total = 0;
  for (const auto& [pair, count] : s.handoffs) {
    const auto name = [&](std::uint16_t m) {
      return m < s.model_names.size() ? s.model_names[m] : std::to_string(m);
    };
    out += fmt::format("handoffs {} -> {}: {}\n", name(pair.first), name(pair.second), count);
    total += count;
  }
  out += fmt::format("{} requests, {} tokens, {} handoffs", s.requests, s.output_tokens, total);
  if (!s.handoff_us.empty())
    out += fmt::format("; handoff p50 {} us, p99 {} us",
                       quantile(std::span<const std::uint64_t>(s.handoff_us), 0.5),
                       quantile(std::span<const std::uint64_t>(s.handoff_us), 0.99));
  if (!s.ttft_us.empty())
    out += fmt::format(
        "; TTFT p50 {:.1f} ms, p99 {:.1f} ms",
        static_cast<double>(quantile(std::span<const std::uint64_t>(s.ttft_us), 0.5)) / 1000.0,
        static_cast<double>(quantile(std::span<const std::uint64_t>(s.ttft_us), 0.99)) / 1000.0);
  return out + "\n";
}

} // namespace tokenrouter
