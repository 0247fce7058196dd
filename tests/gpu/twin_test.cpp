#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/exec/cpu/test_models.hpp"
#include "tests/gpu/gpu_sequence.hpp"
#include "tests/gpu/random_numbers.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t pool_blocks = 600;

/// Requests with random tokens and scattered blocks, some of which begin with another's blocks.
std::vector<sequence> make_requests(std::mt19937& random, const model_shape& shape) {
  std::vector<block_id> blocks(pool_blocks);
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::ranges::shuffle(blocks, random);
  std::vector<sequence> requests(12);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto& s = requests[i];
    const std::size_t length = i == 0 ? 700 : 20 + below(random, 150);
    for (std::size_t t = 0; t < length; ++t)
      s.tokens.push_back(static_cast<token_id>(below(random, shape.vocab)));
    for (std::size_t t = 0; t < length; t += 16) {
      s.blocks.push_back(blocks.back());
      blocks.pop_back();
    }
  }
  return requests;
}

/// Lets request 1 go on where request 0 stood after 32 tokens: prefix cache.
void share_prefix(std::vector<sequence>& requests) {
  auto& from = requests[0];
  auto& to = requests[1];
  if (from.computed < 32 || to.computed > 0)
    return;
  std::copy_n(from.tokens.begin(), 32, to.tokens.begin());
  std::copy_n(from.blocks.begin(), 2, to.blocks.begin());
  to.computed = 32;
}

/// A step with a random piece of every request that has something left, or only with decodes.
step_input random_step(std::mt19937& random, std::vector<sequence>& requests) {
  step_input in;
  for (auto& s : requests) {
    const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
    if (left == 0 || below(random, 4) == 0)
      continue;
    const std::uint32_t wish = below(random, 3) == 0 ? 1 + below(random, 90) : 1 + below(random, 5);
    add_row(in, s, std::min(left, wish), below(random, 5) != 0);
  }
  return in;
}

struct twin_result {
  double worst = 0;
  std::size_t tokens = 0;
  std::size_t equal = 0;
};

twin_result compare(const model_shape& shape, compute_type compute, bool graphs) {
  scratch_folder folder;
  write_random_model(folder.path(), shape, 23);
  load_options options;
  options.model_path = folder.path();
  options.compute = compute;
  const auto here = load(options, pool_blocks);
  const auto there = load_on_gpu(options, pool_blocks, graphs);
  std::mt19937 random(7);
  auto requests = make_requests(random, shape);
  twin_result result;
  const auto unfinished = [&] {
    return std::ranges::any_of(requests, [](auto& s) { return s.computed < s.tokens.size(); });
  };
  while (unfinished()) {
    share_prefix(requests);
    const auto in = random_step(random, requests);
    if (in.rows.empty())
      continue;
    const auto wanted = run(*here, in);
    const auto found = run_on_gpu(*there, in);
    for (const auto& [row, record] : wanted) {
      const auto& other = found.at(row);
      result.worst = std::max({result.worst, distance(other.logits, record.logits),
                               distance(other.hidden, record.hidden)});
      ++result.tokens;
      result.equal += other.out.token == record.out.token;
      BOOST_TEST(other.out.token == std::ranges::max_element(other.logits) - other.logits.begin());
    }
  }
  return result;
}

struct named_shape {
  const char* name;
  model_shape shape;
};

std::vector<named_shape> shapes() {
  model_shape wide_group{.hidden = 256,
                         .mlp = 512,
                         .layers = 2,
                         .heads = 16,
                         .kv_heads = 2,
                         .head_dim = 128,
                         .vocab = 512};
  model_shape pairs{.hidden = 128,
                    .mlp = 384,
                    .layers = 3,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 64,
                    .vocab = 1000};
  model_shape thirds{.hidden = 192,
                     .mlp = 256,
                     .layers = 2,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .vocab = 504};
  model_shape single{.hidden = 128,
                     .mlp = 256,
                     .layers = 2,
                     .heads = 2,
                     .kv_heads = 2,
                     .head_dim = 128,
                     .vocab = 512,
                     .tied = false};
  model_shape llama{.architecture = "LlamaForCausalLM",
                    .hidden = 128,
                    .mlp = 256,
                    .layers = 2,
                    .heads = 4,
                    .kv_heads = 1,
                    .head_dim = 64,
                    .vocab = 320,
                    .attention_bias = true,
                    .mlp_bias = true};
  return {{"multiples of nothing", {}}, {"eight to a kv head", wide_group},
          {"two to a kv head", pairs},  {"three to a kv head", thirds},
          {"one to a kv head", single}, {"llama with biases", llama}};
}

} // namespace

