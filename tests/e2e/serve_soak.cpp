// Thousands of mixed calls to one server on two ranks: good ones, clients that hang up at any
// stage, malformed bodies, calls beyond the limits. Fails on an answer that was not to be expected,
// any 5xx but 503, and on what is left afterwards: requests, connections, memory.
//
//   serve_soak [CALLS [CLIENTS]]
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "tests/support/server.hpp"

using namespace tokenrouter::test;
using nlohmann::json;

namespace {

struct tally {
  std::mutex mutex;
  std::map<std::string, int> counts;
  int faults = 0;

  void note(const std::string& what) {
    const std::lock_guard guard(mutex);
    ++counts[what];
  }
  void fault(const std::string& what) {
    const std::lock_guard guard(mutex);
    ++faults;
    std::printf("FAULT %s\n", what.c_str());
  }
};

/// One client: its own draws, one connection after the other.
class soak_client {
 public:
  soak_client(std::uint16_t port, unsigned seed, tally& out)
      : port_(port), draw_(seed), out_(out) {}

  void run_one() {
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
      return expect("completion", post("/v1/completions", body()), {200, 429});
    case 3:
    case 4:
      return stream_to_the_end();
    case 5:
    case 6:
      return hang_up();
    case 7:
      return expect("malformed", post("/v1/chat/completions", torn(body().dump())), {400});
    case 8:
      return beyond_limits();
    default:
      return expect("status", client().get(below(2) == 0 ? "/metrics" : "/v1/routing"), {200});
    }
  }

 private:
  std::size_t below(std::size_t n) { return draw_() % n; }

  http_client& client() {
    if (!client_ || below(8) == 0)
      client_ = std::make_unique<http_client>(port_);
    return *client_;
  }
  http_answer post(const std::string& target, const json& x) { return post(target, x.dump()); }
  http_answer post(const std::string& target, const std::string& text) {
    auto answer = client().post(target, text);
    if (answer.status == 0 || answer.headers.contains("connection"))
      client_.reset();
    return answer;
  }

  json body() {
    json x = {{"prompt", "Maya has " + std::to_string(below(1000)) + " stickers."},
              {"max_tokens", 1 + below(60)},
              {"temperature", below(2) == 0 ? 0.0 : 1.0},
              {"seed", below(1000)}};
    if (below(3) == 0)
      x["n"] = 1 + below(4);
    if (below(4) == 0)
      x["stop"] = json::array({"the", "\n"});
    if (below(4) == 0)
      x["logprobs"] = 0;
    return x;
  }

  /// No JSON, or no valid call: never what a server may accept.
  std::string torn(std::string text) {
    switch (below(3)) {
    case 0:
      return text.substr(0, text.size() - 1 - below(text.size() - 1));
    case 1:
      text.insert(1, "\"no_such_field\": 1, ");
      return text;
    default:
      text[below(text.size() - 1)] = '\xff';
      return text;
    }
  }

  void expect(const std::string& what, const http_answer& answer, std::vector<int> allowed) {
    out_.note(what + " " + std::to_string(answer.status));
    if (std::find(allowed.begin(), allowed.end(), answer.status) == allowed.end())
      out_.fault(what + ": " + std::to_string(answer.status) + " " + answer.body);
  }

  void stream_to_the_end() {
    json x = body();
    x["stream"] = true;
    const auto answer = post("/v1/completions", x);
    expect("stream", answer, {200, 429});
    if (answer.status == 200 && events_of(answer.body).back() != "[DONE]")
      out_.fault("a stream that does not end: " + answer.body);
  }

