#include "runtime/exec/cpu/cpu_backend.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/debug.hpp"
#include "runtime/exec/cpu/forward.hpp"
#include "runtime/exec/cpu/row_results.hpp"
#include "runtime/exec/cpu/weights.hpp"
#include "runtime/exec/cpu/window_records.hpp"
#include "runtime/exec/heads/head.hpp"
#include "runtime/exec/kv_region.hpp"
#include "runtime/exec/load_contract.hpp"
#include "runtime/exec/step_contract.hpp"

namespace tokenrouter {
namespace cpu {
namespace {

/// Weight bytes read, once for each token, under which one thread is faster than several: they meet
/// half a dozen times a layer, and waking one takes as long as megabytes from the cache.
constexpr std::uint64_t shared_work_bytes_min = std::uint64_t{4} << 20;

constexpr std::uint32_t head_dim_max = 512;
constexpr std::uint32_t threads_max = 1024;

storage storage_of(compute_type compute) {
  return compute == compute_type::bfloat16 ? storage::bf16 : storage::f32;
}

/// What both loading and estimating need to know and refuse.
result<model_config> read_config(const load_options& options) {
  auto config = load_fitting_config(options);
  if (!config)
    return config;
  if (config->head_dim > head_dim_max)
    return fail(errc::mismatch, options.model_path.string() + ": head_dim " +
                                    std::to_string(config->head_dim) + " is above the " +
                                    std::to_string(head_dim_max) + " that the CPU kernels take");
  if (options.threads < 1 || options.threads > threads_max)
    return fail(errc::invalid_argument, "a model needs 1 to " + std::to_string(threads_max) +
                                            " threads, not " + std::to_string(options.threads));
  return config;
}

class model_on_cpu final : public backend {
 public:
  static result<std::unique_ptr<model_on_cpu>> load(const load_options& options);

  const model_facts& facts() const override { return facts_; }
  result<void> allocate_kv(std::uint32_t blocks) override;
  void step(const step_input& in, step_output& out) override;
  void copy_blocks(std::span<const block_copy> copies) override;
  void export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) override;
  void import_blocks(std::span<const block_id> blocks, std::span<const std::byte> bytes) override;
  std::vector<std::byte> kv_address() const override { return kv_address_; }
  result<std::unique_ptr<kv_source>> reach_kv(std::span<const std::byte> address) override {
    return reach_region(address, region());
  }

  void set_tap(row_results::row_tap tap) { results_->set_tap(std::move(tap)); }
  void poison();

 private:
  explicit model_on_cpu(std::uint32_t threads) : pool_(threads) {}
  void add_tokens(const step_input& in, std::size_t row_number, std::uint32_t& done);
  void run_wave(const step_input& in, step_output& out);
  std::byte* block_at(block_id block) const;
  kv_region region() const { return {kv_, kv_->data(), facts_.kv_bytes_per_block, blocks_}; }

