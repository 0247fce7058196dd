#include "gpu/wave_plan.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "runtime/core/limits.hpp"
#include "runtime/core/philox.hpp"
#include "runtime/exec/likelihood.hpp"

namespace tokenrouter::gpu {
namespace {

/// Rows of more new tokens than this share their reads of keys and values.
constexpr std::uint32_t unit_row_tokens_max = 16;

/// Fewest blocks that are worth a piece of their own: one for each warp.
constexpr std::uint32_t piece_blocks_min = 4;

/// Pieces, over all kv heads, that a processor takes at once, and how many such rounds there may
/// be.
constexpr std::uint32_t pieces_at_once = 2, rounds_max = 4;

/// What a piece costs besides its blocks, in blocks (tests/bench/gpu/README.md): its first keys are
/// waited for and its warps meet; pieces of one unit meet.
constexpr double piece_start_blocks = 13, piece_merge_blocks = 4;

static_assert(draw_biases_max == limits::logit_biases_max);

/// As an array of draw_bias.
void append(std::vector<std::int32_t>& tables, const std::vector<logit_bias>& biases) {
  for (const auto& one : biases) {
    tables.push_back(one.token);
    tables.push_back(std::bit_cast<std::int32_t>(one.bias));
  }
}

std::uint32_t pieces_wanted_max(const attention_plan& a) {
  return std::max(1u, a.processors * pieces_at_once * rounds_max / a.kv_heads);
}

std::int32_t signed_of(std::size_t x) {
  return static_cast<std::int32_t>(x);
}

std::uint32_t blocks_of(const attention_piece& unit) {
  return static_cast<std::uint32_t>(unit.block_end - unit.block_begin);
}

std::uint32_t pieces_of(const attention_piece& unit, std::uint32_t size) {
  return std::min<std::uint32_t>((blocks_of(unit) + size - 1) / size, pieces_of_unit_max);
}

/// How many blocks a piece has at most, so that pieces take as little time as can be: fewer rounds
/// have fewer starts, a last round that is half empty is worst. More units than that are cut only
/// where some are longer than most.
std::uint32_t piece_size(std::span<const attention_piece> units, const attention_plan& a) {
  std::uint32_t total = 0, longest = 1;
  for (const auto& unit : units) {
    total += blocks_of(unit);
    longest = std::max(longest, blocks_of(unit));
  }
  const auto pieces_at = [&](std::uint32_t size) {
    std::uint32_t count = 0;
    for (const auto& unit : units)
      count += pieces_of(unit, size);
    return count;
  };
  const std::uint32_t few = std::max(1u, pieces_wanted_max(a) / 2);
  std::uint32_t best = std::max(piece_blocks_min, (total + few - 1) / few);
  double best_cost = 0;
  for (std::uint32_t rounds = 1; rounds <= rounds_max; ++rounds) {
    const std::uint32_t room = std::max(1u, a.processors * pieces_at_once * rounds / a.kv_heads);
    if (room < units.size())
      continue;
    std::uint32_t low = std::max(piece_blocks_min, (total + room - 1) / room);
    for (std::uint32_t high = std::max(low, longest); low < high;) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (pieces_at(middle) <= room)
        high = middle;
      else
        low = middle + 1;
    }
    const double mean = static_cast<double>(total) / pieces_at(low);
    const double largest = std::min(low, longest);
    const double start = piece_start_blocks + (low < longest ? piece_merge_blocks : 0);
    const double cost = rounds * (mean + start) + largest - mean;
    if (best_cost == 0 || cost < best_cost) {
      best = low;
      best_cost = cost;
    }
  }
  return best;
}

} // namespace

void wave::clear() {
  ids.clear();
  positions.clear();
  slots.clear();
  tables_of.clear();
  orders.clear();
  ends.clear();
  pieces.clear();
  tiles.clear();
  tables.clear();
  units = partials = 0;
  answers_whole = tells_likeliest = has_biases = false;
}

wave_cutter::wave_cutter(const step_input& in, const wave_limits& limits,
                         const attention_plan& attention, std::uint32_t vocab_legal_tokens)
    : in_(&in), limits_(limits), attention_(attention), vocab_legal_tokens_(vocab_legal_tokens) {}

bool wave_cutter::next(wave& out) {
  out.clear();
  while (row_ < in_->rows.size()) {
    const auto room = limits_.tokens_max - static_cast<std::uint32_t>(out.ids.size());
    if (room == 0 || add_tokens(out, row_, room) == 0)
      break;
    if (done_tokens_ == in_->rows[row_].token_count) {
      ++row_;
      done_tokens_ = 0;
    }
  }
  split_units(out);
  return !out.ids.empty();
}

/// Takes tokens of the row as far as there is room for them and for their ends.
std::uint32_t wave_cutter::add_tokens(wave& out, std::size_t row_number, std::uint32_t room) {
  const step_row& row = in_->rows[row_number];
  const std::uint32_t unanswered = row.token_count - row.answered_positions;
  const auto ends_room = limits_.ends_max - static_cast<std::uint32_t>(out.ends.size());
  const std::uint32_t until = std::min(
      {row.token_count, done_tokens_ + room, std::max(unanswered, done_tokens_) + ends_room});
  const std::uint32_t count = until - done_tokens_;
  if (count == 0)
    return 0;
  const std::uint32_t first_token = static_cast<std::uint32_t>(out.ids.size());
  const std::uint32_t position = row.start_position + done_tokens_;
  const auto table = signed_of(out.tables.size());
  const std::uint32_t blocks =
      (row.start_position + until + limits::block_tokens - 1) / limits::block_tokens;
  for (std::uint32_t i = 0; i < blocks; ++i)
    out.tables.push_back(static_cast<std::int32_t>(in_->block_tables[row.block_offset + i]));
  const std::size_t biases = out.tables.size();
  if (until > unanswered)
    append(out.tables, row.sampling.biases);
  for (; done_tokens_ < until; ++done_tokens_) {
    const std::uint32_t at = row.start_position + done_tokens_;
    const block_id block = in_->block_tables[row.block_offset + at / limits::block_tokens];
    out.ids.push_back(in_->tokens[row.token_offset + done_tokens_]);
    out.positions.push_back(static_cast<std::int32_t>(at));
    out.slots.push_back(
        static_cast<std::int32_t>(block * limits::block_tokens + at % limits::block_tokens));
    out.tables_of.push_back(table);
    if (done_tokens_ >= unanswered)
      add_end(out, row_number, static_cast<std::uint32_t>(out.ids.size()) - 1, biases);
  }
  plan_attention(out, first_token, count, position, static_cast<std::uint32_t>(table));
  return count;
}

