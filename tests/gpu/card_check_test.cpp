#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "gpu/card_check.hpp"

using namespace tokenrouter::gpu;

namespace {

card a100() {
  return {0, "NVIDIA A100-SXM4-80GB", 8, 0, 163 * 1024};
}

bool tells(const std::optional<std::string>& fault, const std::vector<std::string>& parts) {
  return fault && std::ranges::all_of(parts, [&](const auto& part) {
           return fault->find(part) != std::string::npos;
         });
}

} // namespace

BOOST_AUTO_TEST_CASE(cards_of_8_0_and_newer_run_a_build_whose_kernels_load) {
  BOOST_TEST(!fault_of(a100(), cudaSuccess, "90a, 80-virtual"));
  BOOST_TEST(!fault_of({1, "NVIDIA L40S", 8, 9, 99 * 1024}, cudaSuccess, "80-virtual"));
  BOOST_TEST(!fault_of({2, "NVIDIA B200", 10, 0, 227 * 1024}, cudaSuccess, "80-virtual"));
}

BOOST_AUTO_TEST_CASE(an_older_card_is_refused_whatever_loads) {
  const card v100{3, "Tesla V100-SXM2-16GB", 7, 0, 96 * 1024};
  for (const auto loading : {cudaSuccess, cudaErrorNoKernelImageForDevice})
    BOOST_TEST(tells(fault_of(v100, loading, "90a"),
                     {"cuda:3: Tesla V100-SXM2-16GB", "7.0", "8.0 or newer", "device: cpu"}));
}

BOOST_AUTO_TEST_CASE(a_build_without_code_for_a_card_says_how_to_configure_it) {
  for (const auto loading : {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction})
    BOOST_TEST(tells(fault_of(a100(), loading, "90a"),
                     {"cuda:0: NVIDIA A100-SXM4-80GB", "8.0", "configured for 90a;",
                      "80 in TOKENROUTER_CUDA_ARCHITECTURES", "80-virtual"}));
}

BOOST_AUTO_TEST_CASE(a_driver_that_cannot_compile_the_kernels_is_named) {
  BOOST_TEST(tells(
      fault_of({1, "NVIDIA L40S", 8, 9, 99 * 1024}, cudaErrorUnsupportedPtxVersion,
               "90a, 80-virtual"),
      {"cuda:1: NVIDIA L40S", "8.9", "update the driver", "89 in TOKENROUTER_CUDA_ARCHITECTURES"}));
}

BOOST_AUTO_TEST_CASE(other_faults_of_loading_keep_their_words) {
  BOOST_TEST(tells(fault_of(a100(), cudaErrorMemoryAllocation, "80"),
                   {"cuda:0", cudaGetErrorString(cudaErrorMemoryAllocation)}));
}

BOOST_AUTO_TEST_CASE(too_little_shared_memory_is_refused) {
  BOOST_TEST(tells(fault_of({0, "a card", 8, 0, 64 * 1024}, cudaSuccess, "80"),
                   {"64 KiB of shared memory", "need 99"}));
}

BOOST_AUTO_TEST_CASE(only_code_that_waits_by_itself_starts_early) {
  using enum kernel_target;
  for (const auto target : {portable, sm_90, sm_90a})
    for (const bool cooperative : {false, true})
      for (const bool overlap : {false, true})
        BOOST_TEST(starts_early(target, cooperative, overlap) ==
                   (target != portable && !cooperative && overlap));
}

BOOST_AUTO_TEST_CASE(instructions_of_one_card_alone_need_its_own_code) {
  BOOST_TEST(!has_sm_90(kernel_target::portable));
  BOOST_TEST(has_sm_90(kernel_target::sm_90));
  BOOST_TEST(has_sm_90(kernel_target::sm_90a));
  BOOST_TEST(!has_wgmma(kernel_target::sm_90));
  BOOST_TEST(has_wgmma(kernel_target::sm_90a));
}

BOOST_AUTO_TEST_CASE(the_log_tells_portable_kernels_apart) {
  const card h200{0, "NVIDIA H200", 9, 0, 227 * 1024};
  BOOST_TEST(kernels_name(h200, kernel_target::sm_90a) == "cuda sm_90");
  BOOST_TEST(kernels_name(h200, kernel_target::portable) == "cuda sm_90, portable kernels");
  BOOST_TEST(kernels_name(a100(), kernel_target::portable) == "cuda sm_80, portable kernels");
}
