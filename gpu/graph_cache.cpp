#include "gpu/graph_cache.hpp"

#include <algorithm>

#include "gpu/cuda_error.hpp"

namespace tokenrouter::gpu {

std::uint32_t graph_size_for(std::uint32_t count) {
  const auto found = std::ranges::lower_bound(graph_sizes, count);
  return found == graph_sizes.end() ? 0 : *found;
}

graph_cache::~graph_cache() {
  for (const auto& [bucket, graph] : graphs_)
    cudaGraphExecDestroy(graph);
}

void graph_cache::capture(const wave_bucket& bucket, cudaStream_t stream,
                          const std::function<void()>& enqueue) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  cuda_check(cudaStreamEndCapture(stream, &graph));
  cuda_check(cudaGraphInstantiate(&ready, graph, 0));
  cuda_check(cudaGraphDestroy(graph));
  cuda_check(cudaGraphUpload(ready, stream));
  graphs_.emplace(bucket, ready);
}

void graph_cache::launch(const wave_bucket& bucket, cudaStream_t stream) const {
  cuda_check(cudaGraphLaunch(graphs_.at(bucket), stream));
}

} // namespace tokenrouter::gpu
