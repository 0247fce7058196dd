#include "launch/rank_card.hpp"

#include <map>

namespace tokenrouter {

namespace {

std::string ranks_text(const std::vector<std::size_t>& ranks, std::size_t total) {
  if (ranks.size() == total)
    return {};
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text + ": ";
}

} // namespace

std::vector<std::string> failures_of(const std::vector<rank_card>& cards) {
  std::map<std::string, std::vector<std::size_t>> by_reason;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    std::string reason = cards[r].failure;
    if (reason.empty() && cards[r].protocol_version != cards[0].protocol_version)
      reason = "another version of the program than rank 0 runs (protocol " +
               std::to_string(cards[r].protocol_version) + ", not " +
               std::to_string(cards[0].protocol_version) + ")";
    else if (reason.empty() && cards[r].config_hash != cards[0].config_hash &&
             cards[0].failure.empty())
      reason = "it read another configuration than rank 0: start every rank with the same file "
               "and --set values";
    if (!reason.empty())
      by_reason[reason].push_back(r);
  }
  std::vector<std::string> lines;
  for (const auto& [reason, ranks] : by_reason)
    lines.push_back(ranks_text(ranks, cards.size()) + reason);
  return lines;
}

} // namespace tokenrouter
