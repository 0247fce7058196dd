#include <boost/test/unit_test.hpp>

#include <cmath>
#include <random>
#include <vector>

#include "runtime/exec/heads/kernels.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;

namespace {

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(count);
  for (float& x : out)
    x = normal(engine);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(dense_equals_the_double_sum_for_every_remainder) {
  for (const std::size_t in : {1u, 3u, 7u, 8u, 9u, 64u, 100u, 191u})
    for (const std::size_t out : {1u, 2u, 15u, 16u, 33u, 256u}) {
      const auto weight = random_floats(in * out, 1), bias = random_floats(out, 2);
      const auto x = random_floats(in, 3);
      std::vector<float> y(out);
      head_kernels::dense(weight.data(), bias.data(), x.data(), y.data(), in, out);
      for (std::size_t o = 0; o < out; ++o) {
        double want = bias[o];
        for (std::size_t i = 0; i < in; ++i)
          want += double{weight[i * out + o]} * x[i];
        BOOST_TEST(std::abs(want - y[o]) < 1e-5, "in " << in << " out " << out << " row " << o);
      }
    }
}

BOOST_AUTO_TEST_CASE(dot_equals_the_double_sum_for_every_remainder) {
  for (std::size_t count = 0; count < 130; ++count) {
    const auto a = random_floats(count, 1), b = random_floats(count, 2);
    double want = 0;
    for (std::size_t i = 0; i < count; ++i)
      want += double{a[i]} * b[i];
    BOOST_TEST(std::abs(want - head_kernels::dot(a.data(), b.data(), count)) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(layer_norm_equals_its_definition) {
  for (const std::size_t count : {1u, 5u, 16u, 64u, 70u, 1024u}) {
    auto x = random_floats(count, 4);
    for (float& v : x)
      v = v * 3 + 50; // a mean that is far from 0
    const auto scale = random_floats(count, 5), shift = random_floats(count, 6);
    double mean = 0, variance = 0;
    for (const float v : x)
      mean += v / static_cast<double>(count);
    for (const float v : x)
      variance += (v - mean) * (v - mean) / static_cast<double>(count);
    std::vector<float> y(count);
    head_kernels::layer_norm(x.data(), scale.data(), shift.data(), 1e-5f, y.data(), count);
    for (std::size_t i = 0; i < count; ++i)
      BOOST_TEST(std::abs((x[i] - mean) / std::sqrt(variance + 1e-5) * scale[i] + shift[i] - y[i]) <
                 2e-5);
  }
}

BOOST_AUTO_TEST_CASE(gelu_is_the_exact_one_and_not_the_tanh_form) {
  std::vector<float> x;
  for (float v = -12; v <= 12; v += 0.01f)
    x.push_back(v);
  std::vector<float> y = x;
  head_kernels::gelu(y.data(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = 0.5 * x[i] * (1 + std::erf(x[i] / std::sqrt(2.0)));
    BOOST_TEST(std::abs(want - y[i]) < 1e-6 * std::max(1.0, std::abs(want)), "at " << x[i]);
  }
}

BOOST_AUTO_TEST_CASE(relu_add_and_sigmoid_do_what_they_say) {
  std::vector<float> x{-1, 0, 2, -0.0f, 1e-30f};
  head_kernels::relu(x.data(), x.size());
  BOOST_TEST(x == (std::vector<float>{0, 0, 2, 0, 1e-30f}), tt::per_element());
  const std::vector<float> y{1, 2, 3, 4, 5};
  head_kernels::add(x.data(), y.data(), x.size());
  BOOST_TEST(x == (std::vector<float>{1, 2, 5, 4, 5}), tt::per_element());
  BOOST_TEST(head_kernels::sigmoid(0) == 0.5f);
  BOOST_TEST(head_kernels::sigmoid(1000) == 1.0f);
  BOOST_TEST(head_kernels::sigmoid(-1000) == 0.0f);
  BOOST_TEST(head_kernels::sigmoid(-2) == 0.11920292f, tt::tolerance(1e-6f));
}
