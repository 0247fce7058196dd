#include "actors/model.hpp"

#include <chrono>

#include "actors/kv_copier.hpp"
#include "runtime/core/log.hpp"
#include "runtime/reactor/affinity.hpp"
#include "runtime/reactor/reactor.hpp"

namespace tokenrouter {

/// Something that an inline model does later.
struct inline_move {
  std::function<void(model_kv&)> run;
};

/// A step that an inline model has run: told to `client` when its time is over.
struct inline_step {
  step_done done;
  step_client client;
};

} // namespace tokenrouter

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::inline_move)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tokenrouter::inline_step)

namespace tokenrouter {

namespace {

constexpr std::uint64_t inline_move_us_max = 500;
constexpr std::chrono::microseconds inline_wait{50}; // between two looks at the other shards

} // namespace

result<std::unique_ptr<backend>> load_model(const model_options& options) {
  auto device = options.load(options.group);
  if (!device)
    return device;
  if (auto reserved = (*device)->allocate_kv(options.kv_blocks); !reserved)
    return tl::unexpected(reserved.error());
  return device;
}

model::model(caf::actor_config& config, model_options options, model_observer observer)
    : spinning_blocking_actor(config, options.spin_us), options_(std::move(options)),
      observer_(std::move(observer)) {}

/// Learns the id of its group, or makes it and tells the others; false: the job ended before.
result<bool> model::meet() {
  shard_group& group = options_.group;
  if (group.count == 1)
    return true;
  if (!group.leads()) {
    bool invited = false;
    receive(
        [&](const shard_invite& x) {
          const auto* bytes = reinterpret_cast<const std::byte*>(x.group.data());
          group.id.assign(bytes, bytes + x.group.size());
          invited = true;
        },
        [](caf::exit_msg&) {});
    return invited;
  }
  auto id = options_.make_group();
  if (!id)
    return tl::unexpected(id.error());
  group.id = std::move(*id);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(group.id.data());
  for (std::uint32_t i = 1; i < group.count; ++i)
    send(options_.outlet, shard_invite{{options_.self.replica, static_cast<std::uint16_t>(i)},
                                       {bytes, bytes + group.id.size()}});
  options_.outlet = nullptr;
  return true;
}

/// Tells of a step that was not completed. Where the group was stopped the job ends anyway, and
/// why has been said.
bool model::fails(const std::string& failure) {
  if (failure.empty())
    return false;
  if (!options_.group.stopped())
    send(observer_, model_failed{options_.self, {errc::unavailable, failure}, true});
  return true;
}

void model::act() {
  if (!options_.cores.empty())
    if (auto pinned = pin_this_thread(options_.cores); !pinned)
      spdlog::warn("model thread runs unpinned: {}", pinned.error().message);
  const auto met = meet();
  if (met && !*met)
    return;
  auto device = met ? load_model(options_) : tl::unexpected(met.error());
  if (!device) {
    send(observer_, model_failed{options_.self, device.error()});
    return;
  }
  const auto& facts = (*device)->facts();
  spdlog::info("model {} replica {} shard {}: {} on {}", options_.self.replica.model.value,
               options_.self.replica.index, options_.self.index, facts.architecture, facts.kernels);
  send(observer_, model_loaded{options_.self, facts.kernels});
  bool running = true;
  caf::actor copier;  // null: nobody has asked for KV
  step_output unused; // of a shard that follows
  receive_while(running)(
      [&](run_step& x) {
        (*device)->step(x.work->in, x.work->out);
        if (fails(x.work->out.failure))
          running = false;
        else
          send(caf::actor_cast<step_client>(current_sender()), step_done{std::move(x.work)});
      },
      [&](const shard_step& x) {
        (*device)->step(x.step, unused);
        running = !fails(unused.failure);
      },
      [&](ask_kv x) {
        if (!copier) {
          copier = spawn<kv_copier, caf::detached>(device->get());
          reactor::of(system()).wake_at_exit(copier);
        }
        copier->enqueue(current_sender(), caf::make_message_id(), caf::make_message(x), context());
      },
      [&](caf::exit_msg&) { running = false; });
  observer_ = nullptr;
  if (copier) {
    send_exit(copier, caf::exit_reason::user_shutdown);
    wait_for(copier);
  }
}

namespace {

blocks_exported carry_out(model_kv& kv, const export_blocks& x) {
  return kv.export_to(x);
}
blocks_imported carry_out(model_kv& kv, const import_blocks& x) {
  return kv.import_from(x);
}
blocks_imported carry_out(model_kv& kv, const read_blocks& x) {
  return kv.read(x);
}

/// Bytes move at the end of their time, so that whoever lets go of a block too soon is found out.
template <class Order>
void move_later(caf::stateful_actor<inline_model_state>* self, const kv_client& client,
                Order order) {
  const auto duration_us = 1 + self->state.moves++ * 37 % inline_move_us_max;
  self->delayed_send(self, std::chrono::microseconds(duration_us),
                     inline_move{[self, client, order = std::move(order)](model_kv& kv) {
                       self->send(client, carry_out(kv, order));
                     }});
}

} // namespace

caf::behavior inline_model(caf::stateful_actor<inline_model_state>* self,
                           const model_options& options, const model_observer& observer) {
  auto device = load_model(options);
  if (!device) {
    self->send(observer, model_failed{options.self, device.error()});
    return {};
  }
  self->send(observer, model_loaded{options.self, (*device)->facts().kernels});
  self->state.device = std::move(*device);
  self->state.in_step = options.in_step;
  self->state.kv.emplace(*self->state.device);
  const auto mover = [self] { return caf::actor_cast<kv_client>(self->current_sender()); };
  return {
      [self, observer, shard = options.self](run_step& x) {
        self->state.device->step(x.work->in, x.work->out);
        if (const std::string& failure = x.work->out.failure; !failure.empty()) {
          self->send(observer, model_failed{shard, {errc::unavailable, failure}, true});
          return;
        }
        const std::chrono::microseconds duration(x.work->out.step_us);
        self->delayed_send(
            self, duration,
            inline_step{{std::move(x.work)}, caf::actor_cast<step_client>(self->current_sender())});
      },
      [self](inline_step& x) {
        if (self->state.in_step && !self->state.in_step())
          self->delayed_send(self, inline_wait, std::move(x));
        else
          self->send(x.client, std::move(x.done));
      },
      [self](const shard_step& x) {
        step_output unused;
        self->state.device->step(x.step, unused);
      },
      [self, mover](ask_kv) { self->send(mover(), self->state.kv->facts()); },
      [self, mover](const reach_pool& x) { self->send(mover(), self->state.kv->reach(x)); },
      [self, mover](export_blocks& x) { move_later(self, mover(), std::move(x)); },
      [self, mover](import_blocks& x) { move_later(self, mover(), std::move(x)); },
      [self, mover](read_blocks& x) { move_later(self, mover(), std::move(x)); },
      [self](const inline_move& x) { x.run(*self->state.kv); },
  };
}

} // namespace tokenrouter
