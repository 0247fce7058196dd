#pragma once

#include <cstdint>
#include <string>

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/query_level/query_scores.hpp"
#include "runtime/methods/topology.hpp"

/// Query-level routing (after RouteLLM): one score a request, `score ≥ threshold` goes up, and the
/// chosen model writes all of it; nothing ever comes back. Models are ordered smallest first.
/// Sources of the score:
///   request  the client's own, decided at admission; a request without one goes to the largest
///   hash     of the prompt's ids, uniform in [0, 1), decided at admission
///   entropy  mean normalised entropy of the smallest model over the last score_tail_tokens
///            positions of the prompt, decided by its first proposal
///   head     of the smallest model at the prompt's last position: R2R's score, or 1 − CITER's
namespace tokenrouter {

enum class query_score : std::uint8_t { request, hash, entropy, head };

/// Role `query_level_routing` of the smallest model where it has to run to find the score.
class query_level_judge final : public method_role {
 public:
  struct options {
    query_score source; ///< entropy or head
    std::uint32_t tail_tokens = 1;
    std::string head; ///< r2r or citer
  };

  query_level_judge(options o, query_levels levels)
      : options_(std::move(o)), levels_(std::move(levels)) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  float score_of(const route_input& in) const;

  options options_;
  query_levels levels_;
};

/// The same role elsewhere: writes to the end. Reports the score that admission compared.
class query_level_writer final : public method_role {
 public:
  /// `takes_threshold`: a request's own decides at admission.
  explicit query_level_writer(bool takes_threshold) : takes_threshold_(takes_threshold) {}
  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  bool takes_threshold_;
};

/// Sources request and hash.
class query_level_entry final : public method_entry {
 public:
  query_level_entry(query_score source, query_levels levels)
      : source_(source), levels_(std::move(levels)) {}
  request_start start(const start_input& in) const override;

 private:
  query_score source_;
  query_levels levels_;
};

/// Errors: invalid_argument (an unknown source or head, an entry that is not the first model, those
/// of query_levels).
role_result make_query_level(model_id self, const method_topology& topology,
                             const method_parameters& parameters);
entry_result make_query_level_entry(const method_topology& topology,
                                    const method_parameters& parameters);

} // namespace tokenrouter
