#include "gpu/cuda_backend.hpp"

#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "gpu/block_mover.hpp"
#include "gpu/cuda_error.hpp"
#include "gpu/device_quiet.hpp"
#include "gpu/forward.hpp"
#include "gpu/graph_cache.hpp"
#include "gpu/layer_tuning.hpp"
#include "gpu/load_facts.hpp"
#include "gpu/model_weights.hpp"
#include "gpu/nccl/communicator.hpp"
#include "gpu/recorded_work.hpp"
#include "gpu/sibling_pool.hpp"
#include "gpu/stream_owner.hpp"
#include "gpu/wave_buffers.hpp"
#include "gpu/wave_results.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/load_contract.hpp"
#include "runtime/exec/model_tensors.hpp"
#include "runtime/exec/safetensors.hpp"
#include "runtime/exec/step_contract.hpp"

namespace tokenrouter {
namespace gpu {
namespace {

/// Of any device, for estimates made where there is none.
constexpr std::uint32_t processors_max = 192;

/// The driver's context, cuBLASLt with its workspace, graphs: what estimates add for a model.
constexpr std::uint64_t reserved_bytes = std::uint64_t{1} << 30;

result<kv_shape> kv_shape_of(const load_options& options, const model_config& config) {
  const auto floats = window_record_floats(options.heads, config.hidden_size);
  if (!floats)
    return tl::unexpected(floats.error());
  return kv_shape(config, options.compute, *floats);
}

/// Block ids of one wave, at most: every row with a full context.
std::uint64_t tables_max(const model_config& config) {
  const std::uint64_t blocks =
      (config.context_tokens_max + limits::block_tokens - 1) / limits::block_tokens;
  return blocks * limits::batch_rows_max;
}

class model_on_gpu final : public backend {
 public:
  static result<std::unique_ptr<model_on_gpu>> load(const load_options& options,
                                                    const cuda_options& cuda);

  const model_facts& facts() const override { return facts_; }
  result<void> allocate_kv(std::uint32_t blocks) override;
  void step(const step_input& in, step_output& out) override;
  void copy_blocks(std::span<const block_copy> copies) override;
  void export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) override {
    mover_.to_host(pool(), blocks, bytes);
  }
  void import_blocks(std::span<const block_id> blocks, std::span<const std::byte> bytes) override {
    mover_.to_device(pool(), blocks, bytes);
  }
  std::vector<std::byte> kv_address() const override;
  result<std::unique_ptr<kv_source>> reach_kv(std::span<const std::byte> address) override {
    return reach_pool_at(address, pool(), mover_.stream());
  }

  const wave_results& results() const { return *results_; }
  double replay_us(std::uint32_t times);

 private:
  explicit model_on_gpu(const cuda_options& cuda)
      : cuda_(cuda), stream_(cuda.first), mover_(cuda.device) {}
  result<void> warm_up();
  result<void> wait();
  result<void> run_wave(const step_input& in, step_output& out);
  void enqueue(const wave_bucket& bucket, std::uint32_t tiles, bool has_pieces, bool has_ends);
  void enqueue_copies(std::span<const block_copy> copies);
  pool_view pool() const { return {&kv_, cuda_.device, facts_.kv_bytes_per_block, blocks_}; }

