#pragma once

#include "gpu/kernels/barriers.cuh"
#include "gpu/kernels/kernel_target.cuh"
#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/tensor_map.hpp"

/// Matrix products of warpgroups (sm_90a): 64 rows over the four warps of a group, sums in
/// registers. A thread holds of row r = 16 · warp + lane / 4 the columns 8j + 2 · (lane % 4) and
/// the next as sums[4j], sums[4j + 1], of row r + 8 likewise as sums[4j + 2], sums[4j + 3].
///
/// Operands in shared memory have rows of 64 elements, 128 bytes, whose 16-byte chunks are stored
/// at chunk ^ (row % 8), in groups of 8 rows that start at multiples of 1024 bytes: the copy
/// engine's 128-byte swizzle.
namespace tokenrouter::gpu {

constexpr bool has_warpgroups = compiled_for_wgmma;

/// Of an operand whose elements of one row lie along k: 64 of them, more in another array.
__device__ inline std::uint64_t along_k(unsigned shared_address) {
  constexpr std::uint64_t swizzled = std::uint64_t{1} << 62, group = 1024 / 16;
  return swizzled | group << 32 | std::uint64_t{1} << 16 | (shared_address & 0x3ffff) / 16;
}

/// Of an operand whose rows are k; `next_columns_bytes`: from one 64 of its columns to the next.
__device__ inline std::uint64_t across_k(unsigned shared_address, unsigned next_columns_bytes) {
  constexpr std::uint64_t swizzled = std::uint64_t{1} << 62, group = 1024 / 16;
  return swizzled | group << 32 | std::uint64_t{next_columns_bytes / 16} << 16 |
         (shared_address & 0x3ffff) / 16;
}

/// Of each thread, of a kernel that has a limit of its own; all of a warpgroup together.
template <int registers>
__device__ void take_registers() {
  if constexpr (has_warpgroups)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ void give_registers() {
  if constexpr (has_warpgroups)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

/// What was written to shared memory is there for the tensor cores.
__device__ inline void show_writes() {
  if constexpr (has_warpgroups)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// A box of a tensor_map, from a column and a row on; its bytes count at the barrier.
__device__ inline void copy_box(bf16* to, const CUtensorMap& map, int column, int row,
                                std::uint64_t* barrier) {
  if constexpr (has_warpgroups)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
                 : "memory");
}

/// Registers written before are there for the products that follow.
__device__ inline void begin_products() {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_products() {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `left` groups of products still run.
template <int left>
__device__ void await_products() {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

/// The compiler shall not move uses of sums to before this.
template <int n>
__device__ void hold(float (&sums)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    asm volatile("" : "+f"(sums[i])::"memory");
}

#define TR_SUMS_8(s, i)                                                                            \
  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]),      \
      "+f"(s[i + 6]), "+f"(s[i + 7])
#define TR_SUMS_32(s, i)                                                                           \
  TR_SUMS_8(s, i), TR_SUMS_8(s, i + 8), TR_SUMS_8(s, i + 16), TR_SUMS_8(s, i + 24)

/// sums[64 × 128] (+)= a[64 × 16] · b[128 × 16]ᵀ; `add` false: the old sums count for nothing.
__device__ inline void shared_product(float (&sums)[64], std::uint64_t a, std::uint64_t b,
                                      bool add) {
  if constexpr (has_warpgroups)
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "%64, %65, add, 1, 1, 0, 0;\n"
                 "}\n"
                 : TR_SUMS_32(sums, 0), TR_SUMS_32(sums, 32)
                 : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

/// sums[64 × 128] += a[64 × 16] · b[16 × 128], a in registers as bf16 pairs of the sums' columns.
__device__ inline void register_product(float (&sums)[64], const unsigned (&a)[4],
                                        std::uint64_t b) {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "{%64,%65,%66,%67}, %68, 1, 1, 1, 1;\n"
                 : TR_SUMS_32(sums, 0), TR_SUMS_32(sums, 32)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// sums[64 × 64] += a[64 × 16] · b[16 × 64].
__device__ inline void register_product(float (&sums)[32], const unsigned (&a)[4],
                                        std::uint64_t b) {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "{%32,%33,%34,%35}, %36, 1, 1, 1, 1;\n"
                 : TR_SUMS_32(sums, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// sums[64 × 16] += a[64 × 16] · b[16 × 16]ᵀ.
__device__ inline void shared_product(float (&sums)[8], std::uint64_t a, std::uint64_t b) {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7}, "
                 "%8, %9, 1, 1, 1, 0, 0;\n"
                 : TR_SUMS_8(sums, 0)
                 : "l"(a), "l"(b));
}

/// sums[64 × 32] += a[64 × 16] · b[32 × 16]ᵀ.
__device__ inline void shared_product(float (&sums)[16], std::uint64_t a, std::uint64_t b) {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "%16, %17, 1, 1, 1, 0, 0;\n"
                 : TR_SUMS_8(sums, 0), TR_SUMS_8(sums, 8)
                 : "l"(a), "l"(b));
}

/// sums[64 × 64] += a[64 × 16] · b[64 × 16]ᵀ.
__device__ inline void shared_product(float (&sums)[32], std::uint64_t a, std::uint64_t b) {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%"
                 "22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "%32, %33, 1, 1, 1, 0, 0;\n"
                 : TR_SUMS_32(sums, 0)
                 : "l"(a), "l"(b));
}

#undef TR_SUMS_8
#undef TR_SUMS_32

} // namespace tokenrouter::gpu
