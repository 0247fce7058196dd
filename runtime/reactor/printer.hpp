#pragma once

#include <caf/fwd.hpp>

namespace tokenrouter {

/// The actor behind `caf::aout`: writes to stdout in the sender's thread and needs none of its own.
caf::actor make_printer(caf::actor_system& system);

} // namespace tokenrouter
