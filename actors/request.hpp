#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/local_messages.hpp"
#include "actors/request_state.hpp"
#include "actors/tracer.hpp"
#include "runtime/ingress/stop_scanner.hpp"

namespace tokenrouter {

/// One request, on its home rank, from admission to the last byte for the client.
using request_actor = caf::typed_actor<caf::reacts_to<commit_batch>,   ///< its tokens of one step
                                       caf::reacts_to<request_failed>, ///< it cannot go on
                                       caf::reacts_to<cancel>,         ///< the client went away
                                       caf::reacts_to<released>,       ///< a replica has let go
                                       caf::reacts_to<replicas_changed>>; ///< some are lost

/// Who is told of a request's tokens and end.
using request_client = caf::typed_actor<caf::reacts_to<token_delta>, caf::reacts_to<request_done>>;

/// Where a request's own messages go: the switchboard of its rank.
using request_outlet = caf::typed_actor<caf::reacts_to<announce>, caf::reacts_to<handoff>,
                                        caf::reacts_to<recall>, caf::reacts_to<release>>;

/// Who is told how replicas are.
using status_client = caf::typed_actor<caf::reacts_to<replica_status>>;

/// Who keeps the table of requests: the gateway.
using request_registry = caf::typed_actor<caf::reacts_to<request_ended>>;

/// Turns tokens into text piece by piece. One for each request; see runtime/text.
class text_stream {
 public:
  virtual ~text_stream() = default;
  /// Text that this token completes; never part of a UTF-8 character.
  virtual std::string push(token_id token) = 0;
  /// What is left at the end.
  virtual std::string finish() = 0;
};

struct request_options {
  request_id id;
  submit order;
  request_start start;              ///< the model it starts on, and the method's state
  std::vector<replica_id> replicas; ///< all that may take part
  std::uint32_t models = 1;
  request_client client;
  request_outlet outlet;
  request_registry registry;
  tracer_actor tracer;               ///< null: no trace
  std::unique_ptr<text_stream> text; ///< null: no text
  std::function<std::uint64_t()> now_us;
};

struct request_box {
  std::optional<request_state> core;
  std::shared_ptr<request_options> options;
  stop_scanner stops;
  bool prompt_told = false;
  commit_batch held; ///< until the prompt is told, where that was asked for
  std::string text;
  std::vector<replica_id> awaited_releases; ///< after the end: replicas that have yet to answer
};

request_actor::behavior_type request(request_actor::stateful_pointer<request_box> self,
                                     std::shared_ptr<request_options> options);

} // namespace tokenrouter
