#include "runtime/planning/memory_solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

/// Blocks have 32-bit ids.
constexpr std::uint64_t blocks_max = UINT32_MAX;

/// Keeps every sum of bytes within 64 bits.
constexpr std::uint64_t block_bytes_max = 1u << 27;

constexpr double unbounded = std::numeric_limits<double>::infinity();

std::uint64_t up(std::uint64_t amount, std::uint64_t part) {
  return amount / part + (amount % part != 0 ? 1 : 0);
}

std::string gib(std::uint64_t bytes) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3f GiB", static_cast<double>(bytes) / (1u << 30));
  return text.data();
}

class memory_solver {
 public:
  memory_solver(const std::vector<memory_device>& devices, const std::vector<memory_model>& models)
      : devices_(devices), models_(models), blocks_(models.size(), 0) {}

  result<memory_plan> solve() {
    if (auto ok = check_input(); !ok)
      return tl::unexpected(ok.error());
    place_weights();
    if (auto ok = check_room("the weights"); !ok)
      return tl::unexpected(ok.error());
    for (std::size_t m = 0; m < models_.size(); ++m)
      set_blocks(m, up(models_[m].fixed_tokens, limits::block_tokens));
    if (auto ok = check_room("weights and the tokens asked for"); !ok)
      return tl::unexpected(ok.error());
    share_rest();
    for (std::size_t m = 0; m < models_.size(); ++m)
      if (blocks_[m] == 0)
        return no_block(m);
    return describe();
  }

 private:
  result<void> check_input() const {
    for (const auto& device : devices_)
      if (!(device.usable_fraction > 0) || device.usable_fraction > 1)
        return fail(errc::invalid_argument,
                    "device '" + device.name + "' has a usable fraction of " +
                        std::to_string(device.usable_fraction) + "; give one over 0, up to 1");
    for (const auto& model : models_) {
      check(!model.shard_devices.empty() && model.kv_bytes_per_block >= 1 &&
                model.kv_bytes_per_block <= block_bytes_max,
            "a model has a shard and KV");
      if (up(model.fixed_tokens, limits::block_tokens) > blocks_max)
        return fail(errc::invalid_argument, "model '" + model.name + "' asks for " +
                                                std::to_string(model.fixed_tokens) +
                                                " tokens of KV; no pool holds over " +
                                                std::to_string(blocks_max * limits::block_tokens));
      for (std::uint32_t device : model.shard_devices)
        check(device < devices_.size(), "a shard is on a device that exists");
      if (!(model.tokens_weight > 0) || !std::isfinite(model.tokens_weight))
        return fail(errc::invalid_argument, "model '" + model.name + "' has a tokens weight of " +
                                                std::to_string(model.tokens_weight) +
                                                "; give one over 0");
    }
    return {};
  }

  std::uint64_t shards(std::size_t m) const { return models_[m].shard_devices.size(); }
  std::uint64_t shard_weight_bytes(std::size_t m) const {
    return up(models_[m].weight_bytes, shards(m));
  }
  std::uint64_t shard_block_bytes(std::size_t m) const {
    return up(models_[m].kv_bytes_per_block, shards(m));
  }

  void place_weights() {
    for (const auto& device : devices_) {
      device_share memory;
      memory.usable_bytes = static_cast<std::uint64_t>(
          static_cast<long double>(device.memory_bytes) * device.usable_fraction);
      memory.reserved_bytes = device.reserved_bytes;
      used_.push_back(memory);
    }
    for (std::size_t m = 0; m < models_.size(); ++m)
      for (std::uint32_t device : models_[m].shard_devices)
        used_[device].weight_bytes += shard_weight_bytes(m);
  }

  void set_blocks(std::size_t m, std::uint64_t blocks) {
    for (std::uint32_t device : models_[m].shard_devices)
      used_[device].kv_bytes += blocks * shard_block_bytes(m) - blocks_[m] * shard_block_bytes(m);
    blocks_[m] = blocks;
  }

  static std::uint64_t taken_bytes(const device_share& memory) {
    return memory.reserved_bytes + memory.weight_bytes + memory.kv_bytes;
  }

