#include "runtime/methods/query_level/query_level.hpp"

#include <utility>

namespace tokenrouter {

namespace {

constexpr model_id smallest{0};

/// What admission compared, for the first token's report.
struct query_state {
  std::uint32_t known = 0;
  float score = 0;
};

result<query_score> source_of(const method_parameters& p) {
  constexpr std::pair<const char*, query_score> sources[] = {{"request", query_score::request},
                                                             {"hash", query_score::hash},
                                                             {"entropy", query_score::entropy},
                                                             {"head", query_score::head}};
  for (const auto& [name, source] : sources)
    if (p.score_source == name)
      return source;
  return fail(errc::invalid_argument,
              "method.score_source: must be request, hash, entropy or head, not '" +
                  p.score_source + "'");
}

bool is_known_at_admission(query_score source) {
  return source == query_score::request || source == query_score::hash;
}

} // namespace

role_needs query_level_judge::needs() const {
  role_needs out{to_set(signal::heads), {options_.head}};
  if (options_.source == query_score::entropy) {
    out = {to_set(signal::entropy), {}};
    out.tail_positions = options_.tail_tokens;
  }
  out.request_threshold_max = levels_.takes_own() ? 1 : 0;
  return out;
}

float query_level_judge::score_of(const route_input& in) const {
  if (options_.source == query_score::head)
    return options_.head == "citer" ? 1 - in.head_score : in.head_score;
  if (in.tail_entropies.empty())
    return in.entropy_normalised;
  double sum = 0;
  for (const float entropy : in.tail_entropies)
    sum += double{entropy};
  return static_cast<float>(sum / static_cast<double>(in.tail_entropies.size()));
}

route_decision query_level_judge::route(const route_input& in, method_state&) const {
  if (in.position != in.prompt_tokens)
    return {};
  const float score = score_of(in);
  const model_id chosen = levels_.of(double{score}, in.threshold);
  return {chosen == smallest ? route_action::stay : route_action::go_drop, chosen, score};
}

role_needs query_level_writer::needs() const {
  role_needs out;
  out.request_threshold_max = takes_threshold_ ? 1 : 0;
  return out;
}

route_decision query_level_writer::route(const route_input& in, method_state& state) const {
  const auto s = state.get<query_state>();
  const bool first = in.position == in.prompt_tokens;
  return {route_action::stay, {}, first && s.known ? s.score : no_score};
}

request_start query_level_entry::start(const start_input& in) const {
  const float score =
      source_ == query_score::request ? in.request_score : prompt_hash_score(in.prompt);
  request_start out{levels_.of(double{score}, in.threshold), {}};
  out.state.set(query_state{1, score});
  return out;
}

role_result make_query_level(model_id self, const method_topology& topology,
                             const method_parameters& parameters) {
  const auto source = source_of(parameters);
  if (!source)
    return tl::unexpected(source.error());
  auto levels = query_levels::make(topology, parameters);
  if (!levels)
    return tl::unexpected(levels.error());
  if (topology.entry != smallest)
    return fail(errc::invalid_argument,
                "query-level routing starts on the first model; order them smallest first");
  if (parameters.head_kind != "r2r" && parameters.head_kind != "citer")
    return fail(errc::invalid_argument,
                "method.head_kind: must be r2r or citer, not '" + parameters.head_kind + "'");
  if (parameters.score_tail_tokens < 1)
    return fail(errc::invalid_argument, "method.score_tail_tokens: must be at least 1");
  if (is_known_at_admission(*source) || self != smallest)
    return std::make_unique<query_level_writer>(levels->takes_own());
  return std::make_unique<query_level_judge>(
      query_level_judge::options{*source, parameters.score_tail_tokens, parameters.head_kind},
      std::move(*levels));
}

entry_result make_query_level_entry(const method_topology& topology,
                                    const method_parameters& parameters) {
  const auto source = source_of(parameters);
  if (!source)
    return tl::unexpected(source.error());
  auto levels = query_levels::make(topology, parameters);
  if (!levels)
    return tl::unexpected(levels.error());
  if (!is_known_at_admission(*source))
    return std::make_unique<fixed_entry>(topology.entry);
  return std::make_unique<query_level_entry>(*source, std::move(*levels));
}

} // namespace tokenrouter
