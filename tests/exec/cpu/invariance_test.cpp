#include <algorithm>
#include <random>
#include <span>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/exec/cpu/debug.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "tests/exec/cpu/test_models.hpp"
#include "tests/exec/cpu/test_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t request_count = 70;

/// A model whose dimensions are multiples of nothing, and 70 requests with their results alone.
struct fixture {
  scratch_folder folder;
  load_options options;
  model_shape shape;
  std::vector<std::vector<token_id>> prompts;
  std::vector<row_record> alone;

  explicit fixture(compute_type compute, model_shape s = {}) : shape(std::move(s)) {
    write_random_model(folder.path(), shape, 17);
    options.model_path = folder.path();
    options.compute = compute;
    std::mt19937 random(5);
    const auto model = load(options, 64);
    for (std::uint32_t i = 0; i < request_count; ++i) {
      std::vector<token_id> prompt(1 + random() % 24);
      for (auto& token : prompt)
        token = static_cast<token_id>(random() % shape.vocab);
      prompts.push_back(prompt);
      sequence one{prompt, blocks_for(48, 0), 0};
      alone.push_back(finish_prompt(*model, one));
    }
  }

  /// Request i with four blocks of its own among 70 · 4, which a permutation may rename.
  sequence request(std::uint32_t i, std::span<const block_id> renamed = {}) const {
    sequence s{prompts[i], {}, 0};
    for (block_id b = 4 * i; b < 4 * i + 4; ++b)
      s.blocks.push_back(renamed.empty() ? b : renamed[b]);
    return s;
  }

  void expect_same(const row_record& record, std::uint32_t i) const {
    BOOST_TEST(same_bits(record.hidden, alone[i].hidden), "hidden state of request " << i);
    BOOST_TEST(same_bits(record.logits, alone[i].logits), "logits of request " << i);
    BOOST_TEST(record.out.token == alone[i].out.token);
    BOOST_TEST(record.out.logprob == alone[i].out.logprob);
    BOOST_TEST(record.out.entropy_nats == alone[i].out.entropy_nats);
    BOOST_TEST(record.out.entropy_top20_nats == alone[i].out.entropy_top20_nats);
    BOOST_TEST(record.out.aleatoric == alone[i].out.aleatoric);
    BOOST_TEST(record.out.epistemic == alone[i].out.epistemic);
  }
};

constexpr compute_type both_types[] = {compute_type::bfloat16, compute_type::float32};

