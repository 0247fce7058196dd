#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/local_messages.hpp"

namespace tokenrouter {

/// Adds up the requests of one run.
class run_summary {
 public:
  explicit run_summary(std::vector<std::string> model_names);

  void add(const request_done& done);

  /// The table shown at the end of a run: tokens and share of each model, what it computed against
  /// what it lacked, handoffs, rate and TTFT. `elapsed_us`: of the whole run.
  std::string table(std::uint64_t elapsed_us, bool colours) const;

  std::uint64_t output_tokens() const { return output_tokens_; }
  std::uint32_t requests() const { return requests_; }

 private:
  std::vector<std::string> names_;
  std::vector<model_usage> usage_;
  std::vector<std::uint64_t> generated_;
  std::vector<std::uint64_t> lacked_;
  std::vector<std::uint64_t> ttft_us_;
  std::uint64_t output_tokens_ = 0;
  std::uint64_t handoffs_ = 0;
  std::uint32_t requests_ = 0;
  std::uint32_t failed_ = 0;
};

} // namespace tokenrouter
