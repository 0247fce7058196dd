#pragma once

#include <cstdint>

#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

/// Speculative decoding between two replicas: the small model drafts tokens that stay tentative,
/// the large one runs over all of them at once, keeps the longest stretch that equals its own
/// tokens, adds its own next one, and hands back.
///
/// The output is exactly what the large model alone gives: every committed token is the one that it
/// draws at that position, from (seed, stream, position) and the committed prefix. With temperature
/// 0 that holds whatever the stream; when sampling, both sides draw from one stream
/// (shares_sampling_stream), that of a job's first model, so it is what a job of the large model
/// alone samples with the same seed, and equal draws make drafts agree as often as the two
/// distributions do.
namespace tokenrouter {

/// Role `speculate_slm`.
class speculate_small final : public method_role {
 public:
  /// `draft_tokens`: at least 1; a draft ends early with a token that would finish the request.
  speculate_small(model_id large, std::uint32_t draft_tokens)
      : large_(large), draft_tokens_(draft_tokens) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  std::uint32_t draft_tokens_;
};

/// Role `speculate_llm`.
class speculate_large final : public method_role {
 public:
  explicit speculate_large(model_id small) : small_(small) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;
  std::uint32_t receive(const receive_input& in, method_state& state) const override;

 private:
  model_id small_;
};

/// Errors: invalid_argument (no single peer, no token to draft).
role_result make_speculate_small(model_id self, const method_topology& topology,
                                 const method_parameters& parameters);
role_result make_speculate_large(model_id self, const method_topology& topology,
                                 const method_parameters& parameters);

} // namespace tokenrouter
