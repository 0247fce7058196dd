#include "runtime/exec/heads/r2r_head.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/r2r_network.hpp"

namespace tokenrouter {

namespace {

class r2r_head final : public routing_head {
 public:
  explicit r2r_head(r2r_network network) : network_(std::move(network)) {}

  std::uint32_t top_logits_wanted() const override { return network_.logits_wanted(); }
  bool wants_proposed_embedding() const override { return true; }

  float score(const head_input& in) override {
    check(in.hidden.size() == network_.hidden_input().size() &&
              in.proposed_embedding.size() == network_.embedding_input().size(),
          "an r2r head gets hidden state and embedding of its model");
    check(in.top_logits.size() == network_.logits_wanted(),
          "an r2r head gets the logits it asked for");
    std::ranges::copy(in.hidden, network_.hidden_input().begin());
    std::ranges::copy(in.proposed_embedding, network_.embedding_input().begin());
    return network_.score(in.top_logits.data());
  }

  std::uint64_t weight_bytes() const override { return network_.bytes(); }
  head_program program() const override { return network_.program(); }

 private:
  r2r_network network_;
};

class r2r_multi_head final : public routing_head {
 public:
  r2r_multi_head(r2r_network network, std::uint32_t window_positions)
      : network_(std::move(network)), window_positions_(window_positions),
        logits_(network_.logits_wanted()) {}

  std::uint32_t top_logits_wanted() const override {
    return network_.logits_wanted() / window_positions_;
  }
  std::uint32_t window_positions() const override { return window_positions_; }
  bool wants_proposed_embedding() const override { return true; }

  float score(const head_input& in) override {
    const std::size_t hidden = network_.embedding_input().size();
    const std::size_t logits = top_logits_wanted();
    check(in.window.size() == window_positions_ * (hidden + logits),
          "an r2r_multi head gets the window it asked for");
    check(in.proposed_embedding.size() == hidden, "an r2r_multi head gets its model's embedding");
    for (std::size_t w = 0; w < window_positions_; ++w) {
      const auto position = in.window.subspan(w * (hidden + logits), hidden + logits);
      std::ranges::copy(position.first(hidden), network_.hidden_input().data() + w * hidden);
      std::ranges::copy(position.subspan(hidden), logits_.data() + w * logits);
    }
    std::ranges::copy(in.proposed_embedding, network_.embedding_input().begin());
    return network_.score(logits_.data());
  }

  std::uint64_t weight_bytes() const override { return network_.bytes(); }
  head_program program() const override { return network_.program(); }

 private:
  r2r_network network_;
  std::uint32_t window_positions_;
  std::vector<float> logits_; ///< of all positions
};

result<void> check_positions(const head_spec& spec) {
  if (spec.window_positions < 1 || spec.window_positions > limits::top_logits_max)
    return fail(errc::invalid_argument, "a window of " + std::to_string(spec.window_positions) +
                                            " positions; it must be 1 to " +
                                            std::to_string(limits::top_logits_max));
  return {};
}

/// `logits`: that the network takes in all.
result<head_window> divide_logits(const head_spec& spec, std::uint32_t logits) {
  const std::uint32_t window = spec.window_positions;
  if (logits % window != 0)
    return fail(errc::mismatch,
                spec.weights.string() + ": tensor 'logits_projection.weight' takes " +
                    std::to_string(logits) + " logits, which do not divide over a window of " +
                    std::to_string(window) + " positions");
  return head_window{window, logits / window};
}

} // namespace

result<std::unique_ptr<routing_head>> load_r2r_head(const head_spec& spec,
                                                    std::uint32_t hidden_size) {
  auto network = r2r_network::load(spec, hidden_size, hidden_size);
  if (!network)
    return tl::unexpected(network.error());
  return std::make_unique<r2r_head>(std::move(*network));
}

result<head_window> r2r_multi_window(const head_spec& spec) {
  if (auto ok = check_positions(spec); !ok)
    return tl::unexpected(ok.error());
  if (spec.window_positions == 1)
    return head_window{};
  const auto file = head_file::open(spec);
  if (!file)
    return tl::unexpected(file.error());
  const auto logits = file->extent("logits_projection.weight", 1, 2);
  if (!logits)
    return tl::unexpected(logits.error());
  return divide_logits(spec, *logits);
}

result<std::unique_ptr<routing_head>> load_r2r_multi_head(const head_spec& spec,
                                                          std::uint32_t hidden_size) {
  if (auto ok = check_positions(spec); !ok)
    return tl::unexpected(ok.error());
  if (spec.window_positions == 1)
    return load_r2r_head(spec, hidden_size);
  auto network = r2r_network::load(spec, spec.window_positions * hidden_size, hidden_size);
  if (!network)
    return tl::unexpected(network.error());
  if (const auto window = divide_logits(spec, network->logits_wanted()); !window)
    return tl::unexpected(window.error());
  return std::make_unique<r2r_multi_head>(std::move(*network), spec.window_positions);
}

} // namespace tokenrouter