BOOST_AUTO_TEST_CASE(in_float32_logits_and_hidden_states_are_the_cpus) {
  for (const auto& [name, shape] : shapes())
    for (const bool graphs : {false, true})
      BOOST_TEST_CONTEXT(name << (graphs ? ", graphs" : "")) {
        const auto r = compare(shape, compute_type::float32, graphs);
        BOOST_TEST_MESSAGE(name << ": worst " << r.worst << ", " << r.equal << " of " << r.tokens);
        BOOST_TEST(r.worst < 1e-4);
        BOOST_TEST(r.equal == r.tokens);
      }
}

BOOST_AUTO_TEST_CASE(in_bfloat16_logits_and_hidden_states_are_near_the_cpus) {
  for (const auto& [name, shape] : shapes())
    for (const bool graphs : {false, true})
      BOOST_TEST_CONTEXT(name << (graphs ? ", graphs" : "")) {
        const auto r = compare(shape, compute_type::bfloat16, graphs);
        BOOST_TEST_MESSAGE(name << ": worst " << r.worst << ", " << r.equal << " of " << r.tokens);
        BOOST_TEST(r.worst < 2e-2);
        BOOST_TEST(static_cast<double>(r.equal) >= 0.95 * static_cast<double>(r.tokens));
      }
}

namespace {

/// A step of a few tokens of some requests, at most 16.
step_input small_step(std::mt19937& random, std::vector<sequence>& requests) {
  step_input in;
  std::uint32_t room = 1 + below(random, 16);
  for (auto& s : requests) {
    const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
    if (left == 0 || room == 0 || below(random, 3) == 0)
      continue;
    const std::uint32_t wish = below(random, 2) == 0 ? 1 : 1 + below(random, 12);
    const std::uint32_t count = std::min({left, wish, room});
    add_row(in, s, count, true);
    room -= count;
  }
  return in;
}

/// Requests that have had their first tokens: one a long context, the others short ones.
std::vector<sequence> begin_requests(std::mt19937& random, const model_shape& shape, backend& a,
                                     backend& b) {
  constexpr std::uint32_t long_context = 2500, rest = 40;
  std::vector<sequence> requests(6);
  block_id next_block = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::uint32_t length = (i == 0 ? long_context : below(random, 150)) + rest;
    for (std::uint32_t t = 0; t < length; ++t)
      requests[i].tokens.push_back(static_cast<token_id>(below(random, shape.vocab)));
    requests[i].blocks = blocks_for(length, next_block);
    next_block += static_cast<block_id>(requests[i].blocks.size());
    std::ranges::shuffle(requests[i].blocks, random);
    step_input in;
    if (length > rest)
      add_row(in, requests[i], length - rest, true);
    step_output out;
    if (in.rows.empty())
      continue;
    a.step(in, out);
    b.step(in, out);
  }
  return requests;
}

bool unfinished(const std::vector<sequence>& requests) {
  return std::ranges::any_of(requests, [](auto& s) { return s.computed < s.tokens.size(); });
}

