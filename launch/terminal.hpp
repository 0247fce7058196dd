#pragma once

namespace tokenrouter {

/// Whether a person sees what is written to that descriptor (1 or 2). Open MPI gives every rank a
/// terminal of its own, whatever its own output goes to; so under mpirun its descriptor is asked.
/// False if NO_COLOR is set, for the standard output.
bool shows_on_terminal(int descriptor);

} // namespace tokenrouter
