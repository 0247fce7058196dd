#include "launch/host_cores.hpp"

#include <algorithm>

#include <hwloc.h>

namespace tokenrouter {

namespace {

std::uint32_t cores_holding(hwloc_topology_t topology, const std::vector<int>& allowed) {
  std::uint32_t count = 0;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;)
    count += std::ranges::any_of(allowed, [&](int thread) {
      return hwloc_bitmap_isset(core->cpuset, static_cast<unsigned>(thread)) != 0;
    });
  return count;
}

} // namespace

host_cores look_at_cores(const std::vector<int>& allowed) {
  host_cores out;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0)
    return out;
  if (hwloc_topology_load(topology) == 0) {
    const int threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    out.host_threads = static_cast<std::uint32_t>(std::max(threads, 0));
    out.physical_cores = cores_holding(topology, allowed);
  }
  hwloc_topology_destroy(topology);
  return out;
}

} // namespace tokenrouter
