#include "actors/kv_pool.hpp"

#include <utility>

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

namespace {

using self_pointer = kv_pool_actor::stateful_pointer<kv_pool_state>;

/// A loan has ended: what a lease lacked may be there.
void tell_waiting(self_pointer self) {
  if (const auto client = std::exchange(self->state.waiting, nullptr))
    self->send(client, blocks_back{});
}

lease_grant grant(self_pointer self, const lease& x) {
  auto& state = self->state;
  auto out = grant_lease(state.ledger, x);
  out.loans = state.ledger.has_loans();
  if (out.loans)
    state.waiting = caf::actor_cast<lease_client>(self->current_sender());
  return out;
}

prefix_fetched join(self_pointer self, const join_blocks& x) {
  const std::uint32_t tokens = self->state.ledger.join(
      x.fetch, {x.request, x.age, x.tokens, x.have_blocks, x.filled_blocks});
  tell_waiting(self);
  return {x.request, tokens};
}

} // namespace

kv_pool_actor::behavior_type kv_pool(kv_pool_actor::stateful_pointer<kv_pool_state> self,
                                     std::uint32_t blocks, bool keep_prefixes) {
  self->state.ledger = block_ledger(blocks, keep_prefixes);
  return {
      [self](const lease& x) { return grant(self, x); },
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
      [self](const prefix_peek& x) {
        return prefix_known{x.asker, x.fetch, self->state.ledger.known_tokens(x.tokens)};
      },
      [self](const reserve_blocks& x) {
        return blocks_reserved{x.fetch, self->state.ledger.reserve(x.fetch, x.block_count)};
      },
      [self](const join_blocks& x) { return join(self, x); },
      [self](const pin_blocks& x) {
        return blocks_pinned{x.pin,
                             self->state.ledger.pin(x.pin, x.tokens, x.first_block, x.block_count)};
      },
      [self](const unpin_blocks& x) {
        self->state.ledger.unpin(x.pin);
        tell_waiting(self);
      },
      [self](caf::get_atom) {
        const auto& ledger = self->state.ledger;
        return pool_facts{ledger.total_blocks(), ledger.free_blocks(), ledger.cached_blocks(),
                          ledger.parked_requests()};
      },
  };
}

} // namespace tokenrouter
