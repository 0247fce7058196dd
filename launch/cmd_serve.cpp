#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <caf/send.hpp>
#include <fmt/format.h>

#include "launch/commands.hpp"
#include "launch/gateway_engine.hpp"
#include "launch/job.hpp"
#include "launch/serve_parts.hpp"
#include "launch/stop_signals.hpp"
#include "runtime/core/log.hpp"
#include "runtime/ingress/http_server.hpp"
#include "runtime/ingress/service.hpp"

namespace tokenrouter {

namespace {

constexpr std::uint32_t cancel_grace_ms = 2000; ///< for what a drain cancels to end
constexpr std::uint32_t answer_grace_ms = 1000; ///< for last answers to leave

/// The file's lines, one key each.
result<std::vector<std::string>> read_keys(const std::filesystem::path& file) {
  if (file.empty())
    return std::vector<std::string>{};
  std::ifstream in(file);
  std::vector<std::string> keys;
  std::string line;
  while (std::getline(in, line)) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.pop_back();
    if (!line.empty())
      keys.push_back(line);
  }
  if (keys.empty())
    return fail(errc::not_found, "serve.api_key_file holds no key, one a line: " + file.string());
  return keys;
}

result<void> write_port(const std::filesystem::path& file, std::uint16_t port) {
  if (file.empty())
    return {};
  // In place at once: whoever waits for the file never reads half a number.
  const std::filesystem::path draft = file.string() + ".new";
  {
    std::ofstream out(draft);
    out << port << '\n';
    if (!out.flush())
      return fail(errc::io, "can't write serve.port_file " + file.string());
  }
  std::error_code ec;
  std::filesystem::rename(draft, file, ec);
  if (ec)
    return fail(errc::io, "can't write serve.port_file " + file.string() + ": " + ec.message());
  return {};
}

http_settings http_settings_of(const serve_settings& x) {
  http_settings out;
  out.host = x.host;
  out.port = x.port;
  out.threads = x.threads;
  out.connections_max = x.connections_max;
  out.header_bytes_max = x.header_bytes_max;
  out.body_bytes_max = x.body_bytes_max;
  out.read_timeout_ms = x.read_timeout_ms;
  out.idle_timeout_ms = x.idle_timeout_ms;
  out.write_timeout_ms = x.write_timeout_ms;
  return out;
}

/// Server, engine and the thread that waits for signals, from the start of a job to its end.
class serving {
 public:
  result<void> start(job_view& view);
  void on_ready(const std::vector<replica_facts>& replicas);
  void on_loss(const job_loss& loss) { engine_->on_loss(loss.rank, loss.replicas); }
  void on_end(const job_end& end);

 private:
  void wait_for_signal();
  void wait_until_idle(std::uint32_t ms) const;

  serve_settings settings_;
  supervisor_actor supervisor_;
  std::unique_ptr<gateway_engine> engine_;
  std::unique_ptr<service> service_;
  std::unique_ptr<http_server> server_;
  std::thread drainer_;
};

result<void> serving::start(job_view& view) {
  settings_ = view.config.serve;
  supervisor_ = view.actors.supervisor();
  gateway_engine::options options;
  options.facts = engine_facts_of(view);
  options.requests_max = settings_.requests_max;
  options.find_fault = [&actors = view.actors] { return actors.find_silent_peers(); };
  options.step_timeout_us = std::uint64_t{settings_.step_timeout_ms} * 1000;
  engine_ =
      std::make_unique<gateway_engine>(view.system, view.actors.gateway(), std::move(options));
  service_options endpoints;
  endpoints.tools = call_tools_of(view);
  endpoints.unsent_bytes_max = settings_.unsent_bytes_max;
  auto keys = read_keys(settings_.api_key_file);
  if (!keys)
    return tl::unexpected(keys.error());
  endpoints.api_keys = std::move(*keys);
  service_ = std::make_unique<service>(*engine_, std::move(endpoints));
  std::error_code none; // of an earlier run: it would send clients elsewhere
  if (!settings_.port_file.empty())
    std::filesystem::remove(settings_.port_file, none);
  auto server = http_server::start(http_settings_of(settings_), *service_);
  if (!server)
    return tl::unexpected(server.error());
  server_ = std::move(*server);
  if (auto ok = write_port(settings_.port_file, server_->port()); !ok)
    return ok;
  std::fprintf(stderr, "tokenrouter: listening on http://%s:%u\n", settings_.host.c_str(),
               server_->port());
  drainer_ = std::thread([this] { wait_for_signal(); });
  return {};
}

void serving::on_ready(const std::vector<replica_facts>& replicas) {
  engine_->on_ready(replicas);
  std::fprintf(stderr, "tokenrouter: ready\n");
}

void serving::wait_until_idle(std::uint32_t ms) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (engine_->live() > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void serving::wait_for_signal() {
  const int number = stop_signals::wait();
  if (number == 0)
    return;
  spdlog::warn("signal {}: no new requests; {} are under way and have {} ms to end", number,
               engine_->live(), settings_.drain_timeout_ms);
  engine_->begin_drain();
  server_->close_after_answers();
  wait_until_idle(settings_.drain_timeout_ms);
  if (engine_->live() > 0) {
    spdlog::warn("{} requests did not end in time and are cancelled", engine_->live());
    engine_->cancel_all();
    wait_until_idle(cancel_grace_ms);
  }
  caf::anon_send(supervisor_, job_finished{0});
}

void serving::on_end(const job_end& end) {
  if (engine_)
    engine_->close(end.reason.empty() ? "the server is shutting down" : end.reason);
  if (drainer_.joinable()) {
    stop_signals::wake_up();
    drainer_.join();
  }
  if (server_)
    server_->stop(answer_grace_ms);
  supervisor_ = nullptr;
}

int run_serve(const job_options& options) {
  if (auto ok = stop_signals::install(); !ok) {
    std::fprintf(stderr, "tokenrouter: %s\n", ok.error().message.c_str());
    return 2;
  }
  serving here;
  job_client client;
  client.start = [&](job_view& view) { return here.start(view); };
  client.on_ready = [&](const std::vector<replica_facts>& x) { here.on_ready(x); };
  client.on_loss = [&](const job_loss& x) { here.on_loss(x); };
  client.on_end = [&](const job_end& x) { here.on_end(x); };
  return run_job(options, client);
}

} // namespace

void add_serve(CLI::App& program, int& exit_code) {
  struct serve_options {
    job_options job;
    std::string host, port, port_file;
  };
  auto options = std::make_shared<serve_options>();
  auto* command = program.add_subcommand(
      "serve",
      "Answer HTTP requests (OpenAI's API); every rank of the job runs this command alike");
  command->add_option("--config", options->job.config_file, "The job's YAML file")->required();
  command->add_option("--set", options->job.overrides, "Override a key of the config: key=value");
  command->add_option("--host", options->host, "IP address to listen on (serve.host)");
  command->add_option("--port", options->port, "Port; 0: any that is free (serve.port)");
  command->add_option("--port-file", options->port_file,
                      "File that gets the port (serve.port_file)");
  command->callback([options, &exit_code] {
    const auto set = [&](const char* key, const std::string& value) {
      if (!value.empty())
        options->job.overrides.push_back(std::string(key) + "=" + value);
    };
    set("serve.host", options->host);
    set("serve.port", options->port);
    set("serve.port_file", options->port_file);
    exit_code = run_serve(options->job);
  });
}

} // namespace tokenrouter
