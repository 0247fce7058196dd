#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "actors/model_kv.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/transport/bulk_mover.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"

/// What it takes to have the KV of a prompt's beginning: running the prompt again, beside fetching
/// the KV from a sibling's pool through UCX (written to a buffer, checksummed, sent, checked, read
/// into the pool; one piece after the other) and beside reading it in place. Two models and two
/// transports in one thread, so nothing overlaps; the few messages that arrange a fetch are not in
/// it.

using namespace tokenrouter;

namespace {

/// The middle one of several runs, in microseconds.
double median_us(int runs, const std::function<void()>& work) {
  std::vector<double> all;
  for (int i = 0; i < runs; ++i) {
    const auto began_ns = monotonic_ns();
    work();
    all.push_back(static_cast<double>(monotonic_ns() - began_ns) / 1000.0);
  }
  std::nth_element(all.begin(), all.begin() + runs / 2, all.end());
  return all[static_cast<std::size_t>(runs) / 2];
}

/// The prompt of `tokens` positions as one step.
step_input prefill(std::uint32_t tokens, std::uint32_t vocab_tokens) {
  step_input in;
  step_row row;
  row.token_count = tokens;
  row.block_count = tokens / limits::block_tokens;
  row.answered_positions = 1;
  for (std::uint32_t i = 0; i < tokens; ++i)
    in.tokens.push_back(static_cast<token_id>((i * 7 + 1) % vocab_tokens));
  for (block_id i = 0; i < row.block_count; ++i)
    in.block_tables.push_back(i);
  in.rows.push_back(row);
  return in;
}

class bench {
 public:
  explicit bench(const load_options& options)
      : a_(load(options)), b_(load(options)), wire_a_(open(0)), wire_b_(open(1)) {
    check(wire_a_->connect({1}, wire_b_->address()).has_value(), "UCX reaches its own host");
    check(wire_b_->connect({0}, wire_a_->address()).has_value(), "UCX reaches its own host");
    mover_a_ = std::make_unique<bulk_mover>(rank_id{0}, &wire_a_->bulk());
    mover_b_ = std::make_unique<bulk_mover>(rank_id{1}, &wire_b_->bulk());
    check(kv_b_.reach({{{0}, 0}, kv_a_.facts().address}).reached, "one process is in reach");
  }

  ~bench() {
    mover_a_.reset();
    mover_b_.reset();
  }

  void compare(std::uint32_t tokens, int runs) {
    const auto in = prefill(tokens, a_->facts().vocab_tokens);
    step_output out;
    a_->step(in, out);
    const double prefill_us = median_us(runs, [&] { a_->step(in, out); });
    const auto blocks = in.rows[0].block_count;
    const double ucx_us = median_us(runs, [&] { fetch(blocks); });
    const double read_us = median_us(runs, [&] { read(blocks); });
    const std::size_t bytes = blocks * a_->facts().kv_bytes_per_block;
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
    const double copy_us = median_us(runs, [&] { std::memcpy(to.data(), from.data(), bytes); });
    const double wire_us = median_us(runs, [&] { move(bytes); });
    const auto rate = [&](double us) { return static_cast<double>(bytes) / us / 1000.0; };
    std::printf("%7u %10.0f %10.0f %8.1f %12.1f %8.1f %10.1f %12.1f\n", tokens, prefill_us, ucx_us,
                prefill_us / ucx_us, read_us, prefill_us / read_us, rate(wire_us), rate(copy_us));
  }

 private:
  static std::unique_ptr<backend> load(const load_options& options) {
    auto model = make_cpu_backend(options);
    if (!model) {
      std::fprintf(stderr, "bench_kv_fetch: %s\n", model.error().message.c_str());
      std::exit(2);
    }
    check((*model)->allocate_kv(blocks_max).has_value(), "there is memory for a small pool");
    return std::move(*model);
  }

  static std::unique_ptr<ucx_transport> open(std::uint32_t rank) {
    auto wire = ucx_transport::create({rank});
    check(wire.has_value(), "UCX starts");
    return std::move(*wire);
  }

  void wait_for(std::uint64_t out, std::uint64_t in) {
    while (mover_b_->test(in) == bulk_stage::moving || mover_a_->test(out) == bulk_stage::moving) {
      wire_a_->progress();
      wire_b_->progress();
    }
    check(mover_b_->test(in) == bulk_stage::moved, "nothing is lost on one host");
  }

  void fetch(std::uint32_t blocks) {
    const std::size_t block_bytes = a_->facts().kv_bytes_per_block;
    const auto piece = static_cast<std::uint32_t>(
        std::max<std::size_t>(1, limits::bulk_piece_bytes / block_bytes));
    for (std::uint32_t first = 0; first < blocks; first += piece) {
      std::vector<block_id> some;
      for (std::uint32_t i = first; i < std::min(blocks, first + piece); ++i)
        some.push_back(i);
      const auto in = mover_b_->prepare(bulk_way::in, some.size() * block_bytes, quiet);
      const auto out = mover_a_->prepare(bulk_way::out, some.size() * block_bytes, quiet);
      const std::uint64_t tag = mover_b_->new_tag();
      mover_b_->receive(in, {0}, tag);
      const auto exported = kv_a_.export_to({1, some, mover_a_->buffer(out)});
      mover_a_->send(out, {1}, tag);
      wait_for(out, in);
      check(kv_b_.import_from({1, some, mover_b_->buffer(in), exported.checksum}).sound,
            "nothing is damaged on one host");
      mover_b_->release(in);
      mover_a_->release(out);
    }
  }

  void read(std::uint32_t blocks) {
    read_blocks order{1, {{0}, 0}, {}};
    for (block_id i = 0; i < blocks; ++i)
      order.copies.push_back({i, i});
    check(kv_b_.read(order).sound, "one process is in reach");
  }

  /// The transfer alone.
  void move(std::size_t bytes) {
    const auto in = mover_b_->prepare(bulk_way::in, bytes, quiet);
    const auto out = mover_a_->prepare(bulk_way::out, bytes, quiet);
    const std::uint64_t tag = mover_b_->new_tag();
    mover_b_->receive(in, {0}, tag);
    mover_a_->send(out, {1}, tag);
    wait_for(out, in);
    mover_b_->release(in);
    mover_a_->release(out);
  }

  static void quiet(std::uint64_t) {}
  static constexpr std::uint32_t blocks_max = 64;

  std::unique_ptr<backend> a_, b_;
  model_kv kv_a_{*a_}, kv_b_{*b_};
  std::unique_ptr<ucx_transport> wire_a_, wire_b_;
  std::unique_ptr<bulk_mover> mover_a_, mover_b_;
};

} // namespace

int main(int argc, char** argv) {
  CLI::App program("Fetch KV from a sibling, beside running the prompt again.");
  load_options options;
  options.model_path = "examples/models/abacus/abacus-m";
  int runs = 21;
  program.add_option("model", options.model_path)->capture_default_str();
  program.add_option("--threads", options.threads)->capture_default_str();
  program.add_option("--runs", runs)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  bench one(options);
  std::printf("%7s %10s %10s %8s %12s %8s %10s %12s\n", "tokens", "prefill us", "by UCX us",
              "times", "in place us", "times", "UCX GB/s", "memcpy GB/s");
  for (const std::uint32_t tokens : {16, 32, 64, 128, 256, 512, 1024})
    one.compare(tokens, runs);
}
