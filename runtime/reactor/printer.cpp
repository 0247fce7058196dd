#include "runtime/reactor/printer.hpp"

#include <cstdio>
#include <mutex>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>

namespace tokenrouter {

namespace {

class printer final : public caf::monitorable_actor {
 public:
  explicit printer(caf::actor_config& config) : monitorable_actor(config) {}

  using monitorable_actor::enqueue;

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    const auto& content = what->content();
    // CAF sends flush and delete notices too; nothing is buffered, so there is nothing to do.
    if (!content.match_elements<caf::add_atom, caf::actor_id, std::string>())
      return;
    const std::lock_guard guard(mutex_);
    const auto& text = content.get_as<std::string>(2);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  const char* name() const override { return "printer"; }

 private:
  std::mutex mutex_;
};

} // namespace

caf::actor make_printer(caf::actor_system& system) {
  caf::actor_config config;
  return caf::make_actor<printer, caf::actor>(system.next_actor_id(), system.node(), &system,
                                              config);
}

} // namespace tokenrouter
