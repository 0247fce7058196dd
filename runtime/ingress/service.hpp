#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ingress/call_parser.hpp"
#include "runtime/ingress/engine.hpp"
#include "runtime/ingress/exchange.hpp"
#include "runtime/ingress/metrics.hpp"

namespace tokenrouter {

struct service_options {
  call_tools tools;
  std::vector<std::string> api_keys; ///< empty: none is asked for
  std::size_t unsent_bytes_max = 1u << 20;
};

/// The endpoints, free of HTTP: takes calls that were read and answers each on its exchange. Calls
/// may come from several threads.
class service {
 public:
  /// `job` outlives the service and every exchange.
  service(engine& job, service_options options);

  void handle(const http_call& call, const std::shared_ptr<exchange>& client);

  /// An answer that was given before a call was complete: counted with the others.
  void note_reply(unsigned status) { counted_.note_reply(status); }

 private:
  using handler = void (service::*)(const http_call&, const std::shared_ptr<exchange>&);
  struct route {
    std::string_view method;
    std::string_view path;
    handler act;
  };
  static const route routes_[];

  void page(const http_call& call, const std::shared_ptr<exchange>& client);
  void chat(const http_call& call, const std::shared_ptr<exchange>& client);
  void completion(const http_call& call, const std::shared_ptr<exchange>& client);
  void generate(const http_call& call, const std::shared_ptr<exchange>& client);
  void models(const http_call& call, const std::shared_ptr<exchange>& client);
  void tokenize(const http_call& call, const std::shared_ptr<exchange>& client);
  void detokenize(const http_call& call, const std::shared_ptr<exchange>& client);
  void health(const http_call& call, const std::shared_ptr<exchange>& client);
  void metrics_page(const http_call& call, const std::shared_ptr<exchange>& client);
  void routing(const http_call& call, const std::shared_ptr<exchange>& client);

  void generate_text(api_result<generation_call> parsed, const char* id_prefix,
                     const std::shared_ptr<exchange>& client);
  bool may_enter(const http_call& call, std::string_view path) const;
  void reply_json(exchange& client, std::string body);
  void reply_metrics(exchange& client);
  void reply_health(exchange& client, const std::string& fault);
  std::vector<std::string> served_names() const;
  std::string fresh_id(const char* prefix);

  engine& job_;
  service_options options_;
  metrics counted_;
  std::vector<std::string> model_names_;
  std::int64_t started_s_;
  std::string id_stem_;
  std::atomic<std::uint64_t> next_id_{1};
};

} // namespace tokenrouter
