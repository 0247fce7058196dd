#include "tests/support/server.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace tokenrouter::test {

namespace {

constexpr int start_timeout_s = 60;
constexpr int end_timeout_s = 60;
constexpr int kill_timeout_s = 10;

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

test_server::test_server(int ranks, const std::string& config, const std::string& more) {
  const std::string serve = program() + " serve --config " + config + " --port 0 --port-file " +
                            scratch_.file("port") + " " + more;
  const std::string rank = "sh -c 'echo $$ > " + scratch_.file("pid") +
                           "-${OMPI_COMM_WORLD_RANK:-0}; exec " + serve + "'";
  const std::string line =
      "exec " + (ranks == 0 ? "" : mpirun(ranks)) + rank + " > " + scratch_.file("log") + " 2>&1";
  child_ = fork();
  if (child_ == 0) {
    setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < start_timeout_s * 20 && port_ == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    port_ = static_cast<std::uint16_t>(std::atoi(read_file(scratch_.file("port")).c_str()));
  }
  const auto ready = run_command(program() + " wait --url " + url() + " --timeout-s " +
                                 std::to_string(start_timeout_s));
  if (port_ == 0 || ready.exit_code != 0)
    throw std::runtime_error("the server did not start: " + ready.output + output());
}

test_server::~test_server() {
  if (child_ < 0)
    return;
  // The ranks are not in mpirun's process group: the others end when the first is gone.
  if (const pid_t rank = leader(); rank > 0)
    kill(rank, SIGKILL);
  kill(-child_, SIGTERM);
  for (int i = 0; i < kill_timeout_s * 50 && waitpid(child_, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill(-child_, SIGKILL);
}

pid_t test_server::process_of(int rank) const {
  return std::atoi(read_file(scratch_.file("pid-" + std::to_string(rank))).c_str());
}

int test_server::wait() {
  int status = 0;
  for (int i = 0; i < end_timeout_s * 50; ++i) {
    if (waitpid(child_, &status, WNOHANG) == child_) {
      child_ = -1;
      return code_of(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw std::runtime_error("the server did not end: " + output());
}

std::string test_server::output() const {
  return read_file(scratch_.file("log"));
}

double test_server::metric(const std::string& name) const {
  http_client client(port_);
  std::istringstream page(client.get("/metrics").body);
  double sum = 0;
  for (std::string line; std::getline(page, line);)
    if (line.rfind(name + "{", 0) == 0)
      sum += std::atof(line.substr(line.rfind(' ')).c_str());
  return sum;
}

} // namespace tokenrouter::test
