#include "runtime/policy/fetch_cost.hpp"

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

constexpr double newest_share = 0.25;
constexpr double patience = 2;

} // namespace

void token_cost::note(std::uint64_t us, std::uint64_t tokens) {
  check(tokens > 0, "a cost is of some tokens");
  const double sample_us = static_cast<double>(us) / static_cast<double>(tokens);
  mean_us_ = mean_us_ == 0 ? sample_us : mean_us_ + newest_share * (sample_us - mean_us_);
}

bool worth_sending(double fetched_us_per_token, double computed_us_per_token) {
  return fetched_us_per_token == 0 || computed_us_per_token == 0 ||
         fetched_us_per_token <= patience * computed_us_per_token;
}

} // namespace tokenrouter
