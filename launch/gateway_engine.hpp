#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/typed_event_based_actor.hpp>

#include "actors/gateway.hpp"
#include "runtime/ingress/engine.hpp"
#include "runtime/reactor/poller.hpp"
#include "runtime/reactor/reactor.hpp"

namespace tokenrouter {

/// The running job as ingress sees it: takes calls of any thread into a bounded queue that the
/// reactor drains, and tells sinks what the gateway answers. Created, made ready and closed on the
/// reactor's thread; destroyed once closed. Calls of other threads that come later have no effect.
class gateway_engine final : public engine, private poller {
 public:
  struct options {
    engine_facts facts;
    std::uint32_t requests_max = 256;        ///< under way at a time
    std::function<std::string()> find_fault; ///< reactor's thread: what is wrong; empty: nothing
    std::uint64_t step_timeout_us = 0;       ///< a model longer at one step hangs; 0: none does
  };

  gateway_engine(caf::actor_system& system, gateway_actor gateway, options settings);
  ~gateway_engine() override;

  // Reactor's thread ------------------------------------------------------------------------------

  /// Every rank has its models: generations may start.
  void on_ready(const std::vector<replica_facts>& replicas);

  /// The job goes on without that rank, and the replicas that had a shard there.
  void on_loss(rank_id rank, const std::vector<replica_id>& replicas);

  /// The job is over: every generation under way fails with that reason, none starts any more, and
  /// no handle of an actor is kept.
  void close(const std::string& why);

  // Any thread ------------------------------------------------------------------------------------

  const engine_facts& facts() const override { return options_.facts; }
  engine_counts counts() const override;
  result<std::uint64_t> submit(generation_order order,
                               std::shared_ptr<generation_sink> sink) override;
  void cancel(std::uint64_t generation) override;
  void ask_status(std::function<void(std::string)> answer) override;

  /// No generation starts any more; those under way go on.
  void begin_drain();

  /// Generations under way.
  std::uint32_t live() const { return live_; }

  void cancel_all();

 private:
  struct command {
    enum class kind : std::uint8_t { submit, cancel, cancel_all, ask } what = kind::ask;
    std::uint64_t generation = 0;
    generation_order order;
    std::shared_ptr<generation_sink> sink;
    std::function<void(std::string)> answer;
  };
  /// One question to all replicas; who asks meanwhile waits for the same answers.
  struct status_round {
    std::uint64_t number = 0;
    std::vector<std::function<void(std::string)>> waiting;
    std::vector<replica_id> missing;
    std::vector<replica_status> answers;
  };
  struct live_generation {
    std::shared_ptr<generation_sink> sink;
    std::uint64_t output_tokens = 0;
  };
  struct client_box {};
  static status_client::behavior_type asker(status_client::stateful_pointer<client_box> self,
                                            gateway_engine* owner);
  static request_client::behavior_type client(request_client::stateful_pointer<client_box> self,
                                              gateway_engine* owner);

  std::size_t poll() override;
  int event_fd() const override { return -1; }
  bool prepare_sleep() override;

  void push(command x);
  void push_locked(command x);
  void carry_out(command&& x);
  void start(command&& x);
  void take_delta(const token_delta& x);
  void take_done(const request_done& x);
  void begin_status(std::function<void(std::string)> answer);
  void take_status(const replica_status& x);
  void finish_status();
  void note_unanswered();
  std::string find_hung() const;
  void end(std::unordered_map<std::uint64_t, live_generation>::iterator at, generation_end&& x);

  options options_;
  reactor& loop_;
  gateway_actor gateway_;
  request_client client_;
  status_client asker_;
  std::unordered_map<std::uint64_t, live_generation> generations_; ///< reactor's thread only
  bool closed_ = false;                                            ///< reactor's thread only
  std::vector<replica_id> replicas_;                               ///< reactor's thread only
  status_round status_;                                            ///< reactor's thread only

  std::atomic<std::uint32_t> live_{0};
  mutable std::mutex mutex_; ///< guards all below
  bool accepting_ = true;    ///< not closed
  std::deque<command> queue_;
  std::uint64_t next_generation_ = 1;
  engine_counts counts_;
};

} // namespace tokenrouter
