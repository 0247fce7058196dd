/// Moves the KV of a context between two GPUs of this machine in every way there is, beside the
/// link's own limit (one large copy from card to card) and beside running the prefill again; see
/// README.md.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <cuda_runtime_api.h>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/forward.hpp"
#include "gpu/nccl/communicator.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/model_config.hpp"

using namespace tokenrouter;
using gpu::cuda_check;

namespace {

constexpr int cards = 2;
constexpr int copy_streams = 4;

struct links_options {
  std::string shape;
  std::vector<std::uint32_t> contexts{256, 1024, 4096, 8192};
  double prefill_tokens_per_s = 0; ///< measured by bench_gpu_step; 0: no break-even is told
  int runs = 10;
};

/// One card's pool, with a stream of its own.
struct card {
  gpu::device_memory pool;
  cudaStream_t stream = nullptr;
  std::unique_ptr<gpu::communicator> group;
};

/// Median time of `move`, which returns when all is there.
double median_us(int runs, const std::function<void()>& move) {
  std::vector<double> times;
  for (int i = 0; i < runs + 2; ++i) {
    const std::uint64_t began = monotonic_ns();
    move();
    if (i >= 2)
      times.push_back(static_cast<double>(monotonic_ns() - began) / 1e3);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

/// Lets both cards do their part at once, each in a thread with its device current.
void both(const std::function<void(int)>& part) {
  std::vector<std::thread> threads;
  for (int i = 0; i < cards; ++i)
    threads.emplace_back([&part, i] {
      cuda_check(cudaSetDevice(i));
      part(i);
    });
  for (auto& thread : threads)
    thread.join();
}

class mover {
 public:
  mover(std::size_t block_bytes, std::uint32_t blocks) : block_bytes_(block_bytes) {
    auto id = gpu::make_group_id();
    check(id.has_value(), id ? "" : id.error().message.c_str());
    both([&](int i) {
      auto pool = gpu::device_memory::allocate(block_bytes * blocks);
      check(pool.has_value(), pool ? "" : pool.error().message.c_str());
      cards_[i].pool = std::move(*pool);
      cuda_check(cudaMemset(cards_[i].pool.as(), i, cards_[i].pool.bytes()));
      cuda_check(cudaStreamCreateWithFlags(&cards_[i].stream, cudaStreamNonBlocking));
      auto joined = gpu::communicator::join({static_cast<std::uint32_t>(i), cards, *id, nullptr},
                                            static_cast<std::uint32_t>(i));
      check(joined.has_value(), joined ? "" : joined.error().message.c_str());
      cards_[i].group = std::move(*joined);
      cudaDeviceEnablePeerAccess(1 - i, 0);
      cudaGetLastError();
    });
    cuda_check(cudaSetDevice(0));
    for (auto& stream : copy_streams_)
      cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    auto host = gpu::device_memory::allocate_pinned(block_bytes * blocks);
    check(host.has_value(), host ? "" : host.error().message.c_str());
    host_ = std::move(*host);
    std::mt19937 random(1);
    for (auto& order : order_) {
      order.resize(blocks);
      for (std::uint32_t b = 0; b < blocks; ++b)
        order[b] = b;
      std::ranges::shuffle(order, random);
    }
  }

  void whole_copy(std::uint32_t blocks) {
    cuda_check(cudaSetDevice(0));
    cuda_check(cudaMemcpyPeerAsync(cards_[1].pool.as(), 1, cards_[0].pool.as(), 0,
                                   blocks * block_bytes_, cards_[0].stream));
    cuda_check(cudaStreamSynchronize(cards_[0].stream));
  }

  /// Neighbours go through different streams: one copy's end overlaps another's begin.
  void block_copies(std::uint32_t blocks) {
    cuda_check(cudaSetDevice(0));
    for (std::uint32_t b = 0; b < blocks; ++b)
      cuda_check(cudaMemcpyPeerAsync(at(1, b), 1, at(0, b), 0, block_bytes_,
                                     copy_streams_[b % copy_streams]));
    for (const auto& stream : copy_streams_)
      cuda_check(cudaStreamSynchronize(stream));
  }

  void through_nccl(std::uint32_t blocks) {
    both([&](int i) {
      std::vector<void*> pieces;
      for (std::uint32_t b = 0; b < blocks; ++b)
        pieces.push_back(at(i, b));
      const std::vector<const void*> sent(pieces.begin(), pieces.end());
      auto& mine = cards_[i];
      if (i == 0)
        mine.group->send(sent, block_bytes_, 1, mine.stream);
      else
        mine.group->receive(pieces, block_bytes_, 0, mine.stream);
      check(mine.group->wait(mine.stream).has_value(), "NCCL moves blocks");
    });
  }

  void through_host(std::uint32_t blocks) {
    for (const int i : {0, 1}) {
      cuda_check(cudaSetDevice(i));
      for (std::uint32_t b = 0; b < blocks; ++b) {
        auto* staged = host_.as() + b * block_bytes_;
        cuda_check(i == 0 ? cudaMemcpyAsync(staged, at(0, b), block_bytes_, cudaMemcpyDeviceToHost,
                                            cards_[0].stream)
                          : cudaMemcpyAsync(at(1, b), staged, block_bytes_, cudaMemcpyHostToDevice,
                                            cards_[1].stream));
      }
      cuda_check(cudaStreamSynchronize(cards_[i].stream));
    }
  }

 private:
  /// Block `b` of a context, which lies somewhere else on every card.
  void* at(int i, std::uint32_t b) const {
    return cards_[i].pool.as() + order_[i][b] * block_bytes_;
  }

  std::size_t block_bytes_;
  card cards_[cards];
  gpu::device_memory host_;
  cudaStream_t copy_streams_[copy_streams] = {};
  std::vector<std::uint32_t> order_[cards];
};

int bench(const links_options& options) {
  int found = 0;
  if (cudaGetDeviceCount(&found) != cudaSuccess || found < cards) {
    std::fprintf(stderr, "needs two GPUs, here are %d\n", found);
    return 1;
  }
  const auto config = load_model_config(options.shape);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    return 1;
  }
  const std::size_t block_bytes = gpu::kv_shape(*config).block * 2; // bf16
  const std::uint32_t longest = *std::ranges::max_element(options.contexts);
  mover cards_of_job(block_bytes, (longest + limits::block_tokens - 1) / limits::block_tokens);
  std::printf("%s: %.2f MiB a block of %u tokens\n", options.shape.c_str(),
              static_cast<double>(block_bytes) / (1 << 20), limits::block_tokens);
  std::printf("| context | MiB | one copy GB/s | blocks, peer copies | blocks, NCCL | blocks, "
              "through the host | prefill again ms | moved ms |\n|-|-|-|-|-|-|-|-|\n");
  for (const auto context : options.contexts) {
    const std::uint32_t blocks = (context + limits::block_tokens - 1) / limits::block_tokens;
    const double bytes = static_cast<double>(block_bytes) * blocks;
    const auto rate = [&](double us) { return bytes / us / 1e3; };
    const double whole = median_us(options.runs, [&] { cards_of_job.whole_copy(blocks); });
    const double peer = median_us(options.runs, [&] { cards_of_job.block_copies(blocks); });
    const double nccl = median_us(options.runs, [&] { cards_of_job.through_nccl(blocks); });
    const double host = median_us(options.runs, [&] { cards_of_job.through_host(blocks); });
    const double again_ms =
        options.prefill_tokens_per_s > 0 ? context / options.prefill_tokens_per_s * 1e3 : 0;
    std::printf("| %u | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %.2f |\n", context,
                bytes / (1 << 20), rate(whole), rate(peer), rate(nccl), rate(host), again_ms,
                std::min(peer, nccl) / 1e3);
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  links_options options;
  CLI::App app("KV between two GPUs of this machine, beside the link's limit and a new prefill");
  app.add_option("shape", options.shape, "Folder with a config.json")->required();
  app.add_option("--contexts", options.contexts, "Context lengths in tokens")->delimiter(',');
  app.add_option("--prefill", options.prefill_tokens_per_s,
                 "Tokens a second of a prefill, to tell what running it again takes");
  app.add_option("--runs", options.runs, "Moves of which the median is taken");
  CLI11_PARSE(app, argc, argv);
  return bench(options);
}
