#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.hpp"
#include "runtime/core/ids.hpp"

/// The fused CPU kernels, once per instruction set. Every kernel handles one row (or one query, or
/// one output element) by a chain of operations that depends on that row alone: the same rounding
/// steps in the same order whatever the number of rows, the tile they fell in or the thread. All
/// sets use the same chains, so float32 results are equal bit for bit between them too.
namespace tokenrouter::cpu {

/// Columns of a weight panel, and lanes of a kernel's vector. Rows of activations start at
/// multiples of it; what lies between the last column and the next row is never read.
inline constexpr std::uint32_t lanes = 16;

constexpr std::uint32_t padded(std::uint32_t columns) {
  return (columns + lanes - 1) / lanes * lanes;
}

/// How weights and KV lie in memory; an index into the pairs of a kernel_table.
enum class storage : std::uint8_t { bf16 = 0, f32 = 1 };

constexpr std::size_t element_bytes(storage s) {
  return s == storage::bf16 ? 2 : 4;
}

/// Bytes of one panel of `k` inputs. f32: [k][16 columns]. bf16: [ceil(k/2)][16 columns][2 inputs],
/// a missing last input being 0.
constexpr std::size_t panel_bytes(storage s, std::uint32_t k) {
  return s == storage::f32 ? std::size_t{k} * lanes * 4 : std::size_t{(k + 1) / 2} * lanes * 4;
}

/// out[r][c] = sum over i of operand[r][i] · weight[c][i], for the columns of panels
/// [panel_begin, panel_end). Order of the sum: f32 i = 0, 1, 2, …; bf16 i = 1, 0, 3, 2, … (the
/// order of the hardware's pair product). One fused multiply-add a term.
struct gemm_call {
  const std::byte* panels = nullptr; ///< panel p lies at p · panel_bytes
  std::uint32_t panel_begin = 0;
  std::uint32_t panel_end = 0;
  std::uint32_t k = 0;            ///< inputs
  const float* operand = nullptr; ///< [rows][operand_stride], written by an operand kernel
  std::size_t operand_stride = 0; ///< floats
  std::uint32_t rows = 0;
  float* out = nullptr;        ///< [rows][out_stride]
  std::size_t out_stride = 0;  ///< floats
  const float* bias = nullptr; ///< [panels · 16] or null; added to the finished sum
  bool accumulate = false;     ///< then the finished sum is added to what `out` holds
};

/// Root-mean-square norm in float32: x · (1 / sqrt(mean(x²) + eps)) · weight.
struct norm_call {
  const float* x = nullptr;      ///< [columns]
  const float* weight = nullptr; ///< [columns]
  std::uint32_t columns = 0;
  float eps = 0;
  float* out = nullptr; ///< [columns] floats, or an operand row
};

/// Query-key norm (where the model has it), rotation and the write to the KV of one token.
struct rotate_call {
  const float* qkv = nullptr; ///< [(heads + 2 · kv_heads) · head_dim], queries first
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  const float* q_norm = nullptr; ///< [head_dim] or null
  const float* k_norm = nullptr;
  float eps = 0;
  const float* cosines = nullptr; ///< [head_dim / 2] of this token's position
  const float* sines = nullptr;
  float* q_out = nullptr;       ///< [heads · head_dim]
  std::byte* k_block = nullptr; ///< [kv_heads][head_dim][16 positions] of the token's block
  std::byte* v_block = nullptr; ///< [kv_heads][16 positions][padded(head_dim)]
  std::uint32_t slot = 0;       ///< position inside the block
};

/// One query head of one token.
struct attention_query {
  const float* q = nullptr;     ///< [head_dim]
  float* out_row = nullptr;     ///< operand row of the token
  std::uint32_t out_column = 0; ///< where in that row
  std::uint32_t positions = 0;  ///< attends to [0, positions), at least 1
};

inline constexpr std::uint32_t attention_queries_max = 16;

/// Softmax attention of a few queries over one key-value head, block by block in the order of the
/// table, with a running maximum and sum per query.
struct attention_call {
  const attention_query* queries = nullptr;
  std::uint32_t query_count = 0; ///< 1 … attention_queries_max
  std::uint32_t head_dim = 0;
  float scale = 0;
  const block_id* blocks = nullptr; ///< table of the request
  const std::byte* pool = nullptr;
  std::size_t block_bytes = 0;
  std::size_t k_offset = 0; ///< bytes into a block: [head_dim][16 positions]
  std::size_t v_offset = 0; ///< bytes into a block: [16 positions][padded(head_dim)]
  float* scratch = nullptr; ///< [query_count][padded(head_dim)]
};

/// silu(gate) · up of one row as operand columns [16 · panel_begin, 16 · panel_end). gate_up holds
/// 16 gates, then 16 ups, for each panel in turn.
struct swiglu_call {
  const float* gate_up = nullptr;
  float* operand = nullptr;
  std::uint32_t panel_begin = 0;
  std::uint32_t panel_end = 0;
};

/// Kernels of one instruction set. Arrays of two are indexed by `storage`. An operand row is a row
/// of activations in the form that `gemm` reads: float32 for f32; for bf16 values rounded to
/// nearest even, kept as float32 or packed, as the set likes.
struct kernel_table {
  const char* name;
  void (*gemm[2])(const gemm_call&);
  void (*norm)(const norm_call&);            ///< out: floats
  void (*norm_operand[2])(const norm_call&); ///< out: operand row
  void (*rotate[2])(const rotate_call&);
  void (*attend[2])(const attention_call&);
  void (*swiglu[2])(const swiglu_call&);
  /// floats [columns] to an operand row
  void (*to_operand[2])(const float* x, float* operand, std::uint32_t columns);
};

/// What this processor can run, slowest first; never empty.
std::vector<const kernel_table*> runnable_kernels();

/// Names of the sets that this build or processor can't run.
std::vector<std::string> unrunnable_kernels();

/// The set of that name; with an empty name the fastest. Error: invalid_argument, naming those that
/// run here.
result<const kernel_table*> choose_kernels(std::string_view name);

/// The set that the environment variable TOKENROUTER_CPU_ISA names, else the fastest.
result<const kernel_table*> choose_kernels_by_environment();

} // namespace tokenrouter::cpu