/// `biases`: where the row's are in the tables.
void wave_cutter::add_end(wave& out, std::size_t row_number, std::uint32_t token,
                          std::size_t biases) {
  const step_row& row = in_->rows[row_number];
  const sampling_params& s = row.sampling;
  const bool is_last = done_tokens_ + 1 == row.token_count;
  const auto position = static_cast<std::uint32_t>(out.positions[token]);
  const std::uint32_t answered =
      position - (row.start_position + row.token_count - row.answered_positions);
  draw_order order{
      .token = static_cast<std::int32_t>(token),
      .temperature = s.temperature,
      .top_k = static_cast<std::int32_t>(std::min(s.top_k, vocab_legal_tokens_)),
      .top_p = s.top_p,
      .min_p = s.min_p,
      .uniform = s.temperature > 0 ? uniform_draw(s.seed, row.sample_stream, position + 1) : 0.0f,
      .signals = row.signals,
      .mix_weight = 0,
      .mix = -1,
      .distribution = -1,
      .scored = scored_token(*in_, row, answered),
      .likeliest = static_cast<std::int32_t>(row.likeliest_count),
      .biases = signed_of(biases),
      .bias_count = signed_of(s.biases.size()),
      .window_start = signed_of(row.window_start_position)};
  out.has_biases = out.has_biases || !s.biases.empty();
  out.tells_likeliest = out.tells_likeliest || row.likeliest_count > 0;
  if (is_last && row.mix_weight > 0) {
    order.mix_weight = row.mix_weight;
    order.mix = static_cast<std::int32_t>(row.mix_offset);
    out.answers_whole = true;
  }
  if (is_last && has(row.signals, signal::distribution)) {
    order.distribution = static_cast<std::int32_t>(next_distribution_);
    next_distribution_ += vocab_legal_tokens_;
    out.answers_whole = true;
  }
  out.orders.push_back(order);
  out.ends.push_back({row_number, is_last ? wave_end::last : next_earlier_++});
}

void wave_cutter::plan_attention(wave& out, std::uint32_t first_token, std::uint32_t count,
                                 std::uint32_t position, std::uint32_t table) {
  if (!attention_.fast && (!attention_.pieces || count > unit_row_tokens_max))
    return;
  if (count > unit_row_tokens_max) {
    for (std::uint32_t i = 0; i < count; i += attention_.tile_tokens)
      out.tiles.push_back({signed_of(first_token + i),
                           signed_of(std::min(count - i, attention_.tile_tokens)),
                           signed_of(position + i), signed_of(table)});
    return;
  }
  for (std::uint32_t i = 0; i < count; i += attention_.unit_tokens) {
    const std::uint32_t tokens = std::min(attention_.unit_tokens, count - i);
    const std::uint32_t blocks =
        (position + i + tokens + limits::block_tokens - 1) / limits::block_tokens;
    out.pieces.push_back({.first_token = signed_of(first_token + i),
                          .token_count = signed_of(tokens),
                          .position = signed_of(position + i),
                          .wave_position = signed_of(position),
                          .table = signed_of(table),
                          .block_begin = 0,
                          .block_end = signed_of(blocks),
                          .piece = 0,
                          .piece_count = 1,
                          .partial = 0,
                          .unit = signed_of(out.units++)});
  }
}

/// Cuts units, which `pieces` holds whole until here, so that every processor has work and none
/// much more than others.
void wave_cutter::split_units(wave& out) const {
  std::ranges::stable_sort(out.tiles, std::greater{},
                           [](const attention_tile& t) { return t.position; });
  const std::uint32_t size = piece_size(out.pieces, attention_);
  const std::size_t units = out.pieces.size();
  for (std::size_t u = 0; u < units; ++u) {
    const attention_piece unit = out.pieces[u];
    const std::uint32_t blocks = blocks_of(unit);
    const std::uint32_t count = pieces_of(unit, size);
    for (std::uint32_t i = 0; i < count; ++i) {
      attention_piece piece = unit;
      piece.block_begin = signed_of(blocks * i / count);
      piece.block_end = signed_of(blocks * (i + 1) / count);
      piece.piece = signed_of(i);
      piece.piece_count = signed_of(count);
      piece.partial = signed_of(out.partials);
      if (i == 0)
        out.pieces[u] = piece;
      else
        out.pieces.push_back(piece);
    }
    out.partials += count > 1 ? count : 0;
  }
}

std::uint32_t pieces_max(std::uint32_t tokens, const attention_plan& attention) {
  return tokens + pieces_wanted_max(attention);
}

std::uint32_t partials_max(const attention_plan& attention) {
  // Where rounds are counted, pieces are no more. Else, of n units with b_i blocks, those cut have
  // ceil(b_i / size) <= 2 b_i / size pieces, and the sum of b_i / size is at most half of it.
  return pieces_wanted_max(attention);
}

} // namespace tokenrouter::gpu
