#include "tests/support/command.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tokenrouter::test {

command_result run_command(const std::string& command) {
  command_result result;
  FILE* pipe = popen(("{ " + command + " ; } 2>&1").c_str(), "r");
  if (pipe == nullptr)
    throw std::runtime_error("can't start a shell");
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string mpirun(int ranks) {
  return "mpirun -np " + std::to_string(ranks) + " --oversubscribe " +
         (geteuid() == 0 ? "--allow-run-as-root " : "");
}

std::string program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tokenrouter").string();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

} // namespace tokenrouter::test
