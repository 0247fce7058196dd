#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/local_messages.hpp"
#include "actors/request.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/policy/admission.hpp"

namespace tokenrouter {

/// Where clients come in: admits requests, names them, spawns them, and finds them again.
using gateway_actor = caf::typed_actor<caf::reacts_to<open_gateway>,   ///< the job is ready
                                       caf::reacts_to<submit>,         ///< a client's request
                                       caf::reacts_to<cancel>,         ///< a client went away
                                       caf::reacts_to<commit_batch>,   ///< tokens of one step
                                       caf::reacts_to<request_failed>, ///< one cannot go on
                                       caf::reacts_to<released>,       ///< a replica has let go
                                       caf::reacts_to<replicas_lost>,  ///< the job has fewer now
                                       caf::reacts_to<ask_status>,     ///< how are the replicas?
                                       caf::reacts_to<replica_status>, ///< one of them answers
                                       caf::reacts_to<request_ended>>; ///< one is answered

/// Where a gateway's own questions go: the switchboard of its rank.
using gateway_outlet = caf::typed_actor<caf::reacts_to<status_query>>;

struct gateway_options {
  rank_id self;
  std::shared_ptr<const method_entry> entry; ///< where requests start
  std::vector<admission_model> models;       ///< of the job; pools are filled in when it opens
  std::uint32_t vocab_tokens = 0;            ///< ids below are legal for every model
  request_outlet outlet;
  gateway_outlet questions; ///< null: none are asked
  tracer_actor tracer;      ///< null: no trace
  std::function<std::unique_ptr<text_stream>()> make_text;
  std::function<std::uint64_t()> now_us;
};

struct gateway_box {
  struct waiting_submit {
    request_client client;
    submit order;
  };
  gateway_options options;
  bool open = false;
  std::vector<replica_id> replicas;
  std::vector<waiting_submit> waiting; ///< until the job is ready
  std::uint64_t next_counter = 1;
  struct live_request {
    request_actor actor;
    std::vector<std::uint16_t> replicas; ///< that serve it, for each model
    std::optional<model_id> only_model;  ///< that the client asked for
  };
  std::unordered_map<request_id, live_request> requests;
  /// Live requests for each model and replica; lost_replica where there is none any more.
  std::vector<std::vector<std::uint32_t>> load;
  std::unordered_map<std::uint64_t, request_id> by_tag;
  std::uint64_t late_messages = 0; ///< for requests that are over
  status_client status_asker;      ///< of the newest question; null: none yet
};

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_box> self,
                                     gateway_options options);

} // namespace tokenrouter
