#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/check.hpp"

namespace tokenrouter::test {

/// A forked process that writes a trace, with a pipe each way. Numbers only cross: how many rows
/// were flushed, how many more are wanted.
class child_writer {
 public:
  /// `work` runs in the child, which then ends with its value; it never returns to the test.
  explicit child_writer(const std::function<int(child_writer&)>& work) {
    int up[2], down[2];
    check(pipe(up) == 0 && pipe(down) == 0, "pipes can be made");
    std::fflush(nullptr); // or the child would print it once more
    id_ = fork();
    check(id_ >= 0, "a process can be made");
    const bool child = id_ == 0;
    read_ = child ? down[0] : up[0];
    write_ = child ? up[1] : down[1];
    close(child ? down[1] : up[1]);
    close(child ? up[0] : down[0]);
    if (child)
      _exit(work(*this));
  }

  ~child_writer() {
    close(write_);
    close(read_);
    if (id_ > 0)
      kill_now();
  }
  child_writer(const child_writer&) = delete;

  void tell(std::uint64_t number) {
    const auto sent = ::write(write_, &number, sizeof number);
    check(sent == sizeof number, "the other side listens");
  }

  /// Nothing if the other side is gone.
  std::optional<std::uint64_t> hear() {
    std::uint64_t number = 0;
    if (::read(read_, &number, sizeof number) != sizeof number)
      return std::nullopt;
    return number;
  }

  void kill_now() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = 0;
  }

  /// Exit status of the child; 128 + n if signal n ended it.
  int wait() {
    int status = 0;
    ::waitpid(id_, &status, 0);
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_ = 0;
  int read_ = -1;
  int write_ = -1;
};

} // namespace tokenrouter::test
