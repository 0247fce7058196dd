#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include <boost/test/unit_test.hpp>

#include "gpu/cuda_backend.hpp"
#include "gpu/kernels/kernel_target.hpp"
#include "tests/exec/cpu/test_sequence.hpp"
#include "tests/gpu/shard_team.hpp"

namespace tokenrouter::test {

/// For tests that are skipped, by name, where there are fewer GPUs.
struct has_gpus {
  std::uint32_t wanted;
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result met(gpus_here() >= wanted);
    met.message() << "needs " << wanted << " GPUs, here are " << gpus_here();
    return met;
  }
};

/// Likewise where the card or the build's code for it has no warpgroups.
struct has_warpgroups {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result met(gpu::wgmma_runs_here());
    met.message() << "needs the matrix products of warpgroups (sm_90a)";
    return met;
  }
};

/// Likewise where the code is portable: it has not all layers as one kernel.
struct has_one_kernel {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result met(gpu::has_sm_90(gpu::target_here()));
    met.message() << "needs kernels for sm_90 or newer";
    return met;
  }
};

/// Sets every bit of a pool's blocks.
inline void poison(backend& model, std::uint32_t blocks) {
  const std::vector<std::byte> ones(model.facts().kv_bytes_per_block, std::byte{0xff});
  for (std::uint32_t b = 0; b < blocks; ++b)
    model.import_blocks(std::array{block_id{b}}, ones);
}

/// ‖a − b‖ / ‖b‖; NaN is infinitely far.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    norm += double{b[i]} * double{b[i]};
  }
  const double share = std::sqrt(difference / std::max(norm, 1e-30));
  return std::isnan(share) ? INFINITY : share;
}

/// Loads a model onto the first GPU with a pool that is poisoned: every bit set.
inline std::unique_ptr<backend> load_on_gpu(const load_options& options, std::uint32_t blocks,
                                            bool graphs = true,
                                            std::optional<bool> one_kernel = false) {
  auto model =
      make_cuda_backend(options, {.device = 0, .graphs = graphs, .one_kernel = one_kernel});
  BOOST_REQUIRE_MESSAGE(model.has_value(), (model ? std::string() : model.error().message));
  BOOST_REQUIRE((*model)->allocate_kv(blocks).has_value());
  poison(**model, blocks);
  return std::move(*model);
}

/// As `run` of the CPU's tests, for a step that is one wave and whose rows answer at most one
/// position.
inline std::map<std::size_t, row_record> run_on_gpu(backend& model, const step_input& in) {
  std::map<std::size_t, row_record> records;
  step_output out;
  model.step(in, out);
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < in.rows.size(); ++i)
    if (in.rows[i].answered_positions) {
      records[i] = {out.rows[i], gpu::hidden_of(model, end), gpu::logits_of(model, end)};
      ++end;
    }
  return records;
}

} // namespace tokenrouter::test
