#pragma once

#include <bit>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/trace/hdf5_reader.hpp"
#include "runtime/trace/hdf5_writer.hpp"
#include "tests/support/scratch_folder.hpp"

namespace tokenrouter::test {

inline trace_origin origin_of(std::uint32_t rank, std::string host = "here") {
  return {{rank}, std::move(host), {"quick", "reference"}};
}

// Row number n of each kind; every field depends on n, so that a row out of place shows. --------

inline token_event nth_token(std::uint64_t n) {
  const auto small = static_cast<std::uint32_t>(n);
  token_event x;
  x.time_us = 1'000'000'000'000 + n;
  x.request = (n << 32) + 7;
  x.position = small + 1;
  x.token = -static_cast<std::int32_t>(small);
  x.turn = small + 2;
  x.score = n % 3 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(n) * 0.5f;
  x.logprob = -static_cast<float>(n);
  x.model = static_cast<std::uint16_t>(n % 5);
  x.finish = static_cast<std::uint16_t>(n % 4);
  return x;
}

inline handoff_event nth_handoff(std::uint64_t n) {
  const auto small = static_cast<std::uint32_t>(n);
  handoff_event x;
  x.time_us = 2'000'000'000'000 + n;
  x.request = (n << 32) + 8;
  x.turn = small + 3;
  x.position = small + 4;
  x.offset = small + 5;
  x.tokens = small + 6;
  x.from_model = static_cast<std::uint16_t>(n % 5);
  x.to_model = static_cast<std::uint16_t>(n % 7);
  x.side = n % 2 == 0 ? handoff_side::sent : handoff_side::received;
  x.kept = static_cast<std::uint16_t>(n % 3);
  x.score = static_cast<float>(n) * 0.25f;
  return x;
}

inline step_event nth_step(std::uint64_t n) {
  const auto small = static_cast<std::uint32_t>(n);
  step_event x;
  x.time_us = 3'000'000'000'000 + n;
  x.rows = small + 1;
  x.proposing_rows = small + 2;
  x.tokens = small + 3;
  x.prefill_tokens = small + 4;
  x.wait_us = small + 5;
  x.plan_us = small + 6;
  x.turnaround_us = small + 7;
  x.step_us = small + 8;
  x.route_us = small + 9;
  x.model = static_cast<std::uint16_t>(n % 5);
  return x;
}

inline request_event nth_request(std::uint64_t n) {
  const auto small = static_cast<std::uint32_t>(n);
  request_event x;
  x.time_us = 4'000'000'000'000 + n;
  x.request = (n << 32) + 9;
  x.prompt_tokens = small + 1;
  x.output_tokens = small + 2;
  x.handoffs = small + 3;
  x.ttft_us = small + 4;
  x.total_us = 5'000'000'000'000 + n;
  x.finish = static_cast<std::uint16_t>(n % 5);
  return x;
}

/// Rows [from, to) of every kind.
inline trace_batch rows_between(std::uint64_t from, std::uint64_t to) {
  trace_batch batch;
  for (std::uint64_t n = from; n < to; ++n) {
    batch.tokens.push_back(nth_token(n));
    batch.handoffs.push_back(nth_handoff(n));
    batch.steps.push_back(nth_step(n));
    batch.requests.push_back(nth_request(n));
  }
  return batch;
}

inline bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

inline bool same(const token_event& a, const token_event& b) {
  return a.time_us == b.time_us && a.request == b.request && a.position == b.position &&
         a.token == b.token && a.turn == b.turn && same(a.score, b.score) &&
         same(a.logprob, b.logprob) && a.model == b.model && a.finish == b.finish;
}

inline bool same(const handoff_event& a, const handoff_event& b) {
  return a.time_us == b.time_us && a.request == b.request && a.turn == b.turn &&
         a.position == b.position && a.offset == b.offset && a.tokens == b.tokens &&
         a.from_model == b.from_model && a.to_model == b.to_model && a.side == b.side &&
         a.kept == b.kept && same(a.score, b.score);
}

inline bool same(const step_event& a, const step_event& b) {
  return a.time_us == b.time_us && a.rows == b.rows && a.proposing_rows == b.proposing_rows &&
         a.tokens == b.tokens && a.prefill_tokens == b.prefill_tokens && a.wait_us == b.wait_us &&
         a.plan_us == b.plan_us && a.turnaround_us == b.turnaround_us && a.step_us == b.step_us &&
         a.route_us == b.route_us && a.model == b.model;
}

inline bool same(const request_event& a, const request_event& b) {
  return a.time_us == b.time_us && a.request == b.request && a.prompt_tokens == b.prompt_tokens &&
         a.output_tokens == b.output_tokens && a.handoffs == b.handoffs && a.ttft_us == b.ttft_us &&
         a.total_us == b.total_us && a.finish == b.finish;
}

/// How many leading rows are the ones that were written.
template <class Row>
std::uint64_t right_rows(const std::vector<Row>& rows, Row (*nth)(std::uint64_t)) {
  std::uint64_t n = 0;
  while (n < rows.size() && same(rows[n], nth(n)))
    ++n;
  return n;
}

/// The fewest over all four kinds.
inline std::uint64_t right_rows(const trace_batch& events) {
  return std::min({right_rows(events.tokens, nth_token), right_rows(events.handoffs, nth_handoff),
                   right_rows(events.steps, nth_step), right_rows(events.requests, nth_request)});
}

} // namespace tokenrouter::test
