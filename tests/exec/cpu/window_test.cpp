#include <algorithm>
#include <array>
#include <random>

#include <boost/test/unit_test.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/exec/cpu/debug.hpp"
#include "runtime/exec/safetensors.hpp"
#include "runtime/exec/signals.hpp"
#include "tests/exec/cpu/test_sequence.hpp"
#include "tests/exec/heads/head_folder.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t window = 3;
constexpr std::uint32_t top = 5; ///< logits of a position
constexpr std::uint32_t hidden = 64;
constexpr std::uint32_t length = 40;
constexpr std::uint32_t pool_blocks = 24;
constexpr std::uint32_t answered_from = 12; ///< of the sequences below, unless said

/// xs with a random head over three positions, and one sequence with the score of each position
/// by the head's definition, from what the backend shows of that position.
struct fixture {
  head_folder folder;
  load_options options;
  std::vector<token_id> tokens;
  std::vector<float> wanted; ///< of answered_from … length − 1
  std::unique_ptr<backend> model;

  fixture() {
    options.model_path = "examples/models/abacus/abacus-xs";
    options.heads.push_back(
        folder.write("r2r_multi", random_r2r(window, hidden, window * top), "{}"));
    options.heads.back().window_positions = window;
    std::mt19937 random(7);
    for (std::uint32_t i = 0; i < length; ++i)
      tokens.push_back(static_cast<token_id>(random() % 1000));
    model = load(options, pool_blocks);
    cpu::poison(*model);
    wanted = score_by_definition();
  }

  sequence request(block_id first_block, block_id step = 1) const {
    return {tokens, blocks_for(length, first_block, step), 0};
  }

  /// A row that runs the next `count` tokens, those from answered_from on answered.
  static void add(step_input& in, sequence& s, std::uint32_t count) {
    const std::uint32_t end = s.computed + count;
    const std::uint32_t first = std::max(s.computed, answered_from);
    add_row(in, s, count, end > answered_from);
    auto& row = in.rows.back();
    row.answered_positions = end > first ? end - first : 0;
    row.signals = row.answered_positions > 0 ? to_set(signal::heads) : 0u;
    row.window_start_position = answered_from;
  }

  /// Scores of all answered positions of a step with one row.
  std::vector<float> run(const step_input& in) const {
    step_output out;
    model->step(in, out);
    std::vector<float> scores;
    for (const auto& earlier : out.earlier)
      scores.push_back(earlier.head_scores[0]);
    if (in.rows.back().answered_positions > 0)
      scores.push_back(out.rows.back().head_scores[0]);
    return scores;
  }

  /// Runs the rest of `s` in chunks, alone.
  std::vector<float> run_all(sequence& s, std::uint32_t chunk_tokens) const {
    std::vector<float> scores;
    while (s.computed < length) {
      step_input in;
      add(in, s, std::min(chunk_tokens, length - s.computed));
      const auto more = run(in);
      scores.insert(scores.end(), more.begin(), more.end());
    }
    return scores;
  }

