#include "runtime/exec/cpu/memory.hpp"

#include <exception>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "runtime/core/check.hpp"

// Present when OpenBLAS is the BLAS behind libtorch, else null.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace tokenrouter::cpu {

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
  check(reinterpret_cast<std::uintptr_t>(m.data_) % 64 == 0, "libtorch aligns to cache lines");
  return m;
}

void limit_library_threads() {
  at::set_num_threads(1);
  if (openblas_set_num_threads)
    openblas_set_num_threads(1);
}

} // namespace tokenrouter::cpu
