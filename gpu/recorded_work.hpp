#pragma once

#include <algorithm>
#include <utility>

#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"

namespace tokenrouter::gpu {

/// What was once put on a stream, as one CUDA graph that can be put there again at once.
class recorded_work {
 public:
  /// Records what `enqueue` puts on the stream; nothing runs yet.
  template <class F>
  recorded_work(cudaStream_t stream, const F& enqueue) {
    cudaGraph_t graph = nullptr;
    cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    cuda_check(cudaStreamEndCapture(stream, &graph));
    cuda_check(cudaGraphInstantiate(&ready_, graph, 0));
    cuda_check(cudaGraphDestroy(graph));
  }
  recorded_work(recorded_work&& other) noexcept : ready_(std::exchange(other.ready_, nullptr)) {}
  recorded_work& operator=(recorded_work&& other) noexcept {
    std::swap(ready_, other.ready_);
    return *this;
  }
  ~recorded_work() {
    if (ready_)
      cudaGraphExecDestroy(ready_);
  }

  /// Moves it to the device, so that the first launch is as fast as the others.
  void upload(cudaStream_t stream) const { cuda_check(cudaGraphUpload(ready_, stream)); }
  void launch(cudaStream_t stream) const { cuda_check(cudaGraphLaunch(ready_, stream)); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

/// Measures time on the device between two points of a stream.
class device_timer {
 public:
  device_timer() {
    cuda_check(cudaEventCreate(&begin_));
    cuda_check(cudaEventCreate(&end_));
  }
  ~device_timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  device_timer(const device_timer&) = delete;
  device_timer& operator=(const device_timer&) = delete;

  void begin(cudaStream_t stream) { cuda_check(cudaEventRecord(begin_, stream)); }
  void end(cudaStream_t stream) { cuda_check(cudaEventRecord(end_, stream)); }

  /// Once the stream has passed the end.
  double us() const {
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, begin_, end_));
    return double{ms} * 1e3;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// Time that the device takes for what `work` enqueues, launched as one graph: enqueueing takes
/// the host longer than running takes the device. The least of several runs, the first of which is
/// not counted.
template <class F>
double measure_us(cudaStream_t stream, const F& work) {
  constexpr int runs = 4;
  const recorded_work recorded(stream, work);
  device_timer timer;
  double least_us = 0;
  for (int i = 0; i < runs; ++i) {
    timer.begin(stream);
    recorded.launch(stream);
    timer.end(stream);
    cuda_check(cudaStreamSynchronize(stream));
    least_us = i <= 1 ? timer.us() : std::min(least_us, timer.us());
  }
  return least_us;
}

} // namespace tokenrouter::gpu
