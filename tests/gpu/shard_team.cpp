#include "tests/gpu/shard_team.hpp"

#include <cuda_runtime_api.h>

#include "runtime/core/check.hpp"

namespace tokenrouter::test {

std::uint32_t gpus_here() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? static_cast<std::uint32_t>(count) : 0;
}

/// Runs work(shard) on all shards at once; returns when all have done it.
template <class F>
void shard_team::each(const F& work) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < shards_.size(); ++i)
    if (i != lost_)
      threads.emplace_back([&work, i] {
        cudaSetDevice(static_cast<int>(i));
        work(i);
      });
  for (auto& thread : threads)
    thread.join();
}

result<std::unique_ptr<shard_team>> shard_team::load(const load_options& options,
                                                     std::uint32_t shards, bool graphs) {
  auto id = make_cuda_group();
  if (!id)
    return tl::unexpected(id.error());
  std::unique_ptr<shard_team> team(new shard_team);
  team->shards_.resize(shards);
  std::vector<error> faults(shards);
  team->each([&](std::uint32_t i) {
    load_options mine = options;
    mine.group = {i, shards, *id, team->stop_};
    auto made = make_cuda_backend(mine, {.device = i, .graphs = graphs});
    if (made)
      team->shards_[i] = std::move(*made);
    else
      faults[i] = made.error();
  });
  for (std::uint32_t i = 0; i < shards; ++i)
    if (!team->shards_[i])
      return tl::unexpected(faults[i]);
  return team;
}

shard_team::~shard_team() {
  lost_ = UINT32_MAX;
  each([&](std::uint32_t i) { shards_[i].reset(); });
}

result<void> shard_team::allocate_kv(std::uint32_t blocks) {
  std::vector<result<void>> outcomes(shards_.size());
  each([&](std::uint32_t i) { outcomes[i] = shards_[i]->allocate_kv(blocks); });
  for (const auto& outcome : outcomes)
    if (!outcome)
      return outcome;
  return {};
}

void shard_team::step(const step_input& in, step_output& out) {
  std::vector<step_output> unused(shards_.size());
  each([&](std::uint32_t i) { shards_[i]->step(in, i == 0 ? out : unused[i]); });
}

void shard_team::copy_blocks(std::span<const block_copy> copies) {
  each([&](std::uint32_t i) { shards_[i]->copy_blocks(copies); });
}

void shard_team::export_blocks(std::span<const block_id>, std::span<std::byte>) {
  check(false, "a team's KV lies on several devices");
}

void shard_team::import_blocks(std::span<const block_id> blocks, std::span<const std::byte> bytes) {
  each([&](std::uint32_t i) { shards_[i]->import_blocks(blocks, bytes); });
}

} // namespace tokenrouter::test
