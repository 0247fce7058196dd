#include "runtime/config/load.hpp"

#include <bit>
#include <string_view>

namespace tokenrouter {

namespace {

/// FNV-1a 64 over values with their lengths or in 8 bytes each, so that no two dumps run together.
class hasher {
 public:
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char c : text)
      add_byte(static_cast<unsigned char>(c));
  }
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      add_byte((number >> shift) & 0xFF);
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }

  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3u; }

  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

} // namespace

std::uint64_t config_hash(const job_config& config) {
  hasher hash;
  hash.add(config.system.entry_model);
  hash.add(config.system.on_peer_loss);
  hash.add(std::uint64_t{config.system.heartbeat_ms});
  hash.add(std::uint64_t{config.system.peer_timeout_ms});
  hash.add(config.system.log_level);
  hash.add(std::uint64_t{config.models.size()});
  for (const model_settings& model : config.models) {
    hash.add(model.name);
    hash.add(model.role);
    hash.add(std::uint64_t{model.ranks.size()});
    for (const std::uint32_t rank : model.ranks)
      hash.add(std::uint64_t{rank});
    hash.add(static_cast<std::uint64_t>(model.compute));
    hash.add(model.device);
    hash.add(model.param_num_billion);
    hash.add(std::uint64_t{model.max_batch_rows});
    hash.add(std::uint64_t{model.prefill_chunk_tokens});
    hash.add(std::uint64_t{model.threads});
    hash.add(model.kv_cache_tokens);
    hash.add(model.kv_cache_mem_fraction);
  }
  hash.add(config.method.name);
  hash.add(std::uint64_t{config.method.router.empty() ? 0u : 1u});
  hash.add(config.method.switching_strategy);
  hash.add(std::uint64_t{config.method.threshold ? 1u : 0u});
  hash.add(config.method.threshold.value_or(0));
  hash.add(std::uint64_t{config.method.thresholds.size()});
  for (const double threshold : config.method.thresholds)
    hash.add(threshold);
  hash.add(std::uint64_t{config.trace.directory.empty() ? 0u : 1u});
  return hash.value();
}

} // namespace tokenrouter
