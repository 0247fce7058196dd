#include "runtime/methods/random/weighted_choice.hpp"

#include <cmath>

namespace tokenrouter {

result<weighted_choice> weighted_choice::make(std::span<const double> weights, std::size_t count) {
  if (weights.size() != count)
    return fail(errc::invalid_argument, "method.weights: needs one for each of the " +
                                            std::to_string(count) + " models, not " +
                                            std::to_string(weights.size()));
  std::vector<double> ends;
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      return fail(errc::invalid_argument, "method.weights: must be at least 0 and finite");
    ends.push_back(sum += weight);
  }
  if (!(sum > 0) || !std::isfinite(sum))
    return fail(errc::invalid_argument, "method.weights: their sum must be above 0 and finite");
  return weighted_choice(std::move(ends));
}

std::size_t weighted_choice::at(double drawn) const {
  const double wanted = drawn * ends_.back();
  std::size_t last = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (wanted < ends_[i])
      return i;
    if (ends_[i] > (i == 0 ? 0.0 : ends_[i - 1]))
      last = i;
  }
  return last; // the product was rounded up to the sum
}

} // namespace tokenrouter
