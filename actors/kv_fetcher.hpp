#pragma once

#include <functional>
#include <optional>
#include <string>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/kv_fetch_state.hpp"
#include "actors/kv_pool.hpp"
#include "actors/local_messages.hpp"

namespace tokenrouter {

/// Gets KV of prompts' beginnings from the other replicas of its model, and lends them its own.
using kv_fetcher_actor =
    caf::typed_actor<caf::reacts_to<fetch_prefix>,    ///< a request may lack a known prefix
                     caf::reacts_to<prefix_ask>,      ///< a sibling looks for a prefix
                     caf::reacts_to<prefix_offer>,    ///< what a sibling has
                     caf::reacts_to<kv_borrow>,       ///< a sibling wants a piece
                     caf::reacts_to<kv_loan>,         ///< a sibling lends a piece
                     caf::reacts_to<kv_return>,       ///< a sibling is done with a piece
                     caf::reacts_to<kv_way>,          ///< a mover knows a sibling
                     caf::reacts_to<kv_filled>,       ///< a mover is done with a piece
                     caf::reacts_to<prefix_known>,    ///< the pool's answers …
                     caf::reacts_to<blocks_reserved>, ///< …
                     caf::reacts_to<blocks_pinned>,   ///< …
                     caf::reacts_to<replicas_lost>>;  ///< some siblings are gone

/// Where a fetcher's messages to siblings and movers go: the switchboard of its rank.
using kv_outlet = caf::typed_actor<caf::reacts_to<prefix_ask>, caf::reacts_to<prefix_offer>,
                                   caf::reacts_to<kv_borrow>, caf::reacts_to<kv_loan>,
                                   caf::reacts_to<kv_return>, caf::reacts_to<kv_fill>>;

/// Is told once that a fetcher's siblings are known: the supervisor.
using kv_observer = caf::typed_actor<caf::reacts_to<kv_settled>>;

struct kv_fetcher_options {
  kv_fetcher_config config;
  std::string model_name;
  kv_outlet outlet;
  kv_pool_actor pool;
  kv_observer observer;
  std::function<std::uint64_t()> now_us;
  /// What carries bulk transfers to that rank.
  std::function<std::string(rank_id)> describe;
  /// Shows a line that says which way KV comes from a sibling.
  std::function<void(const std::string&)> tell;
};

struct kv_fetcher_box {
  kv_fetcher_options options;
  std::optional<kv_fetch_state> fetching;
  std::optional<kv_serve_state> serving;
  kv_fetcher_effects effects;
  bool settled = false;            ///< the observer was told
  caf::strong_actor_ptr scheduler; ///< who orders; null: nobody yet
};

kv_fetcher_actor::behavior_type kv_fetcher(kv_fetcher_actor::stateful_pointer<kv_fetcher_box> self,
                                           kv_fetcher_options options);

/// The line that says how a replica's KV comes.
std::string describe_ways(const kv_ways& ways, const std::string& model_name,
                          const kv_fetcher_config& config, const std::string& carrier);

} // namespace tokenrouter
