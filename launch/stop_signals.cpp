#include "launch/stop_signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tokenrouter {

namespace {

constexpr int signal_exit_base = 128;

// Signal handlers reach nothing else.
std::array<int, 2> pipe_ends = {-1, -1};
volatile sig_atomic_t signals_seen = 0;

void take_signal(int number) {
  signals_seen = signals_seen + 1;
  if (signals_seen > 1)
    _exit(signal_exit_base + number);
  const int saved = errno;
  const char byte = static_cast<char>(number);
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
  errno = saved;
}

} // namespace

result<void> stop_signals::install() {
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    return fail(errc::io, std::string("can't make a pipe: ") + std::strerror(errno));
  struct sigaction action = {};
  action.sa_handler = take_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGTERM, SIGINT})
    if (sigaction(number, &action, nullptr) != 0)
      return fail(errc::io, std::string("can't handle signals: ") + std::strerror(errno));
  return {};
}

int stop_signals::wait() {
  char byte = 0;
  while (read(pipe_ends[0], &byte, 1) < 0 && errno == EINTR)
    continue;
  return byte;
}

void stop_signals::wake_up() {
  const char byte = 0;
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
}

} // namespace tokenrouter
