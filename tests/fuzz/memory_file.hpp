#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/core/check.hpp"

namespace tokenrouter::test {

/// Bytes under a path, without a disk: for parsers that take a file. Gone with the object.
class memory_file {
 public:
  memory_file(const std::uint8_t* data, std::size_t bytes) : fd_(memfd_create("fuzz", 0)) {
    check(fd_ >= 0, "a file in memory");
    check(write(fd_, data, bytes) == static_cast<ssize_t>(bytes), "it takes all bytes");
  }
  ~memory_file() { close(fd_); }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

} // namespace tokenrouter::test
