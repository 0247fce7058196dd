#pragma once

#include "runtime/reactor/poller.hpp"
#include "runtime/transport/transport.hpp"

namespace tokenrouter {

/// Lets a reactor poll a transport. Does not own it.
class transport_poller final : public poller {
 public:
  explicit transport_poller(transport& carrier) : carrier_(carrier) {}

  std::size_t poll() override { return carrier_.progress(); }
  int event_fd() const override { return carrier_.event_fd(); }
  bool prepare_sleep() override { return carrier_.prepare_sleep(); }

 private:
  transport& carrier_;
};

} // namespace tokenrouter