  result<void> check_room(const std::string& what) const {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const auto& memory = used_[d];
      if (taken_bytes(memory) <= memory.usable_bytes)
        continue;
      std::string message = "device '" + devices_[d].name + "' can't hold " + what + ": it has " +
                            gib(memory.usable_bytes) + " to use (of " +
                            gib(devices_[d].memory_bytes) + "), ";
      if (memory.reserved_bytes > 0)
        message += gib(memory.reserved_bytes) + " are reserved, ";
      message += "needed are " + gib(memory.weight_bytes + memory.kv_bytes) + " (";
      std::string separator;
      for (std::size_t m = 0; m < models_.size(); ++m) {
        const std::uint64_t here = shards_on(m, static_cast<std::uint32_t>(d));
        if (here == 0)
          continue;
        message +=
            separator + "'" + models_[m].name + "': weights " + gib(here * shard_weight_bytes(m));
        if (blocks_[m] > 0)
          message += ", KV " + gib(here * blocks_[m] * shard_block_bytes(m));
        separator = "; ";
      }
      return fail(errc::capacity, message + "); move a model to another device, split one over "
                                            "several, or ask for fewer tokens");
    }
    return {};
  }

  std::uint64_t shards_on(std::size_t m, std::uint32_t device) const {
    const auto& all = models_[m].shard_devices;
    return static_cast<std::uint64_t>(std::count(all.begin(), all.end(), device));
  }

  /// Blocks of a model of weight 1 that the tightest device allows to the models in `open`.
  double common_blocks(const std::vector<bool>& open) const {
    double least = unbounded;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      double bytes_per_block = 0;
      for (std::size_t m = 0; m < models_.size(); ++m)
        if (open[m])
          bytes_per_block += models_[m].tokens_weight *
                             static_cast<double>(shards_on(m, static_cast<std::uint32_t>(d)) *
                                                 shard_block_bytes(m));
      if (bytes_per_block > 0)
        least = std::min(least, static_cast<double>(used_[d].usable_bytes - taken_bytes(used_[d])) /
                                    bytes_per_block);
    }
    return least;
  }

  void share_rest() {
    std::vector<bool> open(models_.size());
    for (std::size_t m = 0; m < models_.size(); ++m)
      open[m] = models_[m].fixed_tokens == 0;
    // Each round closes the models whose bound is below the common share, which only raises it.
    double common = 0;
    for (bool closed_one = true; closed_one;) {
      closed_one = false;
      common = common_blocks(open);
      for (std::size_t m = 0; m < models_.size(); ++m) {
        const std::uint64_t bound =
            models_[m].max_tokens == 0
                ? blocks_max
                : std::min(blocks_max, up(models_[m].max_tokens, limits::block_tokens));
        if (open[m] && static_cast<double>(bound) <= common * models_[m].tokens_weight) {
          set_blocks(m, bound);
          open[m] = false;
          closed_one = true;
        }
      }
    }
    // The rounding of the division may be a hair below a whole block; what that grants too much is
    // taken back.
    for (std::size_t m = 0; m < models_.size(); ++m)
      if (open[m])
        set_blocks(m, static_cast<std::uint64_t>(common * models_[m].tokens_weight * (1 + 1e-12)));
    for (std::size_t m = 0; m < models_.size(); ++m)
      while (open[m] && blocks_[m] > 0 && overfull(m))
        set_blocks(m, blocks_[m] - 1);
  }

  bool overfull(std::size_t m) const {
    const auto& all = models_[m].shard_devices;
    return std::any_of(all.begin(), all.end(), [this](std::uint32_t device) {
      return taken_bytes(used_[device]) > used_[device].usable_bytes;
    });
  }

  tl::unexpected<error> no_block(std::size_t m) const {
    std::string message = "nothing is left for the KV of model '" + models_[m].name +
                          "': one block of it needs " + std::to_string(shard_block_bytes(m)) +
                          " bytes";
    for (std::uint32_t device : models_[m].shard_devices)
      message += ", device '" + devices_[device].name + "' has " +
                 std::to_string(used_[device].usable_bytes - taken_bytes(used_[device])) +
                 " left beside the weights and KV of its models";
    return fail(errc::capacity, message + "; give the device more memory or fewer models");
  }

  memory_plan describe() const {
    memory_plan plan;
    plan.devices = used_;
    for (auto& memory : plan.devices)
      memory.unused_bytes = memory.usable_bytes - taken_bytes(memory);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      model_share memory{blocks_[m], blocks_[m] * limits::block_tokens, {}};
      for (std::uint32_t device : models_[m].shard_devices) {
        const std::uint64_t kv_bytes = blocks_[m] * shard_block_bytes(m);
        memory.shards.push_back(
            {device, shard_weight_bytes(m), kv_bytes,
             static_cast<double>(kv_bytes) / static_cast<double>(devices_[device].memory_bytes)});
      }
      plan.models.push_back(std::move(memory));
    }
    return plan;
  }

  const std::vector<memory_device>& devices_;
  const std::vector<memory_model>& models_;
  std::vector<std::uint64_t> blocks_;
  std::vector<device_share> used_;
};

} // namespace

result<memory_plan> solve_memory(const std::vector<memory_device>& devices,
                                 const std::vector<memory_model>& models) {
  return memory_solver(devices, models).solve();
}

std::uint64_t concurrent_requests(const memory_model& model, const model_share& memory,
                                  std::uint64_t context_tokens) {
  check(context_tokens >= 1, "a request has at least one token");
  const auto tokens = static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(context_tokens) * model.tokens_weight));
  return memory.kv_blocks / up(std::max<std::uint64_t>(tokens, 1), limits::block_tokens);
}

std::uint64_t concurrent_requests(const std::vector<memory_model>& models, const memory_plan& plan,
                                  std::uint64_t context_tokens) {
  check(models.size() == plan.models.size(), "the plan is of these models");
  std::uint64_t least = models.empty() ? 0 : UINT64_MAX;
  for (std::size_t m = 0; m < models.size(); ++m)
    least = std::min(least, concurrent_requests(models[m], plan.models[m], context_tokens));
  return least;
}

} // namespace tokenrouter