std::vector<named_shape> small_heads_too() {
  auto all = shapes();
  all.erase(all.begin()); // does not fit
  all.push_back({"heads of 32",
                 {.hidden = 128,
                  .mlp = 512,
                  .layers = 4,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 32,
                  .vocab = 300}});
  for (auto& [name, shape] : all)
    shape.context = 4096;
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(in_bfloat16_all_layers_as_one_kernel_are_near_the_cpus,
                     *boost::unit_test::precondition(has_one_kernel())) {
  for (const auto& [name, shape] : small_heads_too())
    BOOST_TEST_CONTEXT(name) {
      scratch_folder folder;
      write_random_model(folder.path(), shape, 29);
      load_options options;
      options.model_path = folder.path();
      const auto here = load(options, pool_blocks);
      const auto there = load_on_gpu(options, pool_blocks, true, true);
      std::mt19937 random(17);
      auto requests = begin_requests(random, shape, *here, *there);
      double worst = 0;
      std::size_t tokens = 0;
      while (unfinished(requests)) {
        const auto in = small_step(random, requests);
        if (in.rows.empty())
          continue;
        const auto wanted = run(*here, in);
        const auto found = run_on_gpu(*there, in);
        for (const auto& [row, record] : wanted) {
          worst = std::max({worst, distance(found.at(row).logits, record.logits),
                            distance(found.at(row).hidden, record.hidden)});
          ++tokens;
        }
      }
      BOOST_TEST_MESSAGE(name << ": worst " << worst << " of " << tokens);
      BOOST_TEST(worst < 2e-2);
    }
}

BOOST_AUTO_TEST_CASE(in_bfloat16_one_kernel_gives_the_same_bits_every_time,
                     *boost::unit_test::precondition(has_one_kernel())) {
  const auto shape = small_heads_too()[1].shape;
  scratch_folder folder;
  write_random_model(folder.path(), shape, 31);
  load_options options;
  options.model_path = folder.path();
  const auto a = load_on_gpu(options, pool_blocks, true, true);
  const auto b = load_on_gpu(options, pool_blocks, false, true);
  std::mt19937 random(19);
  auto requests = begin_requests(random, shape, *a, *b);
  // What came in many tokens went through the products that each found the fastest.
  std::vector<std::byte> bytes(a->facts().kv_bytes_per_block);
  for (const auto& request : requests)
    for (const block_id block : request.blocks) {
      a->export_blocks(std::array{block_id{block}}, bytes);
      b->import_blocks(std::array{block_id{block}}, bytes);
    }
  while (unfinished(requests)) {
    const auto in = small_step(random, requests);
    if (in.rows.empty())
      continue;
    const auto first = run_on_gpu(*a, in), second = run_on_gpu(*b, in);
    for (const auto& [row, record] : first) {
      BOOST_TEST(same_bits(record.hidden, second.at(row).hidden));
      // Each model measured for itself which product is the fastest for its LM head.
      BOOST_TEST(distance(second.at(row).logits, record.logits) < 1e-2);
    }
  }
}

BOOST_AUTO_TEST_CASE(in_float32_a_row_does_not_depend_on_its_batch_or_its_chunks) {
  const model_shape shape = shapes()[2].shape;
  scratch_folder folder;
  write_random_model(folder.path(), shape, 5);
  load_options options;
  options.model_path = folder.path();
  options.compute = compute_type::float32;
  const auto model = load_on_gpu(options, pool_blocks);
  std::mt19937 random(3);
  auto requests = make_requests(random, shape);
  std::vector<row_record> alone;
  for (auto& s : requests) {
    step_input in;
    sequence copy = s;
    add_row(in, copy, static_cast<std::uint32_t>(s.tokens.size()), true);
    alone.push_back(run_on_gpu(*model, in).at(0));
  }
  for (const std::uint32_t chunk : {1u, 7u, 33u}) {
    auto again = requests;
    while (std::ranges::any_of(again, [](auto& s) { return s.computed < s.tokens.size(); })) {
      step_input in;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < again.size(); ++i) {
        const auto left = static_cast<std::uint32_t>(again[i].tokens.size()) - again[i].computed;
        if (left == 0)
          continue;
        add_row(in, again[i], std::min(left, chunk), left <= chunk);
        who.push_back(i);
      }
      for (const auto& [row, record] : run_on_gpu(*model, in)) {
        BOOST_TEST(same_bits(record.logits, alone[who[row]].logits),
                   "request " << who[row] << " in chunks of " << chunk);
        BOOST_TEST(same_bits(record.hidden, alone[who[row]].hidden));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(routing_heads_score_as_on_the_cpu) {
  const std::filesystem::path routers = "examples/models/abacus/routers";
  for (const char* kind : {"r2r", "citer", "citer_unfolded", "collm"}) {
    load_options options;
    options.model_path = "examples/models/abacus/abacus-xs";
    options.compute = compute_type::float32;
    const std::string file = std::string(kind) == "citer_unfolded" ? "citer" : kind;
    options.heads = {{kind, routers / (file + ".safetensors"), 1, -1}};
    const auto here = load(options, 64);
    const auto there = load_on_gpu(options, 64);
    std::mt19937 random(2);
    double worst = 0;
    for (int i = 0; i < 10; ++i) {
      sequence s;
      for (int t = 0; t < 30; ++t)
        s.tokens.push_back(static_cast<token_id>(below(random, 1024)));
      s.blocks = blocks_for(30, 0);
      step_input in;
      add_row(in, s, 30, true);
      in.rows[0].signals = in.rows[0].signals | signal::heads;
      const auto wanted = run(*here, in).at(0).out, found = run_on_gpu(*there, in).at(0).out;
      worst = std::max(worst, double{std::abs(wanted.head_scores[0] - found.head_scores[0])});
      BOOST_TEST(found.head_scores[0] > 0);
    }
    BOOST_TEST_MESSAGE(kind << ": scores differ by at most " << worst);
    BOOST_TEST(worst < 1e-4);
  }
}
