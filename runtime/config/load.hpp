#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/core/error.hpp"

namespace tokenrouter {

/// One thing wrong with a config, as the user sees it: `file:line: what; what to do`.
struct config_fault {
  source_mark where;
  std::string message;
};

std::string to_string(const config_fault& fault);

struct config_load {
  job_config config;                ///< complete only if there are no faults
  std::vector<config_fault> faults; ///< every fault of the file, not only the first
};

/// Reads a config, applies `overrides` ("key=value", dotted paths such as
/// `models.quick.max_batch_rows=8`; the short names `compute_dtype`, `prefill_chunk_tokens`,
/// `max_batch_rows`, `kv_cache.tokens` … stand at top level for every model, and as an override
/// take the place of what single models say) and checks it: unknown keys with the nearest known
/// one, types, ranges, references between entries. Reads no weights.
config_load load_config(const std::filesystem::path& file,
                        const std::vector<std::string>& overrides);

/// The entries of `ranks` that a job of `rank_count` ranks does not have.
std::vector<config_fault> validate_ranks(const job_config& config, std::uint32_t rank_count);

/// Identical on all ranks if and only if they read the same configuration (paths excluded that do
/// not matter to peers): FNV-1a over a canonical dump.
std::uint64_t config_hash(const job_config& config);

} // namespace tokenrouter
