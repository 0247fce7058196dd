#include <bit>
#include <random>
#include <set>

#include <boost/test/unit_test.hpp>

#include "gpu/wave_plan.hpp"
#include "runtime/core/limits.hpp"
#include "tests/gpu/random_numbers.hpp"

using namespace tokenrouter;
using namespace tokenrouter::gpu;
using namespace tokenrouter::test;

namespace {

struct row_wish {
  std::uint32_t start_position;
  std::uint32_t tokens;
  std::uint32_t answered;
};

/// Row i gets blocks from 1000 · i on and tokens that tell row and position.
step_input make_step(const std::vector<row_wish>& wishes) {
  step_input in;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const auto& wish = wishes[i];
    step_row row;
    row.token_offset = static_cast<std::uint32_t>(in.tokens.size());
    row.token_count = wish.tokens;
    row.start_position = wish.start_position;
    row.block_offset = static_cast<std::uint32_t>(in.block_tables.size());
    row.block_count = (wish.start_position + wish.tokens + 15) / 16;
    row.answered_positions = wish.answered;
    for (std::uint32_t t = 0; t < wish.tokens; ++t)
      in.tokens.push_back(static_cast<token_id>(100000 * i + wish.start_position + t));
    for (std::uint32_t b = 0; b < row.block_count; ++b)
      in.block_tables.push_back(static_cast<block_id>(1000 * i + b));
    in.rows.push_back(row);
  }
  return in;
}

attention_plan plan_for(std::uint32_t unit_tokens, std::uint32_t kv_heads = 8) {
  return {.fast = true, .unit_tokens = unit_tokens, .kv_heads = kv_heads, .processors = 132};
}

std::vector<wave> cut(const step_input& in, const wave_limits& limits, const attention_plan& plan) {
  wave_cutter cutter(in, limits, plan, 50);
  std::vector<wave> waves;
  for (wave w; cutter.next(w);)
    waves.push_back(w);
  return waves;
}

/// Every token of a wave is attended by exactly one tile or unit, the pieces of a unit cover its
/// blocks once and in order, and all is within the stated bounds.
void expect_attention_covers(const wave& w, const attention_plan& plan) {
  std::vector<int> covered(w.ids.size(), 0);
  for (const auto& tile : w.tiles) {
    BOOST_TEST(tile.token_count <= static_cast<int>(plan.tile_tokens));
    for (int i = 0; i < tile.token_count; ++i) {
      ++covered[tile.first_token + i];
      BOOST_TEST(w.positions[tile.first_token + i] == tile.position + i);
      BOOST_TEST(w.tables_of[tile.first_token + i] == tile.table);
    }
  }
  std::map<int, std::vector<attention_piece>> units;
  for (const auto& piece : w.pieces)
    units[piece.unit].push_back(piece);
  std::set<int> partials;
  for (auto& [unit, pieces] : units) {
    std::ranges::sort(pieces, {}, &attention_piece::piece);
    const auto& first = pieces.front();
    // Of the request's first token in this wave: keys before it are there, later ones may not be.
    const auto* begin = &w.tables_of[first.first_token];
    while (begin != w.tables_of.data() && begin[-1] == *begin)
      --begin;
    BOOST_TEST(first.wave_position == w.positions[begin - w.tables_of.data()]);
    BOOST_TEST(first.token_count <= static_cast<int>(plan.unit_tokens));
    for (int i = 0; i < first.token_count; ++i) {
      ++covered[first.first_token + i];
      BOOST_TEST(w.positions[first.first_token + i] == first.position + i);
    }
    int next = 0;
    for (const auto& piece : pieces) {
      BOOST_TEST(piece.block_begin == next);
      BOOST_TEST(piece.block_end > piece.block_begin);
      BOOST_TEST(piece.piece_count == static_cast<int>(pieces.size()));
      next = piece.block_end;
      if (piece.piece_count > 1)
        BOOST_TEST(partials.insert(piece.partial + piece.piece).second);
    }
    BOOST_TEST(next == (first.position + first.token_count + 15) / 16);
  }
  for (const int times : covered)
    BOOST_TEST(times == 1);
  BOOST_TEST(w.pieces.size() <= pieces_max(static_cast<std::uint32_t>(w.ids.size()), plan));
  BOOST_TEST(w.partials <= partials_max(plan));
  if (!partials.empty())
    BOOST_TEST(*partials.rbegin() < static_cast<int>(w.partials));
}

} // namespace

