#include "gpu/nccl/communicator.hpp"

/// Stands in where NCCL's header was not found when this was built.
namespace tokenrouter::gpu {

result<std::unique_ptr<communicator>> communicator::join(const shard_group&, std::uint32_t) {
  return fail(errc::unavailable, "this build has no NCCL, so tp_size must be 1");
}

result<std::vector<std::byte>> make_group_id() {
  return fail(errc::unavailable, "this build has no NCCL, so tp_size must be 1: install "
                                 "libnccl-dev and build again");
}

} // namespace tokenrouter::gpu
