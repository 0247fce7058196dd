#include <algorithm>
#include <array>
#include <random>

#include <boost/test/unit_test.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/exec/cpu/debug.hpp"
#include "tests/exec/cpu/test_models.hpp"
#include "tests/exec/cpu/test_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t pool_blocks = 256;

load_options abacus(compute_type compute = compute_type::bfloat16) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-s";
  options.compute = compute;
  return options;
}

std::vector<token_id> random_tokens(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<token_id> tokens(count);
  for (auto& token : tokens)
    token = static_cast<token_id>(random() % 1019);
  return tokens;
}

row_record alone(backend& model, const std::vector<token_id>& tokens, block_id first_block) {
  sequence s{tokens, blocks_for(static_cast<std::uint32_t>(tokens.size()) + 16, first_block), 0};
  return finish_prompt(model, s);
}

bool same(const row_record& a, const row_record& b) {
  return same_bits(a.hidden, b.hidden) && same_bits(a.logits, b.logits) &&
         a.out.token == b.out.token && a.out.entropy_nats == b.out.entropy_nats;
}

} // namespace

BOOST_AUTO_TEST_CASE(suffixes_after_a_cached_prefix_get_the_hidden_state_of_their_own_request) {
  const auto model = load(abacus(), pool_blocks);
  const auto prefix = random_tokens(48, 1);
  sequence warm{prefix, blocks_for(48, 0), 0};
  finish_prompt(*model, warm);
  step_input in;
  std::vector<std::vector<token_id>> prompts;
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto prompt = prefix;
    const auto suffix = random_tokens(3 + 5 * i, 50 + i);
    prompt.insert(prompt.end(), suffix.begin(), suffix.end());
    sequence s{prompt, warm.blocks, 48};
    const auto own = blocks_for(32, 10 + 4 * i);
    s.blocks.insert(s.blocks.end(), own.begin(), own.end());
    add_row(in, s, static_cast<std::uint32_t>(suffix.size()), true);
    prompts.push_back(prompt);
  }
  const auto records = run(*model, in);
  for (std::uint32_t i = 0; i < 4; ++i)
    BOOST_TEST(same(records.at(i), alone(*model, prompts[i], 100)), "suffix " << i);
}

BOOST_AUTO_TEST_CASE(large_prompts_in_chunks_lose_no_row) {
  const auto model = load(abacus(), 2048);
  std::vector<sequence> sequences;
  for (std::uint32_t i = 0; i < 16; ++i)
    sequences.push_back({random_tokens(1500, i), blocks_for(1504, i * 94), 0});
  std::vector<row_record> found(16);
  for (bool more = true; more;) {
    step_input in;
    std::vector<std::size_t> row_of;
    for (std::uint32_t i = 0; i < 16; ++i) {
      sequence& s = sequences[i];
      const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
      const std::uint32_t count = std::min(left, 700u + 10 * i);
      if (count == 0)
        continue;
      add_row(in, s, count, count == left);
      row_of.push_back(i);
    }
    more = !row_of.empty();
    if (!more)
      break;
    for (auto& [row, record] : run(*model, in))
      found[row_of[row]] = record;
  }
  for (const std::uint32_t i : {0u, 7u, 15u})
    BOOST_TEST(same(found[i], alone(*model, sequences[i].tokens, 1600)), "prompt " << i);
}

BOOST_AUTO_TEST_CASE(prefills_and_decodes_of_many_requests_mix_in_one_step) {
  for (const auto compute : {compute_type::bfloat16, compute_type::float32}) {
    const auto model = load(abacus(compute), pool_blocks);
    const auto tokens = random_tokens(90, 3);
    sequence decode{tokens, blocks_for(96, 0), 0};
    decode.tokens.resize(60);
    finish_prompt(*model, decode);
    decode.tokens = tokens;
    sequence chunk{random_tokens(64, 4), blocks_for(64, 20), 0};
    sequence prompt{random_tokens(33, 5), blocks_for(48, 40), 0};
    step_input in;
    add_row(in, chunk, 29, false);
    add_row(in, decode, 1, true);
    add_row(in, prompt, 33, true);
    const auto records = run(*model, in);
    BOOST_TEST(records.size() == 2u);
    BOOST_TEST(same(records.at(1), alone(*model, {tokens.begin(), tokens.begin() + 61}, 100)));
    BOOST_TEST(same(records.at(2), alone(*model, prompt.tokens, 100)));
    BOOST_TEST(same(finish_prompt(*model, chunk), alone(*model, chunk.tokens, 100)));
  }
}

BOOST_AUTO_TEST_CASE(more_rows_than_fit_one_pass_all_get_their_token) {
  const auto model = load(abacus(), 2048);
  step_input in;
  std::vector<sequence> sequences;
  for (std::uint32_t i = 0; i < 300; ++i) {
    sequences.push_back({random_tokens(1 + i % 5, i), blocks_for(16, i), 0});
    add_row(in, sequences.back(), 1 + i % 5, i % 7 != 0);
  }
  const auto records = run(*model, in);
  for (std::uint32_t i = 0; i < 300; i += 13) {
    BOOST_TEST(records.count(i) == (i % 7 != 0));
    if (i % 7 != 0)
      BOOST_TEST(same(records.at(i), alone(*model, sequences[i].tokens, 1000)), "row " << i);
  }
}

