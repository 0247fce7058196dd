#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/local_messages.hpp"
#include "runtime/exec/scripted/scripted_backend.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/transport/simulated.hpp"

namespace tokenrouter::sim {

/// A whole simulated job, a pure function of its seed.
struct scenario {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 1;
  method_topology topology;
  method_parameters parameters;
  std::vector<rank_id> placement;         ///< of each model
  std::vector<std::uint32_t> pool_blocks; ///< of each model
  std::vector<scripted_options> backends; ///< of each model
  std::vector<std::uint32_t> max_batch_rows;
  std::vector<std::uint32_t> prefill_chunk_tokens;
  network_faults network;
  std::vector<submit> requests;
  std::vector<std::uint64_t> submit_us; ///< when each comes
  std::vector<std::optional<std::uint64_t>> cancel_us;
  std::optional<rank_id> dies; ///< this rank stops answering …
  std::uint64_t dies_us = 0;   ///< … at this time
};

/// Draws everything from the seed: 1–5 models over 1–4 ranks, pools from barely one request to
/// plenty, chunks from 1 token, batches from 1 row; a share of requests is cancelled; in one of
/// eight a rank dies.
scenario make_scenario(std::uint64_t seed);

/// One output token and who made it.
struct expected_token {
  token_id token;
  model_id model;
  friend bool operator==(const expected_token&, const expected_token&) = default;
};

/// What a request must give, by the method's definition alone: one model after another on the whole
/// sequence, no KV, no batching, no ranks.
std::vector<expected_token> expected_output(const scenario& s, const submit& order);

} // namespace tokenrouter::sim
