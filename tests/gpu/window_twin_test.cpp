#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/exec/cpu/test_models.hpp"
#include "tests/exec/heads/head_folder.hpp"
#include "tests/gpu/gpu_sequence.hpp"
#include "tests/gpu/random_numbers.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t pool_blocks = 64;
constexpr std::uint32_t hidden = 64; ///< of abacus-xs
constexpr const char* routers = "examples/models/abacus/routers/";

/// A request whose positions from `answered_from` on are answered.
struct scored_request {
  sequence tokens;
  std::uint32_t answered_from = 0;

  bool done() const { return tokens.computed == tokens.tokens.size(); }

  /// Adds a row that runs the next `count` tokens at most.
  void add_to(step_input& in, std::uint32_t count, bool heads) {
    const std::uint32_t begin = tokens.computed;
    count = std::min(count, static_cast<std::uint32_t>(tokens.tokens.size()) - begin);
    const std::uint32_t end = begin + count, first = std::max(begin, answered_from);
    add_row(in, tokens, count, end > first);
    step_row& row = in.rows.back();
    row.answered_positions = end > first ? end - first : 0;
    row.signals = heads && row.answered_positions > 0 ? to_set(signal::heads) : 0u;
    row.window_start_position = answered_from;
  }
};

std::vector<scored_request> make_requests(std::mt19937& random) {
  std::vector<scored_request> all(5);
  block_id next = 0;
  for (auto& r : all) {
    const std::uint32_t length = 30 + below(random, 100);
    for (std::uint32_t t = 0; t < length; ++t)
      r.tokens.tokens.push_back(static_cast<token_id>(below(random, 1000)));
    r.tokens.blocks = blocks_for(length, next);
    next += static_cast<block_id>(r.tokens.blocks.size());
    std::ranges::shuffle(r.tokens.blocks, random);
    r.answered_from = below(random, 20);
  }
  return all;
}

load_options with_heads(compute_type compute, std::vector<head_spec> heads) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-xs";
  options.compute = compute;
  options.heads = std::move(heads);
  return options;
}

/// Score differences of positions whose tokens are equal.
struct differences {
  std::size_t count = 0;
  double worst = 0, sum = 0, low = 1, high = 0;

  void add(const step_row_output& wanted, const step_row_output& found, std::size_t heads) {
    if (wanted.token != found.token)
      return;
    for (std::size_t i = 0; i < heads; ++i) {
      const double off = std::abs(double{wanted.head_scores[i]} - double{found.head_scores[i]});
      worst = std::isnan(off) ? INFINITY : std::max(worst, off);
      sum += off;
      ++count;
    }
    low = std::min(low, double{wanted.head_scores[0]});
    high = std::max(high, double{wanted.head_scores[0]});
  }
};

/// Runs the same steps on the CPU and on the GPU: prompts in chunks, decodes, and rows with several
/// answered positions; some rows ask for no scores, and are read in later windows all the same.
differences compare(const load_options& options, bool graphs, bool one_kernel = false) {
  const auto here = load(options, pool_blocks);
  const auto there = load_on_gpu(options, pool_blocks, graphs, one_kernel);
  std::mt19937 random(5);
  auto requests = make_requests(random);
  differences result;
  while (!std::ranges::all_of(requests, &scored_request::done)) {
    step_input in;
    for (auto& r : requests)
      if (!r.done() && below(random, 4) > 0)
        r.add_to(in, below(random, 2) == 0 ? 1 : 1 + below(random, 20), below(random, 4) > 0);
    if (in.rows.empty())
      continue;
    step_output wanted, found;
    here->step(in, wanted);
    there->step(in, found);
    std::size_t earlier = 0;
    for (std::size_t i = 0; i < in.rows.size(); ++i) {
      for (std::uint32_t k = 1; k < in.rows[i].answered_positions; ++k, ++earlier)
        result.add(wanted.earlier[earlier], found.earlier[earlier], options.heads.size());
      if (in.rows[i].answered_positions > 0)
        result.add(wanted.rows[i], found.rows[i], options.heads.size());
    }
  }
  return result;
}

} // namespace

