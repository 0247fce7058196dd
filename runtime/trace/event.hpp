#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

/// What a rank records. Fixed-size rows of plain numbers; one HDF5 dataset for each kind. Times are
/// microseconds of the host's monotonic clock.
namespace tokenrouter {

/// A token was committed. Written by the rank whose model made it.
struct token_event {
  std::uint64_t time_us = 0;
  std::uint64_t request = 0;
  std::uint32_t position = 0; ///< in prompt + output
  std::int32_t token = -1;
  std::uint32_t turn = 0;
  float score = 0;   ///< of the routing decision at this position; NaN: none
  float logprob = 0; ///< of the token, from raw logits
  std::uint16_t model = 0;
  std::uint16_t finish = 0; ///< finish_reason; 0: goes on
};

enum class handoff_side : std::uint16_t { sent = 0, received = 1 };

/// A turn was passed on (row of the sender) or taken (row of the receiver).
struct handoff_event {
  std::uint64_t time_us = 0;
  std::uint64_t request = 0;
  std::uint32_t turn = 0;
  std::uint32_t position = 0; ///< committed tokens at the handoff
  std::uint32_t offset = 0;   ///< first position in the message
  std::uint32_t tokens = 0;   ///< tokens in the message
  std::uint16_t from_model = 0;
  std::uint16_t to_model = 0;
  handoff_side side = handoff_side::sent;
  std::uint16_t kept = 0; ///< 1: the sender's proposed token was committed (sender's row)
  float score = 0;
};

/// One step of one model, with the time of each stage it went through.
struct step_event {
  std::uint64_t time_us = 0; ///< when its results were back
  std::uint32_t rows = 0;
  std::uint32_t proposing_rows = 0; ///< rows that proposed a token
  std::uint32_t tokens = 0;         ///< computed
  std::uint32_t prefill_tokens = 0; ///< of rows that lacked more than one
  std::uint32_t wait_us = 0;        ///< the oldest row waited for the step
  std::uint32_t plan_us = 0;        ///< batch forming and block leases
  std::uint32_t turnaround_us = 0;  ///< from the model's mailbox back to the scheduler's
  std::uint32_t step_us = 0;        ///< inside the backend; part of turnaround
  std::uint32_t route_us = 0;       ///< decisions and commits
  std::uint16_t model = 0;
  std::uint16_t reserved = 0;
};

/// A request ended. Written by its home rank.
struct request_event {
  std::uint64_t time_us = 0;
  std::uint64_t request = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;
  std::uint32_t handoffs = 0;
  std::uint32_t ttft_us = 0;
  std::uint64_t total_us = 0;
  std::uint16_t finish = 0;
  std::uint16_t reserved = 0;
  std::uint32_t fetched_tokens = 0; ///< of KV, from other replicas' caches, over all models
};

static_assert(std::is_trivially_copyable_v<token_event> && sizeof(token_event) == 40);
static_assert(std::is_trivially_copyable_v<handoff_event> && sizeof(handoff_event) == 48);
static_assert(std::is_trivially_copyable_v<step_event> && sizeof(step_event) == 48);
static_assert(std::is_trivially_copyable_v<request_event> && sizeof(request_event) == 48);

/// What one actor hands to the tracer at a time.
struct trace_batch {
  std::vector<token_event> tokens;
  std::vector<handoff_event> handoffs;
  std::vector<step_event> steps;
  std::vector<request_event> requests;

  bool empty() const {
    return tokens.empty() && handoffs.empty() && steps.empty() && requests.empty();
  }
};

} // namespace tokenrouter
