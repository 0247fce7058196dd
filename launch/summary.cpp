#include "launch/summary.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "launch/painter.hpp"
#include "runtime/core/quantile.hpp"

namespace tokenrouter {

run_summary::run_summary(std::vector<std::string> model_names)
    : names_(std::move(model_names)), usage_(names_.size()), generated_(names_.size()),
      lacked_(names_.size()) {}

void run_summary::add(const request_done& done) {
  ++requests_;
  if (done.finish == finish_reason::failed)
    ++failed_;
  output_tokens_ += done.output.size();
  handoffs_ += done.handoffs;
  if (!done.output.empty())
    ttft_us_.push_back(done.ttft_us);
  for (std::size_t i = 0; i < done.usage.size() && i < usage_.size(); ++i) {
    generated_[i] += done.usage[i].generated_tokens;
    lacked_[i] += done.usage[i].kv_tokens;
    usage_[i].computed_tokens += done.usage[i].computed_tokens;
    usage_[i].cached_tokens += done.usage[i].cached_tokens;
    usage_[i].recomputed_tokens += done.usage[i].recomputed_tokens;
  }
}

std::string run_summary::table(std::uint64_t elapsed_us, bool colours) const {
  std::size_t width = 5;
  for (const auto& name : names_)
    width = std::max(width, name.size());
  std::string out = fmt::format("{:<{}}  {:>8}  {:>7}  {:>10}  {:>8}  {:>10}\n", "model", width,
                                "tokens", "share", "computed", "cached", "lacked");
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const double share = output_tokens_ == 0 ? 0.0
                                             : 100.0 * static_cast<double>(generated_[i]) /
                                                   static_cast<double>(output_tokens_);
    out += paint({static_cast<std::uint16_t>(i)}, fmt::format("{:<{}}", names_[i], width), colours);
    out += fmt::format("  {:>8}  {:>5.1f} %  {:>10}  {:>8}  {:>10}\n", generated_[i], share,
                       usage_[i].computed_tokens, usage_[i].cached_tokens, lacked_[i]);
  }
  auto ttft_us = ttft_us_;
  std::sort(ttft_us.begin(), ttft_us.end());
  const std::span<const std::uint64_t> sorted_us = ttft_us;
  const double seconds = static_cast<double>(elapsed_us) / 1e6;
  out += fmt::format("{} requests{}, {} tokens, {} handoffs in {:.2f} s: {:.0f} tok/s; "
                     "TTFT p50 {:.1f} ms, p99 {:.1f} ms\n",
                     requests_, failed_ > 0 ? fmt::format(" ({} failed)", failed_) : "",
                     output_tokens_, handoffs_, seconds,
                     seconds > 0 ? static_cast<double>(output_tokens_) / seconds : 0.0,
                     static_cast<double>(quantile(sorted_us, 0.5)) / 1000.0,
                     static_cast<double>(quantile(sorted_us, 0.99)) / 1000.0);
  return out;
}

} // namespace tokenrouter