BOOST_AUTO_TEST_CASE(decoding_rows_make_one_wave_with_an_end_for_each) {
  auto in = make_step({{7, 1, 1}, {100, 1, 1}, {31, 1, 1}});
  in.rows[1].window_start_position = 90;
  const auto waves = cut(in, {}, plan_for(8));
  BOOST_REQUIRE_EQUAL(waves.size(), 1u);
  const wave& w = waves.front();
  BOOST_TEST(w.ids == (std::vector<std::int32_t>{7, 100100, 200031}),
             boost::test_tools::per_element());
  BOOST_TEST(w.positions == (std::vector<std::int32_t>{7, 100, 31}),
             boost::test_tools::per_element());
  BOOST_TEST(w.slots == (std::vector<std::int32_t>{7, 1006 * 16 + 4, 2001 * 16 + 15}),
             boost::test_tools::per_element());
  BOOST_REQUIRE_EQUAL(w.orders.size(), 3u);
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(w.orders[i].token == i);
  BOOST_TEST(w.orders[0].window_start == 0);
  BOOST_TEST(w.orders[1].window_start == 90);
  BOOST_TEST(w.tables.size() == 1u + 7u + 2u);
  expect_attention_covers(w, plan_for(8));
}

BOOST_AUTO_TEST_CASE(a_long_context_is_cut_so_that_every_processor_has_work) {
  const auto plan = plan_for(8);
  const auto waves = cut(make_step({{32767, 1, 1}}), {}, plan);
  BOOST_TEST(waves.front().pieces.size() >= 33u);
  expect_attention_covers(waves.front(), plan);
}

BOOST_AUTO_TEST_CASE(a_full_batch_of_long_contexts_is_hardly_cut) {
  const auto plan = plan_for(2);
  const auto waves = cut(make_step(std::vector<row_wish>(64, {4095, 1, 1})), {}, plan);
  BOOST_TEST(waves.front().pieces.size() <= 64u + 66u);
  expect_attention_covers(waves.front(), plan);
}

/// Time of the busiest of the places that pieces are dealt to in turn, in blocks, beside that of an
/// even share in one piece.
double busiest_share(const wave& w, const attention_plan& plan) {
  constexpr double start = 13;
  std::vector<double> places(2 * plan.processors);
  double total = 0;
  std::size_t next = 0;
  for (const auto& piece : w.pieces)
    for (std::uint32_t head = 0; head < plan.kv_heads; ++head) {
      places[next++ % places.size()] += start + piece.block_end - piece.block_begin;
      total += piece.block_end - piece.block_begin;
    }
  return *std::ranges::max_element(places) / (start + total / static_cast<double>(places.size()));
}

BOOST_AUTO_TEST_CASE(no_processor_gets_much_more_than_its_share) {
  const auto plan = plan_for(2);
  for (const std::uint32_t rows : {1u, 4u, 8u, 12u, 16u, 24u, 32u, 48u, 64u})
    for (const std::uint32_t context : {1024u, 3000u, 8192u}) {
      const auto waves = cut(make_step(std::vector<row_wish>(rows, {context - 1, 1, 1})), {}, plan);
      BOOST_TEST_CONTEXT(rows << " rows of " << context)
      BOOST_TEST(busiest_share(waves.front(), plan) < 1.4);
      expect_attention_covers(waves.front(), plan);
    }
}

BOOST_AUTO_TEST_CASE(a_prompt_longer_than_a_wave_goes_on_in_the_next_and_is_answered_once) {
  const auto waves =
      cut(make_step({{0, 1, 1}, {16, 300, 1}}), {.tokens_max = 128, .ends_max = 8}, plan_for(8));
  BOOST_REQUIRE_EQUAL(waves.size(), 3u);
  std::vector<std::int32_t> ids;
  std::size_t ends = 0;
  for (const auto& w : waves) {
    ids.insert(ids.end(), w.ids.begin(), w.ids.end());
    ends += w.ends.size();
    expect_attention_covers(w, plan_for(8));
  }
  BOOST_REQUIRE_EQUAL(ids.size(), 301u);
  for (int i = 0; i < 300; ++i)
    BOOST_TEST(ids[1 + i] == 100016 + i);
  BOOST_TEST(ends == 2u);
  BOOST_TEST(waves[2].ends.front().row == 1u);
}

