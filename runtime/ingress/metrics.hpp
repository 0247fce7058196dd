#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/ingress/engine.hpp"

namespace tokenrouter {

/// What the server measured since its start, and the page that Prometheus reads. Any thread.
class metrics {
 public:
  void note_reply(unsigned status);
  void note_prompt(std::uint64_t tokens);

  /// From the call's last byte to its first token here.
  void note_first_token(std::uint64_t us);

  /// `tokens` came `us` after those before them.
  void note_tokens(std::uint64_t tokens, std::uint64_t us);

  /// A continuation is complete.
  void note_end(finish_reason finish, std::uint64_t total_us);

  /// The page: names of our own, and vLLM's where they mean the same.
  std::string page(const engine_facts& facts, const engine_counts& counts,
                   const std::string& model_name) const;

 private:
  static constexpr std::array<double, 16> bounds_s = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
  struct histogram {
    std::array<std::uint64_t, bounds_s.size() + 1> buckets{};
    std::uint64_t count = 0;
    double sum_s = 0;
    void add(double s, std::uint64_t times);
  };
  static void write_histogram(std::string& out, const std::string& name, const std::string& help,
                              const std::string& label, const histogram& h);

  mutable std::mutex mutex_; ///< guards all below
  std::map<unsigned, std::uint64_t> replies_;
  std::map<std::string, std::uint64_t> ends_;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t generated_tokens_ = 0;
  histogram ttft_, inter_token_, total_;
};

} // namespace tokenrouter
