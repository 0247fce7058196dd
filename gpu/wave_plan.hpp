#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/kernels/wave_types.hpp"
#include "runtime/exec/step.hpp"

/// What a step is cut into for the device; pure host code.
namespace tokenrouter::gpu {

struct wave_limits {
  std::uint32_t tokens_max = 4096; ///< that pass through the layers together
  std::uint32_t ends_max = 256;    ///< answered positions of them
};

/// How attention is dealt out.
struct attention_plan {
  bool fast = false;             ///< pieces and tiles; else every token on its own
  bool pieces = false;           ///< pieces of short rows even if not fast
  std::uint32_t unit_tokens = 1; ///< tokens of one row that a unit takes
  std::uint32_t tile_tokens = 64;
  std::uint32_t kv_heads = 1;
  std::uint32_t processors = 1; ///< of the device: pieces are made until all have work
};

/// An answered position of a wave.
struct wave_end {
  static constexpr std::size_t last = SIZE_MAX;
  std::size_t row = 0;
  std::size_t earlier = last; ///< place in step_output::earlier; `last`: the row's last position
};

/// One pass through the layers: arrays as kernels read them. Tokens of rows follow one another.
struct wave {
  std::vector<std::int32_t> ids, positions, slots, tables_of;
  std::vector<draw_order> orders; ///< one for each end
  std::vector<wave_end> ends;
  std::vector<attention_piece> pieces;
  std::vector<attention_tile> tiles;
  /// Block ids of each row; behind them, of a row with biases, its draw_biases.
  std::vector<std::int32_t> tables;
  std::uint32_t units = 0;
  std::uint32_t partials = 0;
  bool answers_whole = false;   ///< some end wants a distribution or mixes another
  bool tells_likeliest = false; ///< some end wants likely tokens
  bool has_biases = false;      ///< some end has

  void clear();
};

/// Cuts a step into waves, in order. The input must outlive it.
class wave_cutter {
 public:
  wave_cutter(const step_input& in, const wave_limits& limits, const attention_plan& attention,
              std::uint32_t vocab_legal_tokens);

  /// Fills `out` with the next wave; false when all is done.
  bool next(wave& out);

 private:
  std::uint32_t add_tokens(wave& out, std::size_t row_number, std::uint32_t room);
  void add_end(wave& out, std::size_t row_number, std::uint32_t token, std::size_t biases);
  void plan_attention(wave& out, std::uint32_t first_token, std::uint32_t count,
                      std::uint32_t position, std::uint32_t table);
  void split_units(wave& out) const;

  const step_input* in_;
  wave_limits limits_;
  attention_plan attention_;
  std::uint32_t vocab_legal_tokens_;
  std::size_t row_ = 0;
  std::uint32_t done_tokens_ = 0; ///< of that row
  std::size_t next_earlier_ = 0;
  std::uint32_t next_distribution_ = 0;
};

/// Most pieces that a wave of so many tokens can have.
std::uint32_t pieces_max(std::uint32_t tokens, const attention_plan& attention);

/// Most partial results of pieces, likewise.
std::uint32_t partials_max(const attention_plan& attention);

} // namespace tokenrouter::gpu