BOOST_AUTO_TEST_CASE(exported_imported_and_copied_blocks_continue_a_sequence) {
  for (const auto compute : {compute_type::bfloat16, compute_type::float32}) {
    const auto model = load(abacus(compute), pool_blocks);
    const auto tokens = random_tokens(70, 9);
    const auto wanted = alone(*model, tokens, 200);
    sequence start{{tokens.begin(), tokens.begin() + 69}, blocks_for(80, 0), 0};
    finish_prompt(*model, start);

    const auto other = load(abacus(compute), pool_blocks);
    cpu::poison(*other);
    std::vector<std::byte> bytes(model->facts().kv_bytes_per_block);
    sequence moved{tokens, blocks_for(80, 40, 3), 69};
    for (std::size_t i = 0; i < start.blocks.size(); ++i) {
      model->export_blocks(std::array{block_id{start.blocks[i]}}, bytes);
      other->import_blocks(std::array{block_id{moved.blocks[i]}}, bytes);
    }
    BOOST_TEST(same(finish_prompt(*other, moved), wanted));

    std::vector<block_copy> copies;
    sequence copied{tokens, blocks_for(80, 100, 2), 69};
    for (std::size_t i = 0; i < start.blocks.size(); ++i)
      copies.push_back({start.blocks[i], copied.blocks[i]});
    model->copy_blocks(copies);
    BOOST_TEST(same(finish_prompt(*model, copied), wanted));
  }
}

BOOST_AUTO_TEST_CASE(copies_run_in_the_order_given) {
  const auto model = load(abacus(), 8);
  std::vector<std::byte> a(model->facts().kv_bytes_per_block, std::byte{1});
  std::vector<std::byte> b(a.size(), std::byte{2});
  std::vector<std::byte> found(a.size());
  model->import_blocks(std::array{block_id{0}}, a);
  model->import_blocks(std::array{block_id{1}}, b);
  model->copy_blocks(std::vector<block_copy>{{0, 2}, {1, 0}, {2, 1}});
  model->export_blocks(std::array{block_id{0}}, found);
  BOOST_TEST((found == b));
  model->export_blocks(std::array{block_id{1}}, found);
  BOOST_TEST((found == a));
}

BOOST_AUTO_TEST_CASE(tokens_beyond_the_legal_vocabulary_are_never_drawn) {
  auto options = abacus();
  const auto tokens = random_tokens(20, 2);
  const auto free = load(options, 16);
  const auto wide = alone(*free, tokens, 0);
  options.vocab_legal_tokens = static_cast<std::uint32_t>(wide.out.token);
  if (options.vocab_legal_tokens == 0)
    options.vocab_legal_tokens = 1;
  const auto model = load(options, 16);
  const auto narrow = alone(*model, tokens, 0);
  BOOST_TEST(model->facts().vocab_tokens == 1024u);
  BOOST_TEST(narrow.logits.size() == options.vocab_legal_tokens);
  BOOST_TEST(narrow.out.token < static_cast<token_id>(options.vocab_legal_tokens));
  for (std::size_t i = 0; i < narrow.logits.size(); ++i)
    BOOST_TEST(narrow.logits[i] == wide.logits[i]);
}

BOOST_AUTO_TEST_CASE(heads_score_the_rows_that_ask_and_batches_do_not_change_them) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-xs";
  for (const std::string kind : {"r2r", "citer", "collm"})
    options.heads.push_back({kind, "examples/models/abacus/routers/" + kind + ".safetensors"});
  const auto model = load(options, pool_blocks);
  const auto score = [&](std::uint32_t rows, bool wanted) {
    step_input in;
    for (std::uint32_t i = 0; i < rows; ++i) {
      sequence s{random_tokens(12, i), blocks_for(16, i), 0};
      add_row(in, s, 12, true);
      in.rows.back().signals = wanted ? to_set(signal::heads) : 0u;
    }
    step_output out;
    model->step(in, out);
    return out;
  };
  const auto many = score(9, true);
  const auto one = score(1, true);
  for (std::size_t head = 0; head < 3; ++head) {
    BOOST_TEST(one.rows[0].head_scores[head] == many.rows[0].head_scores[head]);
    BOOST_TEST(one.rows[0].head_scores[head] > 0.0f);
    BOOST_TEST(one.rows[0].head_scores[head] < 1.0f);
    BOOST_TEST(many.rows[1].head_scores[head] != many.rows[2].head_scores[head]);
    BOOST_TEST(score(1, false).rows[0].head_scores[head] == 0.0f);
  }
  BOOST_TEST(one.rows[0].head_scores[3] == 0.0f);
}