  cuda_options cuda_;
  stream_owner stream_;
  block_mover mover_;                   ///< of KV, beside steps
  model_config config_;                 ///< of this shard
  std::unique_ptr<communicator> group_; ///< null: not split
  model_facts facts_;
  model_weights weights_;
  wave_limits limits_;
  std::optional<forward_pass> forward_;
  std::optional<wave_results> results_;
  std::optional<wave_buffers> buffers_;
  graph_cache graphs_;
  device_memory kv_;
  std::uint32_t blocks_ = 0;
  wave wave_;
  wave_bucket last_bucket_;
};

result<std::unique_ptr<model_on_gpu>> model_on_gpu::load(const load_options& options,
                                                         const cuda_options& cuda) {
  auto config = read_config(options);
  if (!config)
    return tl::unexpected(config.error());
  const auto taken = take_device(cuda.device);
  if (!taken)
    return tl::unexpected(taken.error());
  std::unique_ptr<model_on_gpu> model(new model_on_gpu(cuda));
  if (!has_sm_90(taken->target))
    model->cuda_.one_kernel = false; // there is none
  auto shard = shard_of(*config, options.group.count);
  if (!shard)
    return tl::unexpected(shard.error());
  model->config_ = std::move(*shard);
  const model_config& c = model->config_;
  if (options.group.count > 1) {
    auto group = communicator::join(options.group, cuda.device);
    if (!group)
      return tl::unexpected(group.error());
    model->group_ = std::move(*group);
  }
  std::shared_lock loads(quiet_of(cuda.device));
  auto weights = load_weights(options, *config, c, model->stream_);
  if (!weights)
    return tl::unexpected(weights.error());
  model->weights_ = std::move(*weights);
  const auto kv = kv_shape_of(options, c);
  if (!kv)
    return tl::unexpected(kv.error());
  auto pass = forward_pass::create(c, model->weights_, *kv, model->limits_, taken->processors,
                                   model->cuda_.one_kernel.value_or(true), model->group_.get(),
                                   model->stream_);
  if (!pass)
    return tl::unexpected(pass.error());
  model->forward_.emplace(std::move(*pass));
  auto results = wave_results::create(options, c, model->weights_, *kv, model->limits_.ends_max,
                                      model->group_.get());
  if (!results)
    return tl::unexpected(results.error());
  model->results_.emplace(std::move(*results));
  auto buffers = wave_buffers::create(model->limits_, model->forward_->attention(), tables_max(c));
  if (!buffers)
    return tl::unexpected(buffers.error());
  model->buffers_.emplace(std::move(*buffers));
  model->facts_ = {.architecture = c.architecture,
                   .vocab_tokens = c.vocab_tokens,
                   .context_tokens_max = c.context_tokens_max,
                   .eos_tokens = c.eos_tokens,
                   .weight_bytes = model->weights_.bytes.bytes() + model->forward_->bytes() +
                                   model->results_->bytes(),
                   .kv_bytes_per_block = kv->block * element_bytes(options.compute),
                   .kernels = kernels_name(taken->facts, taken->target),
                   .kv_layout = "cuda"};
  if (model->group_)
    model->facts_.kernels += ", sums over shards by " + model->group_->way();
  cuda_check(cudaStreamSynchronize(model->stream_));
  loads.unlock();
  if (auto ok = model->warm_up(); !ok)
    return tl::unexpected(ok.error());
  return model;
}

/// Finds the fastest products for every size that graphs are made for, and makes those of plain
/// decoding, so that no step of a job has to.
result<void> model_on_gpu::warm_up() {
  {
    const std::unique_lock alone(quiet_of(cuda_.device));
    for (const std::uint32_t size : graph_sizes) {
      forward_->tune(size, stream_);
      results_->tune(*forward_, size, stream_);
    }
    cuda_check(cudaStreamSynchronize(stream_));
  }
  // Connections between shards are made by their first use, which no graph can record.
  forward_->meet_shards(stream_);
  return wait();
}

/// For the device; of several shards, as long as the others are there.
result<void> model_on_gpu::wait() {
  if (group_)
    return group_->wait(stream_);
  cuda_check(cudaStreamSynchronize(stream_));
  return {};
}

result<void> model_on_gpu::allocate_kv(std::uint32_t blocks) {
  check(blocks_ == 0, "allocate_kv: called once");
  auto kv = device_memory::allocate(blocks * facts_.kv_bytes_per_block);
  if (!kv)
    return tl::unexpected(kv.error());
  kv_ = std::move(*kv);
  blocks_ = blocks;
  if (!cuda_.one_kernel) {
    const std::unique_lock alone(quiet_of(cuda_.device));
    tune_layers(*forward_, *buffers_, limits_, config_, {kv_.as(), blocks_}, stream_);
  }
  if (cuda_.graphs)
    for (const std::uint32_t size : graph_sizes)
      graphs_.capture({size, size}, stream_, [&] {
        enqueue({size, size}, 0, forward_->attention().fast, true);
      });
  return wait();
}

void model_on_gpu::enqueue(const wave_bucket& bucket, std::uint32_t tiles, bool has_pieces,
                           bool has_ends) {
  const device_wave on_device = buffers_->view(bucket);
  forward_->run(on_device, bucket.tokens, tiles, has_pieces, kv_.as(), stream_);
  if (has_ends)
    results_->run(on_device, bucket, *forward_, kv_.as(), stream_);
}

result<void> model_on_gpu::run_wave(const step_input& in, step_output& out) {
  const auto tokens = static_cast<std::uint32_t>(wave_.ids.size());
  const auto ends = static_cast<std::uint32_t>(wave_.ends.size());
  const wave_bucket padded{graph_size_for(tokens), graph_size_for(ends), wave_.has_biases};
  const bool graph = cuda_.graphs && wave_.tiles.empty() && !wave_.answers_whole && ends > 0 &&
                     padded.tokens > 0 && padded.ends > 0;
  const wave_bucket bucket = graph ? padded : wave_bucket{tokens, ends, wave_.has_biases};
  buffers_->upload(wave_, bucket, stream_);
  if (graph) {
    if (!graphs_.has(bucket))
      graphs_.capture(bucket, stream_,
                      [&] { enqueue(bucket, 0, forward_->attention().fast, true); });
    graphs_.launch(bucket, stream_);
    last_bucket_ = bucket;
  } else {
    enqueue(bucket, static_cast<std::uint32_t>(wave_.tiles.size()), !wave_.pieces.empty(),
            ends > 0);
  }
  if (auto ok = wait(); !ok)
    return ok;
  const auto drawn = results_->drawn();
  const auto likeliest = wave_.tells_likeliest ? results_->read_likeliest(ends, stream_)
                                               : std::span<const likely_token>();
  for (std::size_t i = 0; i < wave_.ends.size(); ++i) {
    const wave_end& end = wave_.ends[i];
    const drawn_row& from = drawn[i];
    step_row_output& to =
        end.earlier == wave_end::last ? out.rows[end.row] : out.earlier[end.earlier];
    const signal_set signals = in.rows[end.row].signals;
    to.token = from.token;
    to.logprob = from.logprob;
    to.entropy_nats = from.entropy_nats;
    to.entropy_normalised = from.entropy_normalised;
    to.entropy_top20_nats = from.entropy_top20_nats;
    to.aleatoric = from.aleatoric;
    to.epistemic = from.epistemic;
    to.scored_logprob = from.scored_logprob;
    for (std::uint32_t k = 0; k < in.rows[end.row].likeliest_count; ++k) {
      const likely_token& likely = likeliest[i * likeliest_max + k];
      out.likeliest[to.likeliest_offset + k] = {likely.token, likely.logprob};
    }
    if (has(signals, signal::heads))
      std::copy_n(from.head_scores, to.head_scores.size(), to.head_scores.begin());
  }
  return {};
}

void model_on_gpu::step(const step_input& in, step_output& out) {
  const std::uint64_t began_us = monotonic_us();
  const std::uint32_t legal = results_->vocab_legal_tokens();
  check_step(in, {blocks_, config_.context_tokens_max, config_.vocab_tokens, legal,
                  results_->reads_window()});
  enqueue_copies(in.copies);
  lay_out_results(in, legal, out);
  if (auto room = results_->prepare(in, out.distributions.size(), stream_); !room)
    check(false, room.error().message.c_str());
  wave_cutter cutter(in, limits_, forward_->attention(), legal);
  out.failure.clear();
  while (cutter.next(wave_))
    if (auto ran = run_wave(in, out); !ran) {
      out.failure = ran.error().message;
      return;
    }
  if (!out.distributions.empty())
    results_->read_distributions(out.distributions, stream_);
  out.step_us = static_cast<std::uint32_t>(monotonic_us() - began_us);
}

void model_on_gpu::copy_blocks(std::span<const block_copy> copies) {
  enqueue_copies(copies);
  cuda_check(cudaStreamSynchronize(stream_));
}

void model_on_gpu::enqueue_copies(std::span<const block_copy> copies) {
  for (const auto& copy : copies)
    if (copy.from != copy.to)
      cuda_check(cudaMemcpyAsync(pool().at(copy.to), pool().at(copy.from),
                                 facts_.kv_bytes_per_block, cudaMemcpyDeviceToDevice, stream_));
}

std::vector<std::byte> model_on_gpu::kv_address() const {
  return address_of(pool());
}

double model_on_gpu::replay_us(std::uint32_t times) {
  check(graphs_.has(last_bucket_), "replay_us: the last step was a graph");
  device_timer timer;
  timer.begin(stream_);
  for (std::uint32_t i = 0; i < times; ++i)
    graphs_.launch(last_bucket_, stream_);
  timer.end(stream_);
  cuda_check(cudaStreamSynchronize(stream_));
  return timer.us() / times;
}

model_on_gpu& on_gpu(backend& b) {
  auto* model = dynamic_cast<model_on_gpu*>(&b);
  check(model, "a backend of make_cuda_backend");
  return *model;
}

const model_on_gpu& on_gpu(const backend& b) {
  return on_gpu(const_cast<backend&>(b));
}

} // namespace

std::vector<float> hidden_of(const backend& cuda_backend, std::uint32_t end) {
  return on_gpu(cuda_backend).results().hidden_of(end);
}

std::vector<float> logits_of(const backend& cuda_backend, std::uint32_t end) {
  return on_gpu(cuda_backend).results().logits_of(end);
}

double replay_us(backend& cuda_backend, std::uint32_t times) {
  return on_gpu(cuda_backend).replay_us(times);
}

} // namespace gpu

