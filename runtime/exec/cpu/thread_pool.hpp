#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace tokenrouter::cpu {

class thread_pool;

/// One thread's view of a job. All threads of a pool run the same job, meet at `sync`, and share
/// work by index; who does what never changes a result.
class worker {
 public:
  std::uint32_t index() const { return index_; }
  std::uint32_t count() const { return count_; } ///< threads of this job

  /// Waits until every thread of the job is here. What they wrote before is visible after.
  void sync();

  /// This thread's even share of `items`: consecutive, in the order of the threads.
  struct range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  range share(std::uint32_t items) const;

 private:
  friend class thread_pool;
  worker(thread_pool& pool, std::uint32_t index, std::uint32_t count)
      : pool_(pool), index_(index), count_(count) {}
  thread_pool& pool_;
  std::uint32_t index_;
  std::uint32_t count_;
};

/// A fixed set of threads, the caller of `run` being one of them. Between jobs and at `sync` they
/// spin for some microseconds, then sleep. One thread at a time calls `run`; a job does not throw.
class thread_pool {
 public:
  /// `threads`: at least 1, the caller's included.
  explicit thread_pool(std::uint32_t threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  std::uint32_t threads() const { return threads_; }

  /// Runs the job on every thread and returns when all are done.
  void run(const std::function<void(worker&)>& job);

  /// Runs the job on the caller alone: for work so small that waking the others costs more.
  void run_alone(const std::function<void(worker&)>& job);

 private:
  friend class worker;
  void meet();
  void serve(std::uint32_t index);

  const std::uint32_t threads_;
  const std::function<void(worker&)>* job_ =
      nullptr;            ///< written by run before it bumps job_number_
  bool stopping_ = false; ///< likewise
  std::atomic<std::uint32_t> job_number_{0};
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> meetings_{0};
  std::vector<std::thread> others_;
};

} // namespace tokenrouter::cpu
