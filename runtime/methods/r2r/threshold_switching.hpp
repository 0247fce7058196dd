#pragma once

#include "runtime/methods/r2r/switching.hpp"

namespace tokenrouter {

/// Strategies `neural` (score of head "r2r") and `entropy` (nats, full vocabulary): large at or
/// above the threshold. No memory.
class threshold_switching final : public switching_strategy {
 public:
  enum class source : std::uint8_t { head, entropy };

  threshold_switching(source from, double threshold) : from_(from), threshold_(threshold) {}

  role_needs needs() const override;
  switch_decision decide(const route_input& in, method_state& state) const override;

 private:
  source from_;
  double threshold_;
};

} // namespace tokenrouter