  void hang_up() {
    json x = body();
    x["stream"] = below(2) == 0;
    x["max_tokens"] = 1000;
    x["ignore_eos"] = true;
    const std::string text = x.dump();
    const std::string call = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                             std::to_string(text.size()) + "\r\n\r\n" + text;
    http_client one(port_);
    // At any stage: within the call, right after it, while it is answered.
    const std::size_t sent = below(3) == 0 ? below(call.size()) : call.size();
    one.send(call.substr(0, sent));
    if (sent == call.size())
      std::this_thread::sleep_for(std::chrono::microseconds(below(50'000)));
    one.close();
    out_.note("hung up");
  }

  void beyond_limits() {
    client_.reset();
    if (below(2) == 0)
      return expect("large body", post("/v1/completions", std::string(300'000, ' ')), {413});
    http_client one(port_);
    one.send("GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n");
    expect("large header", one.read_answer(), {431});
  }

  std::uint16_t port_;
  std::mt19937 draw_;
  tally& out_;
  std::unique_ptr<http_client> client_;
};

struct footprint {
  long resident_kib = 0;
  long descriptors = 0;
};

footprint footprint_of(pid_t pid) {
  footprint out;
  std::istringstream status(read_file("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0)
      out.resident_kib = std::atol(line.c_str() + 6);
  for ([[maybe_unused]] const auto& one :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
    ++out.descriptors;
  return out;
}

void run_calls(std::uint16_t port, int calls, int clients, unsigned seed, tally& out) {
  std::atomic<int> left{calls};
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      soak_client client(port, seed + static_cast<unsigned>(i), out);
      while (left-- > 0)
        client.run_one();
    });
  for (auto& thread : threads)
    thread.join();
}

/// Mean time to the first token of calls one after the other: inside the job, and at HTTP.
void measure_first_token(const test_server& server) {
  constexpr int calls = 200;
  http_client client(server.port());
  for (int i = 0; i < calls; ++i)
    client.post("/v1/completions", json{{"prompt", "Maya has " + std::to_string(i)},
                                        {"max_tokens", 2},
                                        {"stream", true},
                                        {"temperature", 0}});
  const auto mean_ms = [&](const std::string& name) {
    return 1000 * server.metric(name + "_sum") / server.metric(name + "_count");
  };
  std::printf("first token after %.3f ms inside the job, %.3f ms at HTTP\n",
              mean_ms("tokenrouter_engine_time_to_first_token_seconds"),
              mean_ms("tokenrouter_time_to_first_token_seconds"));
}

bool is_idle(const test_server& server) {
  for (int i = 0; i < 300; ++i) {
    if (server.metric("tokenrouter_requests_running") +
            server.metric("tokenrouter_requests_waiting") ==
        0)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

} // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 10'000;
  const int clients = argc > 2 ? std::atoi(argv[2]) : 16;
  test_server server(2, "configs/r2r/abacus-xs_abacus-m.yaml",
                     "--set serve.body_bytes_max=200000 --set serve.requests_max=40");
  measure_first_token(server);
  tally out;
  run_calls(server.port(), calls / 5, clients, 1, out); // caches and arenas fill
  bool idle = is_idle(server);
  const auto before = footprint_of(server.leader());
  const auto began = std::chrono::steady_clock::now();
  run_calls(server.port(), calls - calls / 5, clients, 1000, out);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  idle = is_idle(server) && idle;
  const auto after = footprint_of(server.leader());
  for (const auto& [what, count] : out.counts)
    std::printf("%-20s %d\n", what.c_str(), count);
  std::printf(
      "%.0f calls/s; resident %ld -> %ld KiB; descriptors %ld -> %ld; idle afterwards: %s\n",
      (calls - calls / 5) / took.count(), before.resident_kib, after.resident_kib,
      before.descriptors, after.descriptors, idle ? "yes" : "no");
  const bool leaks = after.descriptors > before.descriptors + 2 ||
                     after.resident_kib > before.resident_kib + before.resident_kib / 10;
  kill(server.leader(), SIGTERM);
  const int code = server.wait();
  std::printf("exit code %d, %d faults%s\n", code, out.faults, leaks ? ", something leaks" : "");
  return code == 0 && out.faults == 0 && idle && !leaks ? 0 : 1;
}
