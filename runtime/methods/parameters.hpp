#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"

namespace tokenrouter {

/// The config's `method` section as far as roles read it, and what the runtime knows of the job's
/// vocabulary. Names are the keys of the config; see configs/README.md. Sources of the defaults:
/// the papers and released code of each method.
struct method_parameters {
  std::string switching_strategy = "neural"; ///< r2r
  std::optional<double> threshold;           ///< none: the head's own, taken from its JSON
  std::vector<double> thresholds;            ///< cascade, query_level: ascending model by model
  std::vector<double> weights;               ///< random_routing (ensemble), per request: by model

  // r2r: heuristic strategies
  std::optional<double> aleatoric_threshold;
  std::optional<double> epistemic_threshold;
  std::optional<double> entropy_threshold;
  double momentum_decay_fraction = 0.7;
  double quick_to_reference_threshold = 0.3;
  double reference_to_quick_threshold = 0.7;
  std::uint32_t window_tokens = 3;
  double reference_share = 0.5; ///< r2r random, random_routing, per_request_random_routing

  // citer
  std::string head_form = "folded"; ///< folded, unfolded

  // co-llm
  std::string schedule = "constant"; ///< constant, linear, exponential, cosine
  double schedule_start_threshold = 1.0;
  std::uint32_t warmup_tokens = 15;
  std::string combine = "defer"; ///< defer, compose
  /// Token whose row of the base model's LM head is the deferral head; empty: a head of its own.
  std::string defer_token;

  // r-stitch
  std::string entropy_unit = "normalised"; ///< normalised, nats
  std::string on_return = "keep_llm";      ///< keep_llm, keep_own
  /// R-Stitch+: a head decides where the entropy is high. Set where the config names a router.
  bool has_router = false;

  // glimprouter
  std::string answer_by = "large";       ///< large, small, same
  std::string thinking = "output_start"; ///< output_start, prompt, never
  std::uint32_t step_tokens_max = 512;
  std::uint32_t thinking_tokens_max = 8192;
  std::uint32_t first_small_steps_count = 0;

  // random_routing
  std::string random_mode = "r2r"; ///< r2r, markov, ensemble
  double small_to_large_share = 0.5;
  double large_to_small_share = 0.5;

  // query_level
  std::string score_source = "request"; ///< request, hash, entropy, head
  std::uint32_t score_tail_tokens = 32;
  std::string head_kind = "r2r"; ///< r2r, citer

  // speculate
  std::uint32_t draft_tokens = 4;

  // a method of the user's own
  std::map<std::string, std::string> options; ///< `method.options`, as written

  /// Bytes of text that each token id adds; null where no text is known. Set by the runtime.
  std::shared_ptr<const std::vector<std::string>> token_bytes;
  /// Token ids of "\n</think>\n\n"; empty where the vocabulary has no such mark. Set by the
  /// runtime.
  std::vector<token_id> end_of_thinking;
};

} // namespace tokenrouter
