#include "runtime/policy/handoff.hpp"

#include <algorithm>

namespace tokenrouter {

handoff_verdict judge_handoff(const handoff_local& local, const handoff_view& incoming) {
  if (incoming.turn <= local.turn)
    return handoff_verdict::stale;
  if (incoming.offset > local.committed.size() + local.tentative_tokens)
    return handoff_verdict::need_gap;
  if (incoming.offset >= local.committed.size())
    return handoff_verdict::accept;
  const std::size_t overlap = local.committed.size() - incoming.offset;
  if (overlap > incoming.tokens.size() ||
      !std::equal(local.committed.begin() + incoming.offset, local.committed.end(),
                  incoming.tokens.begin()))
    return handoff_verdict::diverged;
  return handoff_verdict::accept;
}

} // namespace tokenrouter
