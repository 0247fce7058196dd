#pragma once

#include <optional>
#include <vector>

#include "runtime/methods/glimprouter/step_tracker.hpp"
#include "runtime/methods/parameters.hpp"
#include "runtime/methods/topology.hpp"

/// GlimpRouter (arXiv 2601.05110), at the level of tokens: at the first token of each step of the
/// thinking the small model looks at its entropy over the 20 largest logits (nats). At or above the
/// threshold its token is dropped and the large model writes the step; else the small one keeps its
/// token and writes on, unrouted, to the end of the step. After the large model's step the small
/// one looks again. The answer belongs to `answer_by`. The thinking ends by "</think>", by
/// repetition or by budget (then end_of_thinking is written); an end-of-sequence token in it ends
/// the request.
namespace tokenrouter {

/// What both sides agree on.
struct glimpse_rules {
  enum class answerer : std::uint8_t { large, small, same };

  step_tracker steps;
  answerer answer_by;
  std::vector<token_id> end_of_thinking; ///< may be empty: then the answer begins without it
};

/// Role `glimprouter_slm`.
class glimprouter_small final : public method_role {
 public:
  glimprouter_small(model_id large, glimpse_rules rules, double threshold,
                    std::uint32_t first_small_steps_count)
      : large_(large), rules_(std::move(rules)), threshold_(threshold),
        first_small_steps_count_(first_small_steps_count) {}

  role_needs needs() const override;
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id large_;
  glimpse_rules rules_;
  double threshold_;
  std::uint32_t first_small_steps_count_; ///< written by the small model without a look
};

/// Role `glimprouter_llm`.
class glimprouter_large final : public method_role {
 public:
  glimprouter_large(model_id small, glimpse_rules rules)
      : small_(small), rules_(std::move(rules)) {}

  role_needs needs() const override { return {}; }
  route_decision route(const route_input& in, method_state& state) const override;

 private:
  model_id small_;
  glimpse_rules rules_;
};

/// Where the thinking begins: with the output; with the output if the prompt leaves a "<think>"
/// open; or never, so that the answerer writes everything.
class glimprouter_entry final : public method_entry {
 public:
  enum class thinking : std::uint8_t { output_start, prompt, never };

  glimprouter_entry(model_id small, model_id large, glimpse_rules rules, thinking when)
      : small_(small), large_(large), rules_(std::move(rules)), when_(when) {}

  request_start start(const start_input& in) const override;

 private:
  model_id small_;
  model_id large_;
  glimpse_rules rules_;
  thinking when_;
};

/// Without a threshold: 0.9. Errors: invalid_argument (no single peer, no text of tokens, an
/// unknown answer_by or thinking).
role_result make_glimprouter_small(model_id self, const method_topology& topology,
                                   const method_parameters& parameters);
role_result make_glimprouter_large(model_id self, const method_topology& topology,
                                   const method_parameters& parameters);
entry_result make_glimprouter_entry(const method_topology& topology,
                                    const method_parameters& parameters);

} // namespace tokenrouter
