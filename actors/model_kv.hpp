#pragma once

#include <map>
#include <memory>

#include "actors/kv_local_messages.hpp"
#include "runtime/exec/backend.hpp"

namespace tokenrouter {

/// What is done for a shard's mover: whole blocks in and out of the pool, by buffers or from a
/// sibling's pool. Only blocks that no step touches meanwhile.
class model_kv {
 public:
  /// The backend outlives this.
  explicit model_kv(backend& device) : device_(device) {}

  kv_facts facts() const;
  kv_reached reach(const reach_pool& x);
  blocks_exported export_to(const export_blocks& x) const;

  /// Imports nothing from a buffer whose checksum is wrong.
  blocks_imported import_from(const import_blocks& x);
  blocks_imported read(const read_blocks& x);

 private:
  backend& device_;
  std::map<replica_id, std::unique_ptr<kv_source>> sources_;
};

} // namespace tokenrouter
