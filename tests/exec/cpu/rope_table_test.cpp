#include <cmath>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/exec/cpu/rope_table.hpp"

using namespace tokenrouter::cpu;

BOOST_AUTO_TEST_CASE(angles_are_right_to_the_last_place_at_any_position) {
  std::vector<double> frequencies;
  for (int i = 0; i < 16; ++i)
    frequencies.push_back(std::pow(10000.0, -i / 16.0));
  const rope_table table(frequencies, 131000);
  std::vector<float> cosines(16), sines(16);
  for (const std::uint32_t position : {0u, 1u, 255u, 256u, 257u, 4095u, 65536u, 130999u}) {
    table.fill(position, cosines.data(), sines.data());
    for (std::size_t i = 0; i < 16; ++i) {
      BOOST_TEST(std::abs(cosines[i] - std::cos(position * frequencies[i])) < 6.1e-8);
      BOOST_TEST(std::abs(sines[i] - std::sin(position * frequencies[i])) < 6.1e-8);
    }
  }
}
