#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/trace/hdf5_reader.hpp"

namespace tokenrouter {

/// Sum of one duration over the steps of a model.
struct trace_stages {
  std::uint64_t wait_us = 0; ///< of the oldest row of each step
  std::uint64_t plan_us = 0;
  std::uint64_t hop_us = 0; ///< to the model's thread and back
  std::uint64_t step_us = 0;
  std::uint64_t route_us = 0;
};

struct trace_model {
  std::uint64_t tokens = 0; ///< committed
  std::uint64_t computed_tokens = 0;
  std::uint64_t prefill_tokens = 0;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  trace_stages stages;
};

struct trace_summary {
  std::vector<std::string> model_names;
  std::vector<trace_model> models;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> handoffs; ///< (from, to), sent
  std::vector<std::uint64_t> handoff_us; ///< sent → received on one host, ascending
  std::vector<std::uint64_t> ttft_us;    ///< ascending
  std::uint64_t requests = 0;
  std::uint64_t output_tokens = 0;
};

/// Adds up the files of one job. Error: mismatch, if they name different models.
result<trace_summary> summarise(const std::vector<trace_file>& files);

/// The tables that `tokenrouter trace summary` prints.
std::string to_text(const trace_summary& summary);

} // namespace tokenrouter
