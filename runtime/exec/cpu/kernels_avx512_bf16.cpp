#include "runtime/exec/cpu/make_table.hpp"
#include "runtime/exec/cpu/vector_avx512.hpp"

namespace tokenrouter::cpu {
namespace {

struct packed {
  static constexpr bool packs_operands = true;
};

} // namespace

const kernel_table avx512_bf16_kernels = make_table<vector_avx512<packed>>("avx512-bf16");

} // namespace tokenrouter::cpu