BOOST_AUTO_TEST_CASE(answered_positions_are_numbered_over_all_waves) {
  const auto waves = cut(make_step({{0, 10, 4}, {0, 3, 3}, {5, 1, 1}}),
                         {.tokens_max = 64, .ends_max = 3}, plan_for(8));
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  for (const auto& w : waves) {
    BOOST_TEST(w.ends.size() <= 3u);
    for (std::size_t i = 0; i < w.ends.size(); ++i) {
      ends.emplace_back(w.ends[i].row, w.ends[i].earlier);
      BOOST_TEST(w.ids[w.orders[i].token] % 100000 >= 0);
    }
  }
  const auto last = wave_end::last;
  const std::vector<std::pair<std::size_t, std::size_t>> wanted{
      {0, 0}, {0, 1}, {0, 2}, {0, last}, {1, 3}, {1, 4}, {1, last}, {2, last}};
  BOOST_TEST((ends == wanted));
}

BOOST_AUTO_TEST_CASE(biases_stand_behind_the_blocks_of_their_row_where_it_is_answered) {
  auto in = make_step({{0, 40, 3}, {0, 5, 1}, {90, 1, 1}});
  in.rows[0].sampling.biases = {{3, -100.0f}, {7, 0.5f}};
  in.rows[2].sampling.biases = {{1, 2.0f}};
  const auto waves = cut(in, {.tokens_max = 38, .ends_max = 8}, plan_for(8));
  BOOST_REQUIRE_EQUAL(waves.size(), 2u); // 38 tokens of row 0; 2 more and the others
  const auto biases_of = [](const wave& w, const draw_order& order) {
    std::vector<logit_bias> found;
    for (int i = 0; i < order.bias_count; ++i) {
      const auto* one = w.tables.data() + order.biases + 2 * i;
      found.push_back({one[0], std::bit_cast<float>(one[1])});
    }
    return found;
  };
  std::size_t rows[] = {0, 0, 0, 1, 2}, end = 0;
  for (const auto& w : waves) {
    BOOST_TEST(w.has_biases);
    for (const auto& order : w.orders)
      BOOST_TEST((biases_of(w, order) == in.rows[rows[end++]].sampling.biases));
  }
  BOOST_TEST(end == std::size(rows));
  BOOST_TEST(waves[0].tables.size() == 3u + 4u);
  BOOST_TEST(waves[1].tables.size() == 3u + 4u + 1u + 6u + 2u);
}

BOOST_AUTO_TEST_CASE(a_chunk_that_is_not_answered_takes_no_biases_along) {
  auto in = make_step({{0, 40, 0}});
  in.rows[0].sampling.biases = {{3, -100.0f}};
  const auto waves = cut(in, {}, plan_for(8));
  BOOST_TEST(!waves.front().has_biases);
  BOOST_TEST(waves.front().tables.size() == 3u);
}

BOOST_AUTO_TEST_CASE(random_steps_are_covered_once_whatever_the_limits) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<row_wish> wishes(1 + below(random, 40));
    std::size_t tokens = 0, answers = 0;
    for (auto& wish : wishes) {
      wish.tokens = below(random, 3) == 0 ? 1 + below(random, 200) : 1 + below(random, 8);
      wish.start_position = below(random, 900);
      wish.answered = below(random, std::min(wish.tokens, 5u) + 1);
      tokens += wish.tokens;
      answers += wish.answered;
    }
    const auto in = make_step(wishes);
    const auto plan = plan_for(1u << below(random, 5), 1 + below(random, 8));
    const wave_limits limits{16 + below(random, 500), 1 + below(random, 40)};
    for (const auto& w : cut(in, limits, plan)) {
      expect_attention_covers(w, plan);
      BOOST_TEST(w.ids.size() <= limits.tokens_max);
      tokens -= w.ids.size();
      answers -= w.ends.size();
      for (std::size_t i = 0; i < w.ids.size(); ++i) {
        const auto table = w.tables[w.tables_of[i] + w.positions[i] / 16];
        BOOST_TEST(w.slots[i] == table * 16 + w.positions[i] % 16);
        BOOST_TEST(w.ids[i] % 100000 == w.positions[i]);
      }
    }
    BOOST_TEST(tokens == 0u);
    BOOST_TEST(answers == 0u);
  }
}
