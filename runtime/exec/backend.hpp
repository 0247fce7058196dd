#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/exec/shard_group.hpp"
#include "runtime/exec/step.hpp"

namespace tokenrouter {

enum class compute_type : std::uint8_t {
  bfloat16, ///< weights and KV in bf16, products summed in float32
  float32,  ///< everything in float32: for exact comparison
};

/// A routing network to run beside the hidden states of a model.
struct head_spec {
  std::string kind; ///< r2r, r2r_multi, citer, citer_unfolded, collm, collm_row, rstitch
  /// safetensors, with a JSON of the same stem beside it; for collm_row the model's own folder.
  std::filesystem::path weights;
  std::uint32_t window_positions = 1; ///< that head_input::window will have; r2r_multi
  token_id row = -1;                  ///< of the LM head; collm_row
};

struct load_options {
  std::filesystem::path model_path; ///< folder with config.json and safetensors
  compute_type compute = compute_type::bfloat16;
  std::uint32_t threads = 1;            ///< CPU threads of this model, the caller's included
  std::uint32_t vocab_legal_tokens = 0; ///< ids at or above are never sampled; 0 = the model's own
  std::vector<head_spec> heads;         ///< at most limits::heads_max
  bool dummy_weights = false; ///< random ones of config.json's shape; GPU only, no files are read
  shard_group group;          ///< more than one member: GPU only
};

/// Facts of a loaded model; constant after load.
struct model_facts {
  std::string architecture;       ///< e.g. Qwen3ForCausalLM
  std::uint32_t vocab_tokens = 0; ///< width of the logits
  std::uint32_t context_tokens_max = 0;
  std::vector<token_id> eos_tokens;     ///< of generation_config.json, else config.json
  std::uint64_t weight_bytes = 0;       ///< in memory, heads included; of this shard
  std::uint64_t kv_bytes_per_block = 0; ///< with what windows of heads need
  std::string kernels;                  ///< what runs it, e.g. "avx512-bf16", "avx2", "cuda sm_90"
  /// What lays out its KV blocks. Replicas of a model that name the same, with blocks of the same
  /// size, can read each other's.
  std::string kv_layout;
};

/// What loading a model would take, told without loading it.
struct model_memory {
  std::uint64_t weight_bytes = 0;       ///< as model_facts::weight_bytes; heads by their files
  std::uint64_t kv_bytes_per_block = 0; ///< exact
};

/// The KV pool of a sibling, another replica of the same model, as this backend's device reads it.
/// Used by the thread that moves KV (see backend).
class kv_source {
 public:
  virtual ~kv_source() = default;

  /// Copies block `from` of the sibling to block `to` of the own pool, each. The sibling keeps
  /// those blocks as they are meanwhile. Requires own ids below the allocated count.
  /// Errors: unavailable; malformed (a block that the sibling does not have). The own blocks then
  /// hold anything.
  virtual result<void> read(std::span<const block_copy> copies) = 0;
};

/// A model on a device. One thread at a time calls it: the model actor's, which owns it; another
/// one moves KV beside it. Results of a row do not depend on the other rows, on chunking, or on
/// block numbers.
class backend {
 public:
  virtual ~backend() = default;

  virtual const model_facts& facts() const = 0;

  /// Reserves the KV pool; called once, before the first step. Error: capacity.
  virtual result<void> allocate_kv(std::uint32_t blocks) = 0;

  /// Runs one step, its copies first. Requires the input's contract and block ids below the
  /// allocated count (both checked). Reuses `out`'s memory. A step that other shards were needed
  /// for and did not answer sets out.failure; nothing can be run after that.
  virtual void step(const step_input& in, step_output& out) = 0;

  /// Copies whole blocks inside the pool, in the order given.
  virtual void copy_blocks(std::span<const block_copy> copies) = 0;

  /// The functions from here on may be called by one other thread than the one that calls the rest,
  /// at the same time, for blocks that no step touches meanwhile; what other threads wrote before
  /// is seen by later steps.

  /// Writes the KV of blocks to `bytes`, one after the other / reads it from there; exactly
  /// kv_bytes_per_block bytes each in a layout that only the same model on the same kind of backend
  /// reads.
  virtual void export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) = 0;
  virtual void import_blocks(std::span<const block_id> blocks,
                             std::span<const std::byte> bytes) = 0;

  /// How a sibling reaches this KV pool without help from here, once it is allocated; opaque, at
  /// most limits::kv_address_bytes_max. Empty: not at all.
  virtual std::vector<std::byte> kv_address() const { return {}; }

  /// The pool at that address of another backend of the same model. It must not be used after this
  /// backend is gone, but may outlive the sibling. Error: unavailable (not from here).
  virtual result<std::unique_ptr<kv_source>> reach_kv(std::span<const std::byte> address) {
    static_cast<void>(address);
    return fail(errc::unavailable, "this backend reads no other's KV pool");
  }
};

} // namespace tokenrouter
