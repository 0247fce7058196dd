#include "launch/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "launch/terminal.hpp"
#include "runtime/core/clock.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t width = 30;
constexpr std::uint64_t redraw_us = 100'000;

} // namespace

progress_bar::progress_bar(std::size_t total)
    : shown_(total > 1 && shows_on_terminal(STDERR_FILENO)), total_(total),
      started_us_(monotonic_us()) {}

void progress_bar::advance(std::size_t tokens) {
  ++done_;
  tokens_ += tokens;
  const std::uint64_t now_us = monotonic_us();
  if (!shown_ || (now_us - drawn_us_ < redraw_us && done_ < total_))
    return;
  drawn_us_ = now_us;
  const std::size_t filled = width * done_ / total_;
  const double seconds = static_cast<double>(now_us - started_us_) / 1e6;
  std::fprintf(stderr, "\r[%s%s] %zu/%zu requests, %.0f tok/s ", std::string(filled, '#').c_str(),
               std::string(width - filled, '.').c_str(), done_, total_,
               seconds > 0 ? static_cast<double>(tokens_) / seconds : 0.0);
}

void progress_bar::finish() {
  if (shown_)
    std::fprintf(stderr, "\r%*s\r", static_cast<int>(width) + 50, "");
}

} // namespace tokenrouter
