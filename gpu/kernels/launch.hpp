#pragma once

namespace tokenrouter::gpu {

/// Whether a kernel may start before the one in front of it has ended; on unless a benchmark turns
/// it off. Of the process; read when kernels are enqueued.
void overlap_kernels(bool on);
bool kernels_overlap();

} // namespace tokenrouter::gpu
