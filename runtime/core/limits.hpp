#pragma once

#include <cstddef>
#include <cstdint>

/// Every fixed limit of the system, in one place.
namespace tokenrouter::limits {

/// Tokens in one KV block. Fixed: block tables of all ranks agree on it.
inline constexpr std::uint32_t block_tokens = 16;

/// Positions for which blocks are leased before they are needed.
inline constexpr std::uint32_t look_ahead_tokens = 64;

inline constexpr std::uint32_t models_max = 16;
inline constexpr std::uint32_t replicas_max = 64; ///< of one model
inline constexpr std::uint32_t ranks_max = 4096;
inline constexpr std::uint32_t shards_max = 64; ///< of one replica
inline constexpr std::size_t shard_group_id_bytes_max = 1024;
inline constexpr std::uint32_t batch_rows_max = 1024;

/// Longest context any model may be configured for, in tokens.
inline constexpr std::uint32_t context_tokens_max = 1u << 20;

/// Largest batch whose step times are measured for thresholds that set themselves.
inline constexpr std::uint32_t reported_rows_max = 64;

/// Routing heads one model may run beside its hidden states.
inline constexpr std::uint32_t heads_max = 4;

/// Raw logits, largest first, that a routing network may ask for.
inline constexpr std::uint32_t top_logits_max = 128;

/// Bytes of per-request state a method may keep; it travels with every handoff.
inline constexpr std::size_t method_state_bytes_max = 256;

/// Largest frame on the wire, in bytes: a first send of the longest context fits with room.
inline constexpr std::size_t frame_bytes_max = std::size_t{64} << 20;

/// Frames and bytes of one link that may be on their way without an acknowledgement.
inline constexpr std::uint32_t link_window_frames = 1024;
inline constexpr std::size_t link_window_bytes = std::size_t{16} << 20;

/// Bytes of KV on their way beside the frames, each way and rank; and of one piece of it, which is
/// at least one block.
inline constexpr std::size_t bulk_bytes_max = std::size_t{64} << 20;
inline constexpr std::size_t bulk_piece_bytes = std::size_t{8} << 20;
inline constexpr std::size_t in_place_piece_bytes = std::size_t{128} << 20; ///< read by a sibling

/// Of one fetch of KV: pieces that are asked for at a time.
inline constexpr std::size_t fetch_pieces_max = 4;

/// Bytes by which another process may reach a KV pool.
inline constexpr std::size_t kv_address_bytes_max = 1024;

/// Ended requests a scheduler remembers, to drop what arrives late for them.
inline constexpr std::size_t tombstones_max = 1u << 16;

/// Of one client's call: continuations wanted, stop strings, bytes of each of these.
inline constexpr std::uint32_t choices_max = 256;
inline constexpr std::uint32_t stop_strings_max = 16;
inline constexpr std::size_t stop_string_bytes_max = 1024;

/// Of one chat: tools that are shown to the model, and members of any object in it.
inline constexpr std::uint32_t tools_max = 128;
inline constexpr std::size_t json_members_max = 512;

/// Tokens whose logits a client may raise or lower, and by how much.
inline constexpr std::uint32_t logit_biases_max = 300;
inline constexpr float logit_bias_largest = 100.0f;

/// Largest logits a client may ask to see of each token.
inline constexpr std::uint32_t top_logprobs_max = 20;

static_assert((block_tokens & (block_tokens - 1)) == 0, "positions are split by shifting");
static_assert(frame_bytes_max > std::size_t{context_tokens_max} * sizeof(std::int32_t) * 2);
static_assert(models_max <= 64, "sets of models are kept in a 64-bit mask");

} // namespace tokenrouter::limits
