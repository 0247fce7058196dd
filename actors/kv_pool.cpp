#include "actors/kv_pool.hpp"

namespace tokenrouter {

lease_grant grant_lease(block_ledger& ledger, const lease& x) {
  auto outcome = ledger.lease(x.wants, x.held);
  lease_grant grant;
  grant.evicted = std::move(outcome.evicted);
  grant.own_tokens = std::move(outcome.own_tokens);
  if (outcome.took_look_ahead)
    grant.cut = x.held;
  for (const auto& one : outcome.copies)
    grant.copies.push_back({one.from, one.to});
  grant.granted.reserve(x.wants.size());
  grant.block_counts.reserve(x.wants.size());
  for (std::size_t i = 0; i < x.wants.size(); ++i) {
    grant.granted.push_back(outcome.granted[i] ? 1 : 0);
    const auto table =
        outcome.granted[i] ? ledger.table(x.wants[i].request) : std::span<const block_id>{};
    grant.block_tables.insert(grant.block_tables.end(), table.begin(), table.end());
    grant.block_counts.push_back(static_cast<std::uint32_t>(table.size()));
  }
  return grant;
}

kv_pool_actor::behavior_type kv_pool(kv_pool_actor::stateful_pointer<kv_pool_state> self,
                                     std::uint32_t blocks, bool keep_prefixes) {
  self->state.ledger = block_ledger(blocks, keep_prefixes);
  return {
      [self](const lease& x) { return grant_lease(self->state.ledger, x); },
      [self](const prefix_query& query) {
        return prefix_hit{query.request, self->state.ledger.adopt(query.request, query.age,
                                                                  query.tokens, query.tokens_max)};
      },
      [self](const remember_prefix& x) { self->state.ledger.remember(x.request, x.tokens); },
      [self](const park& x) {
        for (const auto& one : x.requests)
          self->state.ledger.park(one.request, one.tokens);
      },
      [self](const give_back_blocks& x) { self->state.ledger.release(x.request); },
      [self](caf::get_atom) {
        const auto& ledger = self->state.ledger;
        return pool_facts{ledger.total_blocks(), ledger.free_blocks(), ledger.cached_blocks(),
                          ledger.parked_requests()};
      },
  };
}

} // namespace tokenrouter