template <class F>
void for_each_kernel_set(F f) {
  for (const auto& name : cpu::unrunnable_kernels())
    BOOST_TEST_MESSAGE("kernels not runnable here, so not tested: " << name);
  for (const auto* table : cpu::runnable_kernels()) {
    const environment chosen("TOKENROUTER_CPU_ISA", table->name);
    BOOST_TEST_CONTEXT("kernels " << table->name) {
      f(std::string_view(table->name));
    }
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(a_row_is_the_same_in_every_batch_size_and_place) {
  for_each_kernel_set([](std::string_view kernels) {
    // Plain C++ is slow and has one tile shape less to go wrong in: it gets every ninth size.
    const std::uint32_t stride = kernels == "scalar" ? 9 : 1;
    for (const auto compute : both_types) {
      const fixture f(compute);
      const auto model = load(f.options, 4 * request_count);
      for (std::uint32_t rows = 1; rows <= request_count; rows += stride) {
        step_input in;
        std::vector<std::uint32_t> chosen;
        for (std::uint32_t i = 0; i < rows; ++i) {
          chosen.push_back((i * 29 + rows * 13) % request_count);
          auto s = f.request(chosen.back());
          add_row(in, s, static_cast<std::uint32_t>(s.tokens.size()), true);
        }
        const auto records = run(*model, in);
        for (std::uint32_t i = 0; i < rows; ++i)
          f.expect_same(records.at(i), chosen[i]);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(a_row_is_the_same_for_one_to_three_threads) {
  for (const auto compute : both_types) {
    fixture f(compute);
    for (std::uint32_t threads = 1; threads <= 3; ++threads) {
      f.options.threads = threads;
      const auto model = load(f.options, 4 * request_count);
      for (const std::uint32_t rows : {1u, 2u, 7u, request_count}) {
        step_input in;
        for (std::uint32_t i = 0; i < rows; ++i) {
          auto s = f.request(i);
          add_row(in, s, static_cast<std::uint32_t>(s.tokens.size()), true);
        }
        const auto records = run(*model, in);
        for (std::uint32_t i = 0; i < rows; ++i)
          f.expect_same(records.at(i), i);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_row_is_the_same_for_every_cut_of_its_prompt) {
  for_each_kernel_set([](std::string_view) {
    for (const auto compute : both_types) {
      const fixture f(compute);
      const auto model = load(f.options, 4 * request_count);
      for (const std::uint32_t chunk : {1u, 2u, 3u, 7u, 15u, 16u, 17u, 33u})
        for (std::uint32_t i = 0; i < 12; ++i) {
          auto s = f.request(i);
          f.expect_same(finish_prompt(*model, s, chunk), i);
        }
    }
  });
}

BOOST_AUTO_TEST_CASE(a_row_is_the_same_wherever_its_blocks_lie_beside_nan) {
  for (const auto compute : both_types) {
    const fixture f(compute);
    const auto model = load(f.options, 4 * request_count);
    std::vector<block_id> renamed(4 * request_count);
    for (block_id b = 0; b < renamed.size(); ++b)
      renamed[b] = b;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      std::shuffle(renamed.begin(), renamed.end(), std::mt19937_64(seed));
      cpu::poison(*model);
      step_input in;
      for (std::uint32_t i = 0; i < request_count; ++i) {
        auto s = f.request(i, renamed);
        add_row(in, s, static_cast<std::uint32_t>(s.tokens.size()), true);
      }
      const auto records = run(*model, in);
      for (std::uint32_t i = 0; i < request_count; ++i)
        f.expect_same(records.at(i), i);
    }
  }
}

BOOST_AUTO_TEST_CASE(biases_of_a_row_change_its_own_draw_and_nothing_else) {
  const fixture f(compute_type::bfloat16);
  const auto model = load(f.options, 4 * request_count);
  step_input in;
  for (std::uint32_t i = 0; i < request_count; ++i) {
    auto s = f.request(i);
    add_row(in, s, static_cast<std::uint32_t>(s.tokens.size()), true);
    if (i % 3 == 0)
      in.rows.back().sampling.biases = {{7, 100.0f}};
  }
  const auto records = run(*model, in);
  for (std::uint32_t i = 0; i < request_count; ++i) {
    row_record record = records.at(i);
    if (i % 3 == 0) {
      BOOST_TEST(record.out.token == 7);
      BOOST_TEST(record.out.logprob <= f.alone[i].out.logprob);
      record.out.token = f.alone[i].out.token;
      record.out.logprob = f.alone[i].out.logprob;
    }
    f.expect_same(record, i);
  }
}

BOOST_AUTO_TEST_CASE(long_prompts_cross_waves_unchanged) {
  for (const auto compute : both_types) {
    fixture f(compute);
    std::mt19937 random(6);
    std::vector<token_id> prompt(333);
    for (auto& token : prompt)
      token = static_cast<token_id>(random() % f.shape.vocab);
    const auto model = load(f.options, 200);
    sequence whole{prompt, blocks_for(350, 0), 0};
    const auto wanted = finish_prompt(*model, whole);
    for (const std::uint32_t threads : {1u, 2u}) {
      f.options.threads = threads;
      const auto other = load(f.options, 200);
      // Neighbours on both sides move the cuts between waves.
      sequence before{{prompt.begin(), prompt.begin() + 50}, blocks_for(64, 30), 0};
      sequence same{prompt, blocks_for(350, 50), 0};
      sequence after{{prompt.begin(), prompt.begin() + 61}, blocks_for(64, 100), 0};
      step_input in;
      add_row(in, before, 50, true);
      add_row(in, same, 333, true);
      add_row(in, after, 61, true);
      const auto records = run(*other, in);
      BOOST_TEST(same_bits(records.at(1).logits, wanted.logits));
      BOOST_TEST(same_bits(records.at(1).hidden, wanted.hidden));
    }
  }
}

BOOST_AUTO_TEST_CASE(float32_results_are_the_same_bits_with_every_kernel_set) {
  std::vector<row_record> first;
  for_each_kernel_set([&](std::string_view) {
    const fixture f(compute_type::float32);
    if (first.empty())
      first = f.alone;
    for (std::uint32_t i = 0; i < request_count; ++i) {
      BOOST_TEST(same_bits(f.alone[i].logits, first[i].logits));
      BOOST_TEST(same_bits(f.alone[i].hidden, first[i].hidden));
    }
  });
}

BOOST_AUTO_TEST_CASE(llama_with_biases_and_an_untied_head_is_invariant_too) {
  const model_shape shape{.architecture = "LlamaForCausalLM",
                          .hidden = 33,
                          .mlp = 50,
                          .layers = 2,
                          .heads = 17,
                          .kv_heads = 1,
                          .head_dim = 6,
                          .vocab = 70,
                          .context = 512,
                          .tied = false,
                          .attention_bias = true,
                          .mlp_bias = true};
  for (const auto compute : both_types) {
    const fixture f(compute, shape);
    const auto model = load(f.options, 4 * request_count);
    cpu::poison(*model);
    step_input in;
    for (std::uint32_t i = 0; i < request_count; ++i) {
      auto s = f.request(i);
      add_row(in, s, static_cast<std::uint32_t>(s.tokens.size()), true);
    }
    const auto records = run(*model, in);
    for (std::uint32_t i = 0; i < request_count; ++i)
      f.expect_same(records.at(i), i);
  }
}
