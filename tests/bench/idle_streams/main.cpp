// What clients that wait cost a server of two ranks, in CPU time: connections between two requests,
// and streams in the middle of an answer (the second rank is stopped, so that every answer waits
// for it). Afterwards all streams must come to their end. Run it on an idle machine:
//   build/release/bench_idle_streams [clients] [seconds]
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/server.hpp"

using namespace tokenrouter::test;

namespace {

/// User and system time of a process so far.
double cpu_seconds(pid_t process) {
  const std::string stat = read_file("/proc/" + std::to_string(process) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i)
    fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void report(const char* what, const test_server& server, double seconds) {
  std::vector<double> before;
  for (int rank = 0; rank < 2; ++rank)
    before.push_back(cpu_seconds(server.process_of(rank)));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  double used[2];
  for (int rank = 0; rank < 2; ++rank)
    used[rank] = cpu_seconds(server.process_of(rank)) - before[static_cast<std::size_t>(rank)];
  std::printf("%-34s rank 0: %5.2f %% of a core, rank 1: %5.2f %%\n", what, 100 * used[0] / seconds,
              100 * used[1] / seconds);
  std::fflush(stdout);
}

void wait_until_quiet(const test_server& server) {
  for (double before = -1, now = 0; now != before;) {
    before = now;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    now = cpu_seconds(server.leader());
    now = now - before < 0.02 ? before : now; // at work above 2 % of a core
  }
}

} // namespace

int main(int argc, char** argv) {
  const int clients = argc > 1 ? std::atoi(argv[1]) : 1000;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 10;
  const std::string room = std::to_string(clients + 8);
  test_server server(2, "configs/r2r/abacus-xs_abacus-m.yaml",
                     "--set serve.connections_max=" + room + " --set serve.requests_max=" + room +
                         " --set serve.idle_timeout_ms=3600000"
                         " --set system.peer_timeout_ms=600000");
  report("no client", server, seconds);

  std::vector<std::unique_ptr<http_client>> all;
  for (int i = 0; i < clients; ++i) {
    all.push_back(std::make_unique<http_client>(server.port()));
    if (all.back()->get("/v1/models").status != 200)
      return std::fprintf(stderr, "client %d is not served\n", i), 1;
  }
  report((std::to_string(clients) + " idle connections").c_str(), server, seconds);

  kill(server.process_of(1), SIGSTOP);
  const std::string body =
      R"({"prompt": "The answer is", "max_tokens": 24, "ignore_eos": true, "stream": true})";
  for (auto& client : all)
    client->send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
  wait_until_quiet(server);
  report((std::to_string(clients) + " streams that wait").c_str(), server, seconds);
  std::printf("of them had a first token: %.0f\n", server.metric("tokenrouter_requests_running"));
  kill(server.process_of(1), SIGCONT);
  int complete = 0;
  for (auto& client : all)
    complete += client->read_until("[DONE]") ? 1 : 0;
  std::printf("complete after it went on: %d of %d\n", complete, clients);
  return complete == clients ? 0 : 1;
}
