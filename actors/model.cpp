#include "actors/model.hpp"

#include <chrono>

#include "runtime/core/log.hpp"
#include "runtime/reactor/affinity.hpp"

namespace tokenrouter {

result<std::unique_ptr<backend>> load_model(const model_options& options) {
  auto device = options.load();
  if (!device)
    return device;
  if (auto reserved = (*device)->allocate_kv(options.kv_blocks); !reserved)
    return tl::unexpected(reserved.error());
  return device;
}

model::model(caf::actor_config& config, model_options options, model_observer observer)
    : spinning_blocking_actor(config, options.spin_us), options_(std::move(options)),
      observer_(std::move(observer)) {}

void model::act() {
  if (!options_.cores.empty())
    if (auto pinned = pin_this_thread(options_.cores); !pinned)
      spdlog::warn("model thread runs unpinned: {}", pinned.error().message);
  auto device = load_model(options_);
  if (!device) {
    send(observer_, model_failed{options_.replica, device.error()});
    return;
  }
  send(observer_, model_loaded{options_.replica, (*device)->facts().kernels});
  observer_ = nullptr;
  bool running = true;
  receive_while(running)(
      [&](run_step& x) {
        (*device)->step(x.work->in, x.work->out);
        send(caf::actor_cast<step_client>(current_sender()), step_done{std::move(x.work)});
      },
      [&](caf::exit_msg&) { running = false; });
}

caf::behavior inline_model(caf::stateful_actor<inline_model_state>* self,
                           const model_options& options, const model_observer& observer) {
  auto device = load_model(options);
  if (!device) {
    self->send(observer, model_failed{options.replica, device.error()});
    return {};
  }
  self->send(observer, model_loaded{options.replica, (*device)->facts().kernels});
  self->state.device = std::move(*device);
  return {
      [self](run_step& x) {
        self->state.device->step(x.work->in, x.work->out);
        const std::chrono::microseconds duration(x.work->out.step_us);
        self->delayed_send(caf::actor_cast<step_client>(self->current_sender()), duration,
                           step_done{std::move(x.work)});
      },
  };
}

} // namespace tokenrouter
