#include "actors/kv_copier.hpp"

#include "actors/model.hpp"

namespace tokenrouter {

kv_copier::kv_copier(caf::actor_config& config, backend* device)
    : blocking_actor(config), kv_(*device) {}

void kv_copier::act() {
  const auto mover = [this] { return caf::actor_cast<kv_client>(current_sender()); };
  bool running = true;
  receive_while(running)([&](ask_kv) { send(mover(), kv_.facts()); },
                         [&](const reach_pool& x) { send(mover(), kv_.reach(x)); },
                         [&](const export_blocks& x) { send(mover(), kv_.export_to(x)); },
                         [&](const import_blocks& x) { send(mover(), kv_.import_from(x)); },
                         [&](const read_blocks& x) { send(mover(), kv_.read(x)); },
                         [&](caf::exit_msg&) { running = false; });
}

} // namespace tokenrouter
