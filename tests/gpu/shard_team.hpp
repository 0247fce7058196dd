#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gpu/cuda_backend.hpp"
#include "runtime/exec/backend.hpp"

namespace tokenrouter::test {

/// GPUs of this machine; 0 where there is none.
std::uint32_t gpus_here();

/// A model split over the first GPUs of this machine, one thread a shard, as the actors would run
/// it: every shard is given every step, the first answers.
class shard_team final : public backend {
 public:
  /// Errors: those of make_cuda_group and, of the first shard that has any, make_cuda_backend.
  static result<std::unique_ptr<shard_team>> load(const load_options& options, std::uint32_t shards,
                                                  bool graphs = true);
  ~shard_team() override;

  backend& leader() { return *shards_.front(); }
  const model_facts& facts() const override { return shards_.front()->facts(); }
  result<void> allocate_kv(std::uint32_t blocks) override;
  void step(const step_input& in, step_output& out) override;
  void copy_blocks(std::span<const block_copy> copies) override;
  void export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) override;
  /// The same bytes to every shard: for poison.
  void import_blocks(std::span<const block_id> blocks, std::span<const std::byte> bytes) override;

  /// From now on this shard takes no part, as if its process were gone.
  void lose(std::uint32_t shard) { lost_ = shard; }
  /// Ends all waiting for the others.
  void stop() { *stop_ = true; }

 private:
  shard_team() = default;
  template <class F>
  void each(const F& work);

  std::vector<std::unique_ptr<backend>> shards_;
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  std::uint32_t lost_ = UINT32_MAX;
};

} // namespace tokenrouter::test
