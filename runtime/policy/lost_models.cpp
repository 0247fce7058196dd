#include "runtime/policy/lost_models.hpp"

namespace tokenrouter {

bool is_out(std::span<const std::uint16_t> replicas, model_id model) {
  return model.value < replicas.size() && replicas[model.value] == no_replica;
}

std::optional<model_id> largest_left(std::span<const double> parameters_billion,
                                     std::span<const std::uint16_t> replicas) {
  std::optional<model_id> best;
  double most = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const double parameters = i < parameters_billion.size() ? parameters_billion[i] : 0;
    if (replicas[i] == no_replica || (best && parameters < most))
      continue;
    best = model_id{static_cast<std::uint16_t>(i)};
    most = parameters;
  }
  return best;
}

resumption choose_resumption(model_id next, model_id start, model_id fallback,
                             std::span<const std::uint16_t> replicas) {
  if (!is_out(replicas, next))
    return {next, false};
  if (!is_out(replicas, start))
    return {start, false};
  return {fallback, true};
}

} // namespace tokenrouter
