#include <boost/test/unit_test.hpp>

#include "gpu/cuda_error.hpp"
#include "gpu/kernels/kernel_target.hpp"

using namespace tokenrouter::gpu;

BOOST_AUTO_TEST_CASE(the_host_knows_what_the_kernels_that_run_were_compiled_for) {
  kernel_target told{};
  cuda_check(find_kernel_target(told));
  const auto runs = target_that_runs();
  BOOST_TEST(static_cast<int>(told) == static_cast<int>(runs));
  BOOST_TEST(static_cast<int>(target_here()) == static_cast<int>(runs));
  constexpr const char* names[] = {"portable", "sm_90", "sm_90a"};
  BOOST_TEST_MESSAGE("kernels: " << names[static_cast<int>(runs)]);
}
