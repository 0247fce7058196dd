#include "runtime/exec/cpu/thread_pool.hpp"

#include "runtime/core/check.hpp"

namespace tokenrouter::cpu {
namespace {

constexpr int spins_max = 4000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns when `value` is no longer `old`.
void await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < spins_max; ++i) {
    if (value.load(std::memory_order_acquire) != old)
      return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

} // namespace

void worker::sync() {
  if (count_ > 1)
    pool_.meet();
}

worker::range worker::share(std::uint32_t items) const {
  const auto at = [&](std::uint64_t i) {
    return static_cast<std::uint32_t>(std::uint64_t{items} * i / count());
  };
  return {at(index_), at(index_ + 1)};
}

thread_pool::thread_pool(std::uint32_t threads) : threads_(threads) {
  check(threads >= 1, "thread_pool: the caller is one of its threads");
  for (std::uint32_t i = 1; i < threads; ++i)
    others_.emplace_back([this, i] { serve(i); });
}

thread_pool::~thread_pool() {
  stopping_ = true;
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  for (auto& thread : others_)
    thread.join();
}

void thread_pool::run(const std::function<void(worker&)>& job) {
  if (threads_ == 1)
    return run_alone(job);
  worker self(*this, 0, threads_);
  job_ = &job;
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  job(self);
  meet();
}

void thread_pool::run_alone(const std::function<void(worker&)>& job) {
  worker self(*this, 0, 1);
  job(self);
}

void thread_pool::meet() {
  const std::uint32_t meeting = meetings_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads_)
    return await_change(meetings_, meeting);
  arrived_.store(0, std::memory_order_relaxed);
  meetings_.fetch_add(1, std::memory_order_release);
  meetings_.notify_all();
}

void thread_pool::serve(std::uint32_t index) {
  worker self(*this, index, threads_);
  for (std::uint32_t seen = 0;; ++seen) {
    await_change(job_number_, seen);
    if (stopping_)
      return;
    (*job_)(self);
    meet();
  }
}

} // namespace tokenrouter::cpu
