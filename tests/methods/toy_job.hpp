#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/methods/registry.hpp"

namespace tokenrouter {

/// A model as a pure function of the sequence so far.
struct toy_model {
  std::function<token_id(std::span<const token_id> sequence)> next;
  /// Fills signals and head scores of a position; may be empty.
  std::function<void(std::span<const token_id> sequence, route_input& in)> signals;
};

struct made_token {
  token_id token;
  model_id model;
  friend bool operator==(const made_token&, const made_token&) = default;
};

struct routed_step {
  std::uint32_t position;
  model_id model;
  route_decision decision;
};

struct toy_result {
  std::vector<made_token> output;
  std::vector<routed_step> steps; ///< every call of route, in order
  bool ended = false;             ///< false: gave up after too many steps

  std::vector<token_id> tokens() const;
  std::vector<int> makers() const;
  double share_of(model_id model) const;
};

/// One request through the roles of a job: the contract of method.hpp in its simplest form, no KV,
/// no batches, no ranks. What breaks the contract fails the running test.
struct toy_job {
  method_topology topology;
  method_parameters parameters;
  std::vector<toy_model> models;
  std::uint64_t seed = 1;
  std::vector<token_id> prompt{7};
  float request_score = no_score;
  token_id eos = 0;
  std::uint32_t output_tokens_max = 20;

  toy_result run() const;
};

/// A model whose token at each position is one of 1 … 9, a function of the whole sequence and of
/// `flavour`, and never the end.
toy_model hashing_model(std::uint32_t flavour);

} // namespace tokenrouter