  thread_pool pool_;
  model_config config_;
  model_facts facts_;
  model_weights weights_;
  std::optional<forward_pass> forward_;
  std::optional<row_results> results_;
  std::shared_ptr<memory> kv_ = std::make_shared<memory>(); ///< siblings here may read it
  std::vector<std::byte> kv_address_;
  std::uint32_t blocks_ = 0;
  wave wave_;
  std::uint32_t tile_tokens_max_ = 1;
  std::size_t next_earlier_ = 0; ///< of the step under way
};

result<std::unique_ptr<model_on_cpu>> model_on_cpu::load(const load_options& options) {
  auto config = read_config(options);
  if (!config)
    return tl::unexpected(config.error());
  const auto kernels = choose_kernels_by_environment();
  if (!kernels)
    return tl::unexpected(kernels.error());
  const auto files = weight_files::open(options.model_path);
  if (!files)
    return tl::unexpected(files.error());
  limit_library_threads();
  std::unique_ptr<model_on_cpu> model(new model_on_cpu(options.threads));
  model->config_ = std::move(*config);
  const model_config& c = model->config_;
  auto weights = load_weights(*files, c, storage_of(options.compute), model->pool_);
  if (!weights)
    return tl::unexpected(weights.error());
  model->weights_ = std::move(*weights);
  std::vector<std::unique_ptr<routing_head>> heads;
  for (const auto& spec : options.heads) {
    auto head = load_head(spec, c.hidden_size);
    if (!head)
      return tl::unexpected(head.error());
    heads.push_back(std::move(*head));
  }
  const auto floats = window_record_floats(options.heads, c.hidden_size);
  if (!floats)
    return tl::unexpected(floats.error());
  const kv_layout layout(c, model->weights_.kind, *floats);
  auto pass = forward_pass::create(c, model->weights_, **kernels, layout, options.threads);
  if (!pass)
    return tl::unexpected(pass.error());
  model->forward_.emplace(std::move(*pass));
  const std::uint32_t legal = legal_tokens(options, c);
  auto results = row_results::create(c, model->weights_, **kernels, options.threads, layout, legal,
                                     std::move(heads));
  if (!results)
    return tl::unexpected(results.error());
  model->results_.emplace(std::move(*results));
  model->wave_.reserve();
  model->tile_tokens_max_ = std::max(1u, attention_queries_max / (c.heads / c.kv_heads));
  model->facts_ = {.architecture = c.architecture,
                   .vocab_tokens = c.vocab_tokens,
                   .context_tokens_max = c.context_tokens_max,
                   .eos_tokens = c.eos_tokens,
                   .weight_bytes = model->weights_.bytes.bytes() + model->results_->head_bytes(),
                   .kv_bytes_per_block = layout.block_bytes,
                   .kernels = (*kernels)->name,
                   .kv_layout = (*kernels)->name};
  return model;
}

result<void> model_on_cpu::allocate_kv(std::uint32_t blocks) {
  check(blocks_ == 0, "allocate_kv: called once");
  auto kv = memory::allocate(blocks * facts_.kv_bytes_per_block);
  if (!kv)
    return tl::unexpected(kv.error());
  *kv_ = std::move(*kv);
  blocks_ = blocks;
  kv_address_ = publish_kv(region());
  return {};
}

std::byte* model_on_cpu::block_at(block_id block) const {
  check(block < blocks_, "block id below the allocated count");
  return kv_->data() + block * facts_.kv_bytes_per_block;
}

/// Moves tokens of a row, from `done` on, into the wave as far as it has room.
void model_on_cpu::add_tokens(const step_input& in, std::size_t row_number, std::uint32_t& done) {
  const step_row& row = in.rows[row_number];
  while (done < row.token_count && wave_.tokens.size() < wave_tokens_max) {
    const auto room = wave_tokens_max - static_cast<std::uint32_t>(wave_.tokens.size());
    const std::uint32_t count = std::min({row.token_count - done, room, tile_tokens_max_});
    wave_.tiles.push_back({static_cast<std::uint32_t>(wave_.tokens.size()), count});
    for (std::uint32_t i = 0; i < count; ++i, ++done) {
      const auto place = static_cast<std::uint32_t>(wave_.tokens.size());
      wave_.tokens.push_back({in.tokens[row.token_offset + done], row.start_position + done,
                              in.block_tables.data() + row.block_offset});
      const std::uint32_t left = row.token_count - done;
      if (left <= row.answered_positions)
        wave_.ends.push_back({row_number, place, left == 1 ? wave_end::last : next_earlier_++});
    }
  }
}

void model_on_cpu::run_wave(const step_input& in, step_output& out) {
  const auto job = [&](worker& w) {
    forward_->run(w, wave_, kv_->data());
    results_->run(w, wave_, *forward_, kv_->data(), in, out);
  };
  if (wave_.tokens.size() * facts_.weight_bytes < shared_work_bytes_min)
    pool_.run_alone(std::ref(job));
  else
    pool_.run(std::ref(job));
  wave_.clear();
}

void model_on_cpu::step(const step_input& in, step_output& out) {
  const std::uint64_t began_us = monotonic_us();
  check_step(in, {blocks_, config_.context_tokens_max, config_.vocab_tokens,
                  results_->vocab_legal_tokens(), results_->reads_window()});
  copy_blocks(in.copies);
  lay_out_results(in, results_->vocab_legal_tokens(), out);
  next_earlier_ = 0;
  for (std::size_t row = 0; row < in.rows.size(); ++row)
    for (std::uint32_t done = 0; done < in.rows[row].token_count;) {
      if (wave_.tokens.size() == wave_tokens_max)
        run_wave(in, out);
      add_tokens(in, row, done);
    }
  run_wave(in, out);
  out.step_us = static_cast<std::uint32_t>(monotonic_us() - began_us);
}

void model_on_cpu::copy_blocks(std::span<const block_copy> copies) {
  for (const auto& copy : copies)
    if (copy.from != copy.to)
      std::memcpy(block_at(copy.to), block_at(copy.from), facts_.kv_bytes_per_block);
}

void model_on_cpu::export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) {
  const std::size_t each = facts_.kv_bytes_per_block;
  check(bytes.size() == blocks.size() * each, "export_blocks: as many bytes as the blocks have");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::memcpy(bytes.data() + i * each, block_at(blocks[i]), each);
}

void model_on_cpu::import_blocks(std::span<const block_id> blocks,
                                 std::span<const std::byte> bytes) {
  const std::size_t each = facts_.kv_bytes_per_block;
  check(bytes.size() == blocks.size() * each, "import_blocks: as many bytes as the blocks have");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::memcpy(block_at(blocks[i]), bytes.data() + i * each, each);
}

void model_on_cpu::poison() {
  for (memory* m : {kv_.get(), &forward_->activations(), &results_->activations()})
    if (m->bytes())
      std::memset(m->data(), 0xff, m->bytes());
}

model_on_cpu& on_cpu(backend& b) {
  auto* model = dynamic_cast<model_on_cpu*>(&b);
  check(model, "a backend of make_cpu_backend");
  return *model;
}

} // namespace

void tap_rows(backend& cpu_backend, row_results::row_tap tap) {
  on_cpu(cpu_backend).set_tap(std::move(tap));
}

void poison(backend& cpu_backend) {
  on_cpu(cpu_backend).poison();
}

} // namespace cpu

result<std::unique_ptr<backend>> make_cpu_backend(const load_options& options) {
  auto model = cpu::model_on_cpu::load(options);
  if (!model)
    return tl::unexpected(model.error());
  return std::unique_ptr<backend>(std::move(*model));
}

result<model_memory> estimate_cpu_memory(const load_options& options) {
  const auto config = cpu::read_config(options);
  if (!config)
    return tl::unexpected(config.error());
  const auto files = weight_files::open(options.model_path);
  if (!files)
    return tl::unexpected(files.error());
  if (auto checked = cpu::check_tensors(*files, *config); !checked)
    return tl::unexpected(checked.error());
  const auto kind = cpu::storage_of(options.compute);
  const auto floats = window_record_floats(options.heads, config->hidden_size);
  if (!floats)
    return tl::unexpected(floats.error());
  model_memory needed{.weight_bytes = cpu::weight_memory_bytes(*config, kind),
                      .kv_bytes_per_block = cpu::kv_layout(*config, kind, *floats).block_bytes};
  const auto heads = heads_memory_bytes(options.heads);
  if (!heads)
    return tl::unexpected(heads.error());
  needed.weight_bytes += *heads;
  return needed;
}

} // namespace tokenrouter
