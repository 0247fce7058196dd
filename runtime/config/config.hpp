#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/device_choice.hpp"
#include "runtime/config/serve_settings.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/exec/backend.hpp"
#include "runtime/methods/parameters.hpp"

/// The job's configuration as read from YAML, defaults filled in. Plain values; see
/// configs/README.md for every key.
namespace tokenrouter {

/// Where a value stands in the user's file, for messages.
struct source_mark {
  std::string file;
  std::uint32_t line = 0; ///< 1-based; 0 = no line: a default, or `file` is "--set key=value"
};

/// How a replica takes KV from others of its model. `any_way`: it reads their pools in place where
/// it can, else KV is sent.
enum class kv_fetch : std::uint8_t { off, sent, any_way };

struct model_settings {
  std::string name;
  std::filesystem::path path;       ///< absolute, or relative to the config file's folder made so
  std::string role;                 ///< key `scheduler`, e.g. r2r_slm
  std::vector<std::uint32_t> ranks; ///< of each shard, replica by replica, or one for all of them;
                                    ///< empty = spread
  std::uint32_t replicas_count = 1;
  std::uint32_t shards_count = 1;                        ///< of each replica; key `tp_size`
  std::vector<std::uint32_t> delayed_batching_threshold; ///< entry n − 1: for n live requests
  bool auto_batching = false;                            ///< thresholds are set while it runs
  compute_type compute = compute_type::bfloat16;         ///< key `compute_dtype`
  device_choice device;
  bool dummy_weights = false; ///< key `load_format`: random weights of config.json's shape
  /// Whether a GPU may run all layers of a small step as one kernel; none: if it has no other
  /// model.
  std::optional<bool> one_kernel;
  double param_num_billion = 0; ///< 0 = not said; informative
  std::uint32_t max_batch_rows = 64;
  std::uint32_t prefill_chunk_tokens = 512; ///< most prompt tokens one step takes, over all rows
  std::uint32_t threads = 0;                ///< CPU threads; 0 = as many as the placement leaves it
  std::uint64_t kv_cache_tokens = 0;        ///< key `kv_cache.tokens`; 0 = sized by mem_fraction
  double kv_cache_mem_fraction = 0;         ///< key `kv_cache.mem_fraction`; 0 = default
  bool drop_kv = false;                     ///< key `kv_at_handoff`
  bool prefix_cache = true;                 ///< whole blocks of ended requests serve new ones
  kv_fetch prefix_fetch = kv_fetch::any_way;  ///< … of other replicas, too
  std::uint32_t prefix_fetch_min_tokens = 64; ///< fewer are computed rather than fetched
  source_mark mark;                           ///< of the model's entry
};

struct method_settings {
  std::string name;              ///< key `system.method`
  std::filesystem::path router;  ///< head weights (safetensors); empty = none
  std::filesystem::path library; ///< custom: shared library with roles; empty = none
  method_parameters parameters;  ///< threshold: none = the head's own (its JSON), where it has one
  source_mark mark;
};

struct trace_settings {
  std::filesystem::path directory; ///< empty = no trace; files are trace-rank-N.h5 in it
};

struct system_settings {
  std::string entry_model;
  std::string on_peer_loss = "fail"; ///< fail: the job ends with a rank; degrade: goes on
  std::uint32_t heartbeat_ms = 200;
  std::uint32_t peer_timeout_ms = 5000;
  std::uint32_t delayed_batching_timeout_ms = 1000; ///< a delayed step starts after that; 0: never
  std::string log_level = "warn";
  source_mark mark;
};

struct job_config {
  system_settings system;
  std::vector<model_settings> models; ///< in the order of the file; index = model_id
  method_settings method;
  trace_settings trace;
  serve_settings serve;
  std::filesystem::path file; ///< the config file itself
};

} // namespace tokenrouter
