#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "actors/local_messages.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/policy/delayed_batching.hpp"
#include "runtime/transport/simulated.hpp"

namespace tokenrouter::sim {

/// Something that befalls a rank of a job that goes on without it.
struct mishap {
  rank_id rank;
  std::uint64_t us = 0;             ///< when
  std::uint64_t lasts_us = 0;       ///< it stands still for so long; 0: it is dead
  std::optional<rank_id> cut_off{}; ///< instead: it loses its way to this one for good
};

/// A whole simulated job, a pure function of its seed.
struct scenario {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 1;
  method_topology topology;
  method_parameters parameters;
  std::vector<std::vector<rank_id>> placement; ///< of each model: where its replicas are
  /// Of each model and replica: where its other shards are; empty: it is not split.
  std::vector<std::vector<std::vector<rank_id>>> followers;
  std::vector<batching_thresholds> thresholds; ///< of each model; the runtime must tame them
  bool keep_prefixes = true;
  std::uint32_t fetch_min_tokens = 0; ///< of KV that replicas fetch from one another; 0: none
  std::size_t fetch_piece_bytes = 0;
  std::size_t bulk_bytes_max = 0;
  bool same_weights = false;              ///< all models say the same
  std::vector<std::uint32_t> pool_blocks; ///< of each model's replicas
  std::vector<scripted_options> backends; ///< of each model
  std::vector<std::uint32_t> max_batch_rows;
  std::vector<std::uint32_t> prefill_chunk_tokens;
  network_faults network;
  std::vector<submit> requests;
  std::vector<std::uint64_t> submit_us; ///< when each comes
  std::vector<std::optional<std::uint64_t>> cancel_us;
  std::optional<rank_id> dies; ///< this rank stops answering …
  std::uint64_t dies_us = 0;   ///< … at this time
  bool degrade = false;        ///< the job goes on without ranks that it loses
  std::vector<mishap> mishaps; ///< in such a job
};

/// Draws everything from the seed: any method, 1–8 models of 1–4 replicas over 1–4 ranks, pools
/// from barely one request to plenty, chunks from 1 token, batches from 1 row, any batching
/// thresholds, replicas split over 1–3 shards, prompts that share beginnings or continue earlier
/// answers, KV fetched from siblings by transfers that may fail; a share of requests is cancelled;
/// in one of eight a rank dies; in one of three of the others that have several the job goes on
/// without those that die, hang, or lose their way.
scenario make_scenario(std::uint64_t seed);

/// Draws the method: roles and parameters.
void draw_method(std::mt19937_64& random, scenario& s);

inline constexpr std::uint32_t context_tokens_max = 256;
inline constexpr token_id eos = 0;
inline constexpr std::uint32_t vocab_tokens = 64;

/// One output token and who made it.
struct expected_token {
  token_id token;
  model_id model;
  friend bool operator==(const expected_token&, const expected_token&) = default;
};

/// What a request must give, by the method's definition alone: one model after another on the whole
/// sequence, no KV, no batching, no ranks.
std::vector<expected_token> expected_output(const scenario& s, const submit& order);

/// Log-probabilities of the prompt's tokens but the first, by the model that it starts on.
std::vector<float> prompt_logprobs(const scenario& s, const submit& order);

/// What the model alone gives.
std::vector<token_id> plain_output(const scenario& s, const submit& order, model_id model);

/// With the same weights everywhere this method must give plain decoding: nothing is forced or
/// mixed, and equal models draw equal tokens.
bool is_identity(const scenario& s, const submit& order);

} // namespace tokenrouter::sim
