#include "launch/terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace tokenrouter {

bool shows_on_terminal(int descriptor) {
  if (isatty(descriptor) == 0 ||
      (descriptor == STDOUT_FILENO && std::getenv("NO_COLOR") != nullptr))
    return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
    return true;
  std::error_code unreadable; // on other hosts than mpirun's: then nobody looks at it
  const auto target = std::filesystem::read_symlink(
      "/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(descriptor), unreadable);
  const std::string name = target.string();
  return !unreadable && (name.rfind("/dev/pts/", 0) == 0 || name.rfind("/dev/tty", 0) == 0);
}

} // namespace tokenrouter