result<std::unique_ptr<backend>> make_cuda_backend(const load_options& options,
                                                   const cuda_options& cuda) {
  auto model = gpu::model_on_gpu::load(options, cuda);
  if (!model)
    return tl::unexpected(model.error());
  return std::unique_ptr<backend>(std::move(*model));
}

result<std::vector<std::byte>> make_cuda_group() {
  return gpu::make_group_id();
}

result<model_memory> estimate_cuda_memory(const load_options& options) {
  const auto whole = gpu::read_config(options);
  if (!whole)
    return tl::unexpected(whole.error());
  const auto config = shard_of(*whole, options.group.count);
  if (!config)
    return fail(config.error().code, options.model_path.string() + ": " + config.error().message);
  if (!options.dummy_weights) {
    const auto files = weight_files::open(options.model_path);
    if (!files)
      return tl::unexpected(files.error());
    if (auto found = find_model_tensors(*files, *whole); !found)
      return tl::unexpected(found.error());
  }
  const auto kv = gpu::kv_shape_of(options, *config);
  if (!kv)
    return tl::unexpected(kv.error());
  const gpu::wave_limits waves;
  model_memory needed{
      .weight_bytes = gpu::weight_memory_bytes(*config, options.compute) +
                      gpu::activation_bytes(*config, options.compute, waves, gpu::processors_max) +
                      std::uint64_t{waves.ends_max} * legal_tokens(options, *config) *
                          sizeof(float) * (options.group.count > 1 ? 2 : 1) +
                      gpu::reserved_bytes,
      .kv_bytes_per_block = kv->block * gpu::element_bytes(options.compute)};
  const auto heads = heads_memory_bytes(options.heads);
  if (!heads)
    return tl::unexpected(heads.error());
  needed.weight_bytes += *heads;
  return needed;
}

} // namespace tokenrouter
