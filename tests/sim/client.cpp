#include "tests/sim/client.hpp"

namespace tokenrouter::sim {

client_actor::behavior_type client(client_actor::stateful_pointer<client_box> self, client_log* log,
                                   gateway_actor gateway) {
  return {
      [log](const token_delta& x) {
        auto& list = log->streamed[x.client_tag];
        list.insert(list.end(), x.commits.begin(), x.commits.end());
        if (!x.prompt.empty())
          log->prompts[x.client_tag].push_back(x.prompt);
      },
      [log](const request_done& x) {
        if (!log->done.emplace(x.client_tag, x).second)
          ++log->answers_twice;
      },
      [self, gateway](submit& x) { self->send(gateway, std::move(x)); },
      [self, gateway](const cancel& x) { self->send(gateway, x); },
  };
}

} // namespace tokenrouter::sim
