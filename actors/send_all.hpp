#pragma once

#include <utility>
#include <vector>

namespace tokenrouter {

/// Sends what a transition left to be sent, in order, and forgets it.
template <class Self, class Target, class Message>
void send_all(Self self, const Target& target, std::vector<Message>& messages) {
  for (auto& x : messages)
    self->send(target, std::move(x));
  messages.clear();
}

} // namespace tokenrouter
