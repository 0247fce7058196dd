#include "actors/model_kv.hpp"

#include <string>

#include "runtime/core/check.hpp"
#include "runtime/core/log.hpp"
#include "runtime/wire/crc32c.hpp"

namespace tokenrouter {

kv_facts model_kv::facts() const {
  const auto& facts = device_.facts();
  const std::string text = facts.architecture + "/" + facts.kv_layout + "/" +
                           std::to_string(facts.kv_bytes_per_block) + "/" +
                           std::to_string(facts.vocab_tokens);
  std::uint64_t layout = 14695981039346656037u;
  for (const char c : text)
    layout = (layout ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return {layout, facts.kv_bytes_per_block, device_.kv_address()};
}

kv_reached model_kv::reach(const reach_pool& x) {
  auto source = device_.reach_kv(x.address);
  if (!source)
    return {x.sibling, false};
  sources_[x.sibling] = std::move(*source);
  return {x.sibling, true};
}

blocks_exported model_kv::export_to(const export_blocks& x) const {
  const auto bytes = x.buffer->bytes();
  const std::size_t block_bytes = device_.facts().kv_bytes_per_block;
  check(bytes.size() == x.blocks.size() * block_bytes, "a buffer holds the blocks of its piece");
  device_.export_blocks(x.blocks, bytes);
  return {x.number, crc32c(bytes)};
}

blocks_imported model_kv::import_from(const import_blocks& x) {
  const auto bytes = x.buffer->bytes();
  const std::size_t block_bytes = device_.facts().kv_bytes_per_block;
  const bool sound = bytes.size() == x.blocks.size() * block_bytes && crc32c(bytes) == x.checksum;
  if (!sound)
    spdlog::warn("KV from another replica came damaged; the prompt is computed instead");
  if (sound)
    device_.import_blocks(x.blocks, bytes);
  return {x.number, sound};
}

blocks_imported model_kv::read(const read_blocks& x) {
  const auto found = sources_.find(x.sibling);
  check(found != sources_.end(), "only a pool that was reached is read");
  const auto done = found->second->read(x.copies);
  if (!done)
    spdlog::warn("KV of another replica can't be read: {}", done.error().message);
  return {x.number, done.has_value()};
}

} // namespace tokenrouter
