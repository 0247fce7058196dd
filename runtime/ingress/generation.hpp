#pragma once

#include <memory>
#include <string>

#include "runtime/ingress/answer.hpp"
#include "runtime/ingress/api_error.hpp"
#include "runtime/ingress/engine.hpp"
#include "runtime/ingress/exchange.hpp"
#include "runtime/ingress/generation_call.hpp"
#include "runtime/ingress/metrics.hpp"

namespace tokenrouter {

/// What generations share; outlives them.
struct generation_host {
  engine& job;
  metrics& counted;
  std::size_t unsent_bytes_max = 0; ///< a client that is further behind is cut off
};

/// A call on its way in.
struct incoming_call {
  std::string id;
  std::uint64_t received_us = 0; ///< of the monotonic clock: its last byte was read
  std::shared_ptr<exchange> client;
};

/// Submits every continuation the call wants and answers it as tokens come, on the exchange's
/// thread. A client that goes away, or does not take what it is sent, cancels all of them.
void start_generation(generation_call call, std::unique_ptr<answer_format> format,
                      incoming_call incoming, const generation_host& host);

/// Answers with OpenAI's error object.
void reply_error(exchange& client, metrics& counted, const api_error& x);

} // namespace tokenrouter
