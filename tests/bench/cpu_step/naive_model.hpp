#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "runtime/exec/model_config.hpp"

namespace tokenrouter::bench {

/// A decode step written as one libtorch operation after the other, as a yardstick: the same model,
/// contiguous KV, all requests at the same position.
class naive_model {
 public:
  /// `bf16`: weights, activations and KV in bf16, else float32. The KV holds random numbers.
  naive_model(const std::filesystem::path& folder, bool bf16, std::uint32_t batch_rows,
              std::uint32_t kv_tokens);
  ~naive_model();

  /// One step for the whole batch; returns the first row's token.
  std::int64_t step();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace tokenrouter::bench
