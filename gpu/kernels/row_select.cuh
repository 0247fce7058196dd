#pragma once

#include <cstdint>

/// Finding places in the descending order of a long row of floats, with one thread block.
namespace tokenrouter::gpu {

constexpr int draw_threads = 512;

/// Orders as the floats do; −0 is 0, NaN comes last of all.
__device__ inline std::uint32_t key_of(float z) {
  if (isnan(z))
    return 0;
  const std::uint32_t bits = __float_as_uint(z + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ inline float value_of(std::uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

/// A logit with its token, in one number: larger is earlier, the smaller token wins a tie.
__device__ inline std::uint64_t candidate(float z, std::uint32_t token) {
  return (std::uint64_t{key_of(z)} << 32) | (0xffffffffu - token);
}
__device__ inline std::uint32_t token_of(std::uint64_t candidate) {
  return 0xffffffffu - static_cast<std::uint32_t>(candidate);
}
__device__ inline float logit_of(std::uint64_t candidate) {
  return value_of(static_cast<std::uint32_t>(candidate >> 32));
}

/// Sorts `size` numbers (a power of two) in shared memory, largest first.
__device__ inline void sort_descending(std::uint64_t* x, int size) {
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      for (int i = static_cast<int>(threadIdx.x); i < size / 2; i += draw_threads) {
        const int low = i / step * 2 * step + i % step, high = low + step;
        const bool descending = (low & run) == 0;
        const std::uint64_t a = x[low], b = x[high];
        if ((a < b) == descending) {
          x[low] = b;
          x[high] = a;
        }
      }
      __syncthreads();
    }
}

/// Exclusive prefix sums over the thread block; `total` is the sum of all.
__device__ inline std::uint64_t scan_block(std::uint64_t mine, std::uint64_t* scratch,
                                           std::uint64_t& total) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  std::uint64_t sum = mine;
  for (int step = 1; step < 32; step *= 2) {
    const std::uint64_t other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step)
      sum += other;
  }
  __syncthreads();
  if (lane == 31)
    scratch[warp] = sum;
  __syncthreads();
  std::uint64_t before = 0;
  total = 0;
  for (int i = 0; i < draw_threads / 32; ++i) {
    before += i < warp ? scratch[i] : 0;
    total += scratch[i];
  }
  return before + sum - mine;
}

struct select_memory {
  std::uint64_t bins[2048];
  std::uint64_t scratch[draw_threads / 32];
  std::uint64_t before;
  std::uint32_t bin;
  std::uint32_t token;
};

/// Where a running sum over the descending order first passes a target: the key of the entry, and
/// the sum of all larger keys.
struct crossing {
  std::uint32_t key;
  std::uint64_t before;
};

/// `amount(z)`: what an entry adds, the same for equal entries. Requires 0 ≤ target < the sum of
/// all. Sums of whole numbers: the order of adding doesn't matter.
template <class Amount>
__device__ crossing find_crossing(const float* row, int count, const Amount& amount,
                                  std::uint64_t target, select_memory& m) {
  crossing found{0, 0};
  const int shifts[3] = {21, 10, 0}, widths[3] = {2048, 2048, 1024};
  for (int level = 0; level < 3; ++level) {
    for (int i = static_cast<int>(threadIdx.x); i < 2048; i += draw_threads)
      m.bins[i] = 0;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += draw_threads) {
      const float z = __ldcg(row + i);
      const std::uint32_t key = key_of(z);
      if (level > 0 && key >> shifts[level - 1] != found.key >> shifts[level - 1])
        continue;
      if (const std::uint64_t more = amount(z); more > 0)
        atomicAdd(
            reinterpret_cast<unsigned long long*>(&m.bins[(key >> shifts[level]) % widths[level]]),
            static_cast<unsigned long long>(more));
    }
    __syncthreads();
    constexpr int bins_of_thread = 2048 / draw_threads;
    const auto bin_at = [&](int i) { // from the largest keys down
      return 2047 - (static_cast<int>(threadIdx.x) * bins_of_thread + i);
    };
    std::uint64_t mine = 0, total;
    for (int i = 0; i < bins_of_thread; ++i)
      mine += m.bins[bin_at(i)];
    std::uint64_t sum = found.before + scan_block(mine, m.scratch, total);
    for (int i = 0; i < bins_of_thread; ++i) {
      const std::uint64_t more = m.bins[bin_at(i)];
      if (sum <= target && target < sum + more) {
        m.bin = static_cast<std::uint32_t>(bin_at(i));
        m.before = sum;
      }
      sum += more;
    }
    __syncthreads();
    found.key |= m.bin << shifts[level];
    found.before = m.before;
    __syncthreads();
  }
  return found;
}

/// Sum of `amount(z)` over the row.
template <class Amount>
__device__ std::uint64_t sum_amounts(const float* row, int count, const Amount& amount,
                                     select_memory& m) {
  std::uint64_t mine = 0, total;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += draw_threads)
    mine += amount(__ldcg(row + i));
  scan_block(mine, m.scratch, total);
  return total;
}

/// The token of the entry number `index` (from 0) of those with that key, by token.
__device__ inline std::uint32_t token_with_key(const float* row, int count, std::uint32_t key,
                                               std::uint64_t index, select_memory& m) {
  const int share = (count + draw_threads - 1) / draw_threads;
  const int begin = static_cast<int>(threadIdx.x) * share, end = min(begin + share, count);
  std::uint64_t mine = 0, total;
  for (int i = begin; i < end; ++i)
    mine += key_of(__ldcg(row + i)) == key;
  std::uint64_t at = scan_block(mine, m.scratch, total);
  for (int i = begin; i < end; ++i)
    if (key_of(__ldcg(row + i)) == key && at++ == index)
      m.token = static_cast<std::uint32_t>(i);
  __syncthreads();
  return m.token;
}

} // namespace tokenrouter::gpu
