#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/exec/heads/head_program.hpp"

namespace tokenrouter {

struct r2r_network_weights {
  struct block {
    norm_layer norm;
    dense_layer up;
    dense_layer down;
  };

  float norm_eps = 0;
  dense_layer logits;   ///< K → H
  dense_layer combined; ///< H + E + H → C
  dense_layer input;    ///< C → width
  std::vector<block> blocks;
  norm_layer output_norm;
  dense_layer output; ///< width → 1

  std::uint64_t bytes() const;
};

/// The network of R2R's classifiers: of hidden states h [H], embedding e [E] and logits t [K],
///   x = input_projection(combined_projection([h ; e ; logits_projection(t)])),
///   per block x += mlp.3(gelu(mlp.0(layer_norm(x)))), score = sigmoid(linear(layer_norm(x))).
/// K, the widths and the number of blocks are those of the tensors. Reuses memory of its own: one
/// thread at a time.
class r2r_network {
 public:
  /// `hidden`: H; `embedding`: E. Errors: not_found, malformed, mismatch.
  static result<r2r_network> load(const head_spec& spec, std::uint32_t hidden,
                                  std::uint32_t embedding);

  std::uint32_t logits_wanted() const { return w_.logits.in; }
  std::uint64_t bytes() const { return w_.bytes(); }

  /// Where h and e are to be written before `score`.
  std::span<float> hidden_input() { return std::span(joined_).first(w_.logits.out); }
  std::span<float> embedding_input();

  /// `logits`: [K].
  float score(const float* logits);

  /// As routing_head::program; inputs h, e and t.
  head_program program() const;

 private:
  explicit r2r_network(r2r_network_weights weights);

  r2r_network_weights w_;
  std::vector<float> joined_, projected_, x_, normed_, wide_;
};

} // namespace tokenrouter
