#include "runtime/exec/cpu/kernels.hpp"

#include <algorithm>
#include <cstdlib>

#include "runtime/exec/cpu/make_table.hpp"

namespace tokenrouter::cpu {
namespace {

struct candidate {
  const char* name;
  const kernel_table* table; ///< null: not in this build
  bool runnable;
};

std::vector<candidate> candidates() {
#if TOKENROUTER_X86_KERNELS
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  return {{"scalar", &scalar_kernels, true},
          {"avx2", &avx2_kernels, avx2},
          {"avx512", &avx512_kernels, avx512},
          {"avx512-bf16", &avx512_bf16_kernels, bf16}};
#else
  return {{"scalar", &scalar_kernels, true},
          {"avx2", nullptr, false},
          {"avx512", nullptr, false},
          {"avx512-bf16", nullptr, false}};
#endif
}

} // namespace

std::vector<const kernel_table*> runnable_kernels() {
  std::vector<const kernel_table*> tables;
  for (const auto& c : candidates())
    if (c.runnable)
      tables.push_back(c.table);
  return tables;
}

std::vector<std::string> unrunnable_kernels() {
  std::vector<std::string> names;
  for (const auto& c : candidates())
    if (!c.runnable)
      names.emplace_back(c.name);
  return names;
}

result<const kernel_table*> choose_kernels(std::string_view name) {
  const auto tables = runnable_kernels();
  if (name.empty())
    return tables.back();
  std::string known;
  for (const auto* table : tables) {
    if (name == table->name)
      return table;
    known += (known.empty() ? "" : ", ") + std::string(table->name);
  }
  return fail(errc::invalid_argument, "CPU kernels '" + std::string(name) +
                                          "' can't run on this processor; these can: " + known);
}

result<const kernel_table*> choose_kernels_by_environment() {
  const char* wanted = std::getenv("TOKENROUTER_CPU_ISA");
  auto chosen = choose_kernels(wanted ? wanted : "");
  if (!chosen)
    return fail(chosen.error().code, "TOKENROUTER_CPU_ISA: " + chosen.error().message);
  return chosen;
}

} // namespace tokenrouter::cpu
