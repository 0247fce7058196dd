#include "gpu/kernels/window_records.hpp"

#include "gpu/kernels/launch.cuh"

namespace tokenrouter::gpu {
namespace {

constexpr unsigned threads = 256;
constexpr int block_places = 16;

__device__ float* record_at(const record_view& r, int block, int place) {
  std::byte* records = r.pool + std::uint64_t(block) * r.block_bytes + r.offset_bytes;
  return reinterpret_cast<float*>(records) + std::uint64_t(place) * r.floats;
}

__global__ void write_kernel(record_call c) {
  wait_for_previous();
  let_next_start();
  const std::uint64_t row = blockIdx.x;
  if (c.orders[row].window_start < 0)
    return;
  const int slot = c.slots[c.orders[row].token];
  float* to = record_at(c.records, slot / block_places, slot % block_places);
  const float* hidden = c.hidden + row * c.records.hidden_size;
  const float* top = c.top + row * kept_logits_max;
  for (unsigned i = threadIdx.x; i < c.records.hidden_size; i += threads)
    to[i] = __ldcg(hidden + i);
  to += c.records.hidden_size;
  for (unsigned i = threadIdx.x; i < c.records.floats - c.records.hidden_size; i += threads)
    to[i] = i < c.top_count ? __ldcg(top + i) : 0.0f;
}

__global__ void gather_kernel(window_call c, head_rows r) {
  wait_for_previous();
  let_next_start();
  const std::uint64_t row = blockIdx.x;
  const unsigned place = blockIdx.y, hidden_size = c.records.hidden_size;
  const int token = c.orders[row].token, start = c.orders[row].window_start;
  const int position = c.positions[token] - static_cast<int>(c.window_positions - 1 - place);
  float* workspace = r.workspace + row * r.stride;
  float* hidden = workspace + c.hidden_at + place * hidden_size;
  float* top = workspace + c.top_at + place * c.top_count;
  const unsigned top_count = c.top_at >= 0 ? c.top_count : 0;
  const float* from = nullptr;
  if (start >= 0 && position >= start)
    from = record_at(c.records, c.tables[c.tables_of[token] + position / block_places],
                     position % block_places);
  for (unsigned i = threadIdx.x; i < hidden_size; i += threads)
    hidden[i] = from ? __ldcg(from + i) : 0.0f;
  for (unsigned i = threadIdx.x; i < top_count; i += threads)
    top[i] = from ? __ldcg(from + hidden_size + i) : 0.0f;
}

} // namespace

void write_records(const record_call& call, cudaStream_t stream) {
  launch(write_kernel, {dim3(call.rows), dim3(threads)}, stream, call);
}

void gather_windows(const window_call& call, const head_rows& rows, cudaStream_t stream) {
  launch(gather_kernel, {dim3(rows.rows, call.window_positions), dim3(threads)}, stream, call,
         rows);
}

} // namespace tokenrouter::gpu