  std::vector<float> score_by_definition() const {
    const auto head = load_head(options.heads[0], hidden).value();
    const auto files = weight_files::open(options.model_path).value();
    const auto embeddings = to_float(*files.find("model.embed_tokens.weight"));
    std::vector<std::vector<float>> records(window - 1, std::vector<float>(hidden + top));
    cpu::tap_rows(*model, [&](std::size_t, auto state, auto logits) {
      std::vector<float> largest;
      top_logits(logits, top, largest);
      records.emplace_back(state.begin(), state.end());
      records.back().insert(records.back().end(), largest.begin(), largest.end());
    });
    auto s = request(0);
    step_input in;
    add(in, s, length);
    step_output out;
    model->step(in, out);
    cpu::tap_rows(*model, {});
    out.earlier.push_back(out.rows[0]);
    std::vector<float> scores;
    for (std::size_t i = 0; i < out.earlier.size(); ++i) {
      std::vector<float> seen;
      for (std::size_t w = 0; w < window; ++w)
        seen.insert(seen.end(), records[i + w].begin(), records[i + w].end());
      const auto proposed = static_cast<std::size_t>(out.earlier[i].token);
      scores.push_back(head->score(
          {.hidden = {},
           .proposed_embedding = std::span(embeddings).subspan(proposed * hidden, hidden),
           .top_logits = {},
           .window = seen}));
    }
    return scores;
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(window_of_heads, fixture)

BOOST_AUTO_TEST_CASE(a_head_sees_the_last_positions_of_its_request_and_zeros_before_them) {
  BOOST_REQUIRE(wanted.size() == length - answered_from);
  const auto [low, high] = std::ranges::minmax(wanted);
  BOOST_TEST(high - low > 0.01f); // not a flat head
  auto s = request(4);
  BOOST_TEST(same_bits(run_all(s, length), wanted));
}

BOOST_AUTO_TEST_CASE(a_window_is_the_same_for_every_cut_of_its_request) {
  for (const std::uint32_t chunk : {1u, 2u, 3u, 7u, 13u, 15u, 16u, 17u, 33u}) {
    cpu::poison(*model);
    auto s = request(6, 3);
    BOOST_TEST(same_bits(run_all(s, chunk), wanted), "chunks of " << chunk);
  }
}

BOOST_AUTO_TEST_CASE(a_window_is_the_same_in_every_batch_and_for_one_to_three_threads) {
  for (std::uint32_t threads = 1; threads <= 3; ++threads) {
    options.threads = threads;
    model = load(options, pool_blocks);
    cpu::poison(*model);
    auto s = request(1, 4), before = request(0, 4), after = request(2, 4);
    std::ranges::reverse(before.tokens);
    std::ranges::rotate(after.tokens, after.tokens.begin() + 5);
    std::vector<float> scores;
    for (const std::uint32_t count : {5u, 9u, 1u, 20u, 1u, 4u}) {
      step_input in;
      add(in, before, count);
      add(in, s, count);
      add(in, after, count);
      step_output out;
      model->step(in, out);
      const std::uint32_t answered = in.rows[1].answered_positions;
      for (std::uint32_t i = 1; i < answered; ++i)
        scores.push_back(out.earlier[answered - 1 + i - 1].head_scores[0]);
      if (answered > 0)
        scores.push_back(out.rows[1].head_scores[0]);
    }
    BOOST_TEST(same_bits(scores, wanted), threads << " threads");
  }
}

BOOST_AUTO_TEST_CASE(records_go_where_the_blocks_of_their_positions_go) {
  const std::uint32_t cut = 30; // inside a block, so that the window spans the copies
  const auto before = std::vector<float>(wanted.begin() + (cut - answered_from), wanted.end());
  auto s = request(0);
  step_input in;
  add(in, s, cut);
  run(in);
  // Copied by a step of its own request; the originals are then written by another.
  auto copied = s;
  copied.blocks = blocks_for(length, 10, 2);
  in.clear();
  for (std::size_t i = 0; i < s.blocks.size(); ++i)
    in.copies.push_back({s.blocks[i], copied.blocks[i]});
  add(in, copied, 1);
  const auto first = run(in);
  BOOST_TEST(same_bits(first, {before.front()}));
  auto other = request(0);
  std::ranges::reverse(other.tokens);
  run_all(other, length);
  const auto rest = run_all(copied, 4);
  BOOST_TEST(same_bits(rest, std::vector<float>(before.begin() + 1, before.end())));
  // Shipped to another backend.
  auto shipped = request(3);
  in.clear();
  add(in, shipped, cut);
  run(in);
  const auto from = std::move(model);
  model = load(options, pool_blocks);
  cpu::poison(*model);
  std::vector<std::byte> bytes(model->facts().kv_bytes_per_block);
  for (const block_id block : shipped.blocks) {
    from->export_blocks(std::array{block_id{block}}, bytes);
    model->import_blocks(std::array{block_id{block + 5}}, bytes);
  }
  for (auto& block : shipped.blocks)
    block += 5;
  BOOST_TEST(same_bits(run_all(shipped, 1), before));
}

BOOST_AUTO_TEST_CASE(a_window_that_starts_later_reads_nothing_before) {
  auto s = request(0);
  step_input in;
  add(in, s, 30);
  run(in);
  auto again = s;
  in.clear();
  add(in, s, 1);
  const auto whole = run(in);
  in.clear();
  add(in, again, 1);
  in.rows[0].window_start_position = 29;
  BOOST_TEST(!same_bits(run(in), whole));
  // The prompt's positions are not answered, and so not looked at.
  cpu::poison(*model);
  auto late = request(8);
  late.tokens[3] = 5;
  in.clear();
  add(in, late, 20);
  in.rows[0].answered_positions = 1;
  in.rows[0].window_start_position = 19;
  const auto alone = run(in);
  BOOST_REQUIRE(alone.size() == 1u);
  BOOST_TEST(alone[0] == alone[0]);
}

BOOST_AUTO_TEST_CASE(memory_is_taken_only_for_heads_with_a_window_and_is_in_the_estimate) {
  const std::uint64_t with = model->facts().kv_bytes_per_block;
  BOOST_TEST(estimate_cpu_memory(options).value().kv_bytes_per_block == with);
  load_options plain = options;
  plain.heads.clear();
  const std::uint64_t without = estimate_cpu_memory(plain).value().kv_bytes_per_block;
  BOOST_TEST(make_cpu_backend(plain).value()->facts().kv_bytes_per_block == without);
  BOOST_TEST(with - without == limits::block_tokens * (hidden + top) * sizeof(float));
  plain.heads = {{"r2r", "examples/models/abacus/routers/r2r.safetensors"}};
  BOOST_TEST(estimate_cpu_memory(plain).value().kv_bytes_per_block == without);
}

BOOST_AUTO_TEST_SUITE_END()
