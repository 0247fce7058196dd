#include "runtime/exec/cpu/memory.hpp"

#include <cstdint>
#include <exception>
#include <sys/mman.h>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "runtime/core/check.hpp"

// Present when OpenBLAS is the BLAS behind libtorch, else null.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace tokenrouter::cpu {

namespace {

/// Paged KV jumps about in memory: with small pages address translation costs as much as the data.
void ask_for_large_pages(std::byte* data, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  if (begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

} // namespace

struct memory::tensor {
  at::Tensor storage;
};

memory::memory() = default;
memory::memory(memory&&) noexcept = default;
memory& memory::operator=(memory&&) noexcept = default;
memory::~memory() = default;

result<memory> memory::allocate(std::size_t bytes) {
  memory m;
  try {
    m.tensor_ = std::make_unique<tensor>(
        tensor{at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte))});
  } catch (const std::exception&) {
    return fail(errc::capacity,
                "cannot allocate " + std::to_string(bytes) + " bytes of host memory");
  }
  m.data_ = static_cast<std::byte*>(m.tensor_->storage.data_ptr());
  m.bytes_ = bytes;
  ask_for_large_pages(m.data_, bytes);
  check(reinterpret_cast<std::uintptr_t>(m.data_) % 64 == 0, "libtorch aligns to cache lines");
  return m;
}

void limit_library_threads() {
  at::set_num_threads(1);
  if (openblas_set_num_threads)
    openblas_set_num_threads(1);
}

} // namespace tokenrouter::cpu
