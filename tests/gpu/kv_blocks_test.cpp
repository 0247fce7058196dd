#include <array>
#include <random>

#include "tests/exec/cpu/test_models.hpp"
#include "tests/gpu/gpu_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

const model_shape pairs{.hidden = 128,
                        .mlp = 384,
                        .layers = 3,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 64,
                        .vocab = 1000};

} // namespace

BOOST_AUTO_TEST_CASE(a_sibling_reads_blocks_in_place) {
  scratch_folder folder;
  write_random_model(folder.path(), pairs, 5);
  write_random_model(folder.path() / "other", {}, 5);
  load_options options;
  options.model_path = folder.path();
  const auto from = load_on_gpu(options, 8), to = load_on_gpu(options, 6);
  options.model_path = folder.path() / "other";
  const auto other = load_on_gpu(options, 6);
  BOOST_TEST(!other->reach_kv(from->kv_address()).has_value());
  BOOST_TEST(!to->reach_kv({}).has_value());
  auto source = to->reach_kv(from->kv_address());
  BOOST_REQUIRE_MESSAGE(source.has_value(), (source ? std::string() : source.error().message));
  std::vector<std::byte> bytes(from->facts().kv_bytes_per_block), back(bytes.size());
  std::mt19937 random(1);
  for (auto& b : bytes)
    b = static_cast<std::byte>(random());
  from->import_blocks(std::array{block_id{7}}, bytes);
  const block_copy copies[] = {{7, 5}, {6, 4}};
  BOOST_REQUIRE((*source)->read(copies).has_value());
  to->export_blocks(std::array{block_id{5}}, back);
  BOOST_TEST((back == bytes));
  to->export_blocks(std::array{block_id{4}}, back); // as poisoned as block 6 there
  BOOST_TEST((back == std::vector<std::byte>(bytes.size(), std::byte{0xff})));
}

BOOST_AUTO_TEST_CASE(blocks_come_back_as_they_went_and_copies_are_whole) {
  scratch_folder folder;
  write_random_model(folder.path(), pairs, 5);
  load_options options;
  options.model_path = folder.path();
  const auto model = load_on_gpu(options, 8);
  std::vector<std::byte> bytes(model->facts().kv_bytes_per_block), back(bytes.size());
  std::mt19937 random(1);
  for (auto& b : bytes)
    b = static_cast<std::byte>(random());
  model->import_blocks(std::array{block_id{3}}, bytes);
  const block_copy copies[] = {{3, 5}, {5, 6}};
  model->copy_blocks(copies);
  model->export_blocks(std::array{block_id{6}}, back);
  BOOST_TEST((back == bytes));
}

BOOST_AUTO_TEST_CASE(many_blocks_go_through_two_pinned_ones_in_their_order) {
  scratch_folder folder;
  write_random_model(folder.path(), pairs, 5);
  load_options options;
  options.model_path = folder.path();
  const auto model = load_on_gpu(options, 16);
  const std::size_t each = model->facts().kv_bytes_per_block;
  for (const std::size_t count : {1u, 2u, 3u, 7u}) {
    const std::vector<block_id> all{9, 2, 14, 0, 5, 11, 3};
    const std::vector<block_id> some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<std::byte> bytes(count * each), back(bytes.size());
    std::mt19937 random(static_cast<unsigned>(count));
    for (auto& b : bytes)
      b = static_cast<std::byte>(random());
    model->import_blocks(some, bytes);
    model->export_blocks(some, back);
    BOOST_TEST((back == bytes), count);
    std::vector<std::byte> last(each);
    model->export_blocks(std::array{some.back()}, last);
    BOOST_TEST(
        std::equal(last.begin(), last.end(), bytes.end() - static_cast<std::ptrdiff_t>(each)),
        count);
  }
}
