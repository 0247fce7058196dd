#include "runtime/methods/query_level/query_scores.hpp"

#include <cmath>

#include "runtime/methods/random/route_draw.hpp"

namespace tokenrouter {

result<query_levels> query_levels::make(const method_topology& topology,
                                        const method_parameters& p) {
  const std::size_t wanted = topology.roles.size() - 1;
  std::vector<double> thresholds = p.thresholds;
  if (thresholds.empty() && p.threshold && wanted == 1)
    thresholds = {*p.threshold};
  if (wanted == 0 || thresholds.size() != wanted)
    return fail(errc::invalid_argument, "method.thresholds: query-level routing over " +
                                            std::to_string(wanted + 1) + " models needs " +
                                            std::to_string(wanted) + ", not " +
                                            std::to_string(thresholds.size()));
  for (std::size_t i = 0; i < wanted; ++i)
    if (std::isnan(thresholds[i]) || (i > 0 && thresholds[i] < thresholds[i - 1]))
      return fail(errc::invalid_argument, "method.thresholds: must ascend");
  return query_levels(std::move(thresholds));
}

model_id query_levels::of(double score, std::optional<double> own) const {
  std::uint16_t level = 0;
  if (own && takes_own())
    return {static_cast<std::uint16_t>(!(score < *own))};
  for (const double threshold : thresholds_)
    level += !(score < threshold);
  return {level};
}

float prompt_hash_score(std::span<const token_id> prompt) {
  std::uint64_t hash = 0xCBF29CE484222325u; // FNV-1a 64
  for (const token_id token : prompt)
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((static_cast<std::uint32_t>(token) >> shift) & 0xFF)) * 0x100000001B3u;
  return route_draw(hash, 0);
}

} // namespace tokenrouter