BOOST_AUTO_TEST_CASE(heads_with_a_window_score_as_on_the_cpu) {
  const head_folder folder;
  head_spec random = folder.write("r2r_multi", random_r2r(4, hidden, 4 * 5), "{}");
  random.window_positions = 4;
  const head_spec multi{"r2r_multi", std::string(routers) + "r2r_multi.safetensors", 3, -1};
  const head_spec single{"r2r", std::string(routers) + "r2r.safetensors", 1, -1};
  for (const bool graphs : {false, true})
    for (const auto& heads : {std::vector{random}, std::vector{multi}, std::vector{multi, single},
                              std::vector{single, random, multi}}) {
      const auto r = compare(with_heads(compute_type::float32, heads), graphs);
      BOOST_TEST_MESSAGE(heads.size()
                         << " heads, graphs " << graphs << ": worst " << r.worst << " of "
                         << r.count << ", scores " << r.low << " to " << r.high);
      BOOST_TEST(r.count > 200u);
      BOOST_TEST(r.high - r.low > 0.01); // not a flat head
      BOOST_TEST(r.worst < 5e-4);
    }
}

BOOST_AUTO_TEST_CASE(in_bfloat16_heads_with_a_window_score_nearly_as_on_the_cpu) {
  const head_spec multi{"r2r_multi", std::string(routers) + "r2r_multi.safetensors", 3, -1};
  for (const bool one_kernel : {false, true}) {
    const auto r = compare(with_heads(compute_type::bfloat16, {multi}), true, one_kernel);
    const double mean = r.sum / static_cast<double>(r.count);
    BOOST_TEST_MESSAGE("one kernel " << one_kernel << ": mean " << mean << ", worst " << r.worst
                                     << " of " << r.count);
    BOOST_TEST(r.count > 200u);
    BOOST_TEST(mean < 0.02);
    BOOST_TEST(std::isfinite(r.worst));
  }
}

BOOST_AUTO_TEST_CASE(blocks_with_records_are_attended_as_those_without) {
  const model_shape shape{.hidden = 128,
                          .mlp = 256,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 128,
                          .vocab = 1000};
  const scratch_folder model_folder;
  write_random_model(model_folder.path(), shape, 3);
  const head_folder folder;
  load_options options;
  options.model_path = model_folder.path();
  const auto plain = load_on_gpu(options, pool_blocks);
  // 133 floats of a position: no whole rows of a head in a block's.
  options.heads = {folder.write("r2r_multi", random_r2r(3, shape.hidden, 3 * 5), "{}")};
  options.heads[0].window_positions = 3;
  const auto with = load_on_gpu(options, pool_blocks);
  std::mt19937 random(13);
  auto requests = make_requests(random);
  double worst = 0;
  while (!std::ranges::all_of(requests, &scored_request::done)) {
    step_input in;
    for (auto& r : requests)
      if (!r.done())
        r.add_to(in, below(random, 2) == 0 ? 1 : 40, true);
    for (auto& row : in.rows) { // what a step was made of is shown of one position of each
      row.answered_positions = 1;
      row.window_start_position = row.start_position + row.token_count - 1;
    }
    const auto wanted = run_on_gpu(*plain, in), found = run_on_gpu(*with, in);
    for (const auto& [row, record] : wanted)
      worst = std::max({worst, distance(found.at(row).logits, record.logits),
                        distance(found.at(row).hidden, record.hidden)});
  }
  BOOST_TEST_MESSAGE("worst " << worst);
  BOOST_TEST(worst < 2e-2);
}

BOOST_AUTO_TEST_CASE(records_of_windows_go_where_the_blocks_of_their_positions_go) {
  const head_spec multi{"r2r_multi", std::string(routers) + "r2r_multi.safetensors", 3, -1};
  const auto options = with_heads(compute_type::float32, {multi});
  const auto model = load_on_gpu(options, pool_blocks);
  const auto score = [](backend& b, scored_request r) {
    step_input in;
    r.add_to(in, 1, true);
    step_output out;
    b.step(in, out);
    return out.rows[0].head_scores[0];
  };
  std::mt19937 random(9);
  auto request = make_requests(random)[0];
  step_input in;
  request.add_to(in, 29, false); // inside a block, so that a window spans what is moved
  step_output out;
  model->step(in, out);
  const float wanted = score(*model, request);
  auto moved = request;
  std::vector<block_copy> copies;
  for (auto& block : moved.tokens.blocks) {
    copies.push_back({block, block + 32});
    block += 32;
  }
  model->copy_blocks(copies);
  BOOST_TEST(score(*model, moved) == wanted);
  const auto other = load_on_gpu(options, pool_blocks);
  std::vector<std::byte> bytes(model->facts().kv_bytes_per_block);
  for (const block_id block : request.tokens.blocks) {
    model->export_blocks(std::array{block_id{block}}, bytes);
    other->import_blocks(std::array{block_id{block}}, bytes);
  }
  BOOST_TEST(std::abs(score(*other, request) - wanted) < 1e-5);
  BOOST_TEST(estimate_cuda_memory(options).value().kv_bytes_per_block == bytes.size());
}
