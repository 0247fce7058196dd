#include <boost/test/unit_test.hpp>

#include "gpu/persistent_shape.hpp"

using namespace tokenrouter::gpu;

namespace {

constexpr std::uint32_t processors = 132;

/// Qwen3-0.6B.
constexpr persistent_shape small{.layers = 28,
                                 .hidden = 1024,
                                 .heads = 16,
                                 .kv_heads = 8,
                                 .head_dim = 128,
                                 .intermediate = 3072};

template <class Change>
bool fits_with(const Change& change, std::uint32_t device_processors = processors) {
  persistent_shape shape = small;
  change(shape);
  return persistent_fits(shape, device_processors);
}

} // namespace

BOOST_AUTO_TEST_CASE(small_models_of_all_head_sizes_fit_one_kernel) {
  BOOST_TEST(persistent_fits(small, processors));
  BOOST_TEST(persistent_fits({2, 64, 2, 1, 32, 256}, processors));
  BOOST_TEST(persistent_fits({24, 896, 14, 2, 64, 4864}, processors));
  BOOST_TEST(words_of_row(small) == (4096u + 2048 + 3072) / 2);
}

BOOST_AUTO_TEST_CASE(shapes_beyond_its_limits_do_not_fit_one_kernel) {
  BOOST_TEST(!fits_with([](auto& s) { s.layers = 1; }));
  BOOST_TEST(!fits_with([](auto& s) { s.layers = persistent_layers_max + 1; }));
  BOOST_TEST(!fits_with([](auto& s) { s.hidden = 2048; }));
  BOOST_TEST(!fits_with([](auto& s) { s.hidden = 1000; }));
  BOOST_TEST(!fits_with([](auto& s) { s.intermediate = 3000; }));
  BOOST_TEST(!fits_with([](auto& s) { s.head_dim = 96; }));
  BOOST_TEST(!fits_with([](auto& s) { s.kv_heads = 0; }));
  BOOST_TEST(!fits_with([](auto& s) { s.kv_heads = 3; }));
  BOOST_TEST(!fits_with([](auto& s) { s.heads = 34, s.kv_heads = 2; }));
}

BOOST_AUTO_TEST_CASE(a_device_of_few_processors_has_no_room_for_all_columns) {
  BOOST_TEST(fits_with([](auto&) {}, 32));
  BOOST_TEST(!fits_with([](auto&) {}, 31));
  BOOST_TEST(!fits_with([](auto&) {}, 0));
}
