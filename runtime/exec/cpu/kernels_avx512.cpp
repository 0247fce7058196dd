#include "runtime/exec/cpu/make_table.hpp"
#include "runtime/exec/cpu/vector_avx512.hpp"

namespace tokenrouter::cpu {
namespace {

struct plain {
  static constexpr bool packs_operands = false;
};

} // namespace

const kernel_table avx512_kernels = make_table<vector_avx512<plain>>("avx512");

} // namespace tokenrouter::cpu
