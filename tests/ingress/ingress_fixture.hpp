#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/ingress/service.hpp"

namespace tokenrouter::test {

/// The tokenizer of abacus-xs; messages are written one a line.
inline call_tools tools_for_tests() {
  static const auto words = std::make_shared<const tokenizer>(
      tokenizer::load("examples/models/abacus/abacus-xs").value());
  static const auto form =
      chat_template::parse("{% for x in messages %}{{ x.role }}: {{ x.content }}\n{% endfor %}"
                           "{{ 'answer' if enable_thinking is defined else 'think' }}",
                           "test");
  call_tools tools;
  tools.words = words;
  tools.form = form;
  tools.model_name = "tokenrouter";
  return tools;
}

/// A job that does what the test says.
class scripted_engine final : public engine {
 public:
  scripted_engine() {
    facts_.method = "r2r";
    facts_.entry_model = "xs";
    facts_.models = {{"xs", "r2r_slm", {0}, 2048}, {"m", "r2r_llm", {1}, 2048}};
    facts_.context_tokens_max = 2048;
    facts_.vocab_tokens = 1024;
    now.phase = engine_phase::ready;
    now.pool_tokens_min = 100'000;
    now.models.resize(2);
  }
  const engine_facts& facts() const override { return facts_; }
  engine_counts counts() const override { return now; }
  result<std::uint64_t> submit(generation_order order,
                               std::shared_ptr<generation_sink> sink) override {
    if (orders.size() >= requests_max)
      return fail(errc::capacity, "too many");
    if (now.phase != engine_phase::ready)
      return fail(errc::unavailable, "not ready");
    orders.push_back(std::move(order));
    sinks.push_back(std::move(sink));
    return orders.size() - 1;
  }
  void cancel(std::uint64_t generation) override { cancelled.push_back(generation); }
  void ask_status(std::function<void(std::string)> answer) override {
    if (responds)
      answer(fault);
  }

  /// Tells a sink of tokens of text, by one model.
  void say(std::size_t generation, const std::string& text) {
    generation_delta delta;
    const auto ids = tools_for_tests().words->encode(text).value();
    for (const token_id id : ids)
      delta.tokens.push_back({id, {0}, -0.5f, std::numeric_limits<float>::quiet_NaN(), {}});
    delta.text = text;
    sinks.at(generation)->on_delta(std::move(delta));
  }
  void finish(std::size_t generation, finish_reason reason = finish_reason::stop,
              error failure = {}) {
    generation_end end;
    end.finish = reason;
    end.failure = std::move(failure);
    end.work.resize(2);
    end.handoffs = 3;
    sinks.at(generation)->on_end(std::move(end));
  }

  engine_counts now;
  std::size_t requests_max = 100;
  bool responds = true;
  std::string fault;
  std::vector<generation_order> orders;
  std::vector<std::shared_ptr<generation_sink>> sinks;
  std::vector<std::uint64_t> cancelled;

 private:
  engine_facts facts_;
};

/// A client that keeps what it is told.
class recorded_exchange final : public exchange {
 public:
  void reply(http_reply x) override {
    whole = std::move(x);
    ++replies;
  }
  void begin_stream() override { streaming = true; }
  void write_piece(std::string piece) override { stream += piece; }
  void end_stream() override { ended = true; }
  std::size_t unsent_bytes() const override { return unsent; }
  void abort() override { aborted = true; }
  void on_client_gone(std::function<void()> what) override { gone = std::move(what); }
  void post(std::function<void()> what) override { posted.push_back(std::move(what)); }
  void after_ms(unsigned, std::function<void()> what) override { later.push_back(std::move(what)); }

  /// Drops what waits here and may hold the exchange itself; a real one runs or drops it.
  void forget() {
    gone = nullptr;
    posted.clear();
    later.clear();
  }

  /// Runs what was posted.
  void run() {
    while (!posted.empty()) {
      const auto what = std::move(posted.front());
      posted.pop_front();
      what();
    }
  }

  http_reply whole{0, {}, {}, 0};
  int replies = 0;
  std::string stream;
  std::size_t unsent = 0;
  bool streaming = false, ended = false, aborted = false;
  std::function<void()> gone;
  std::deque<std::function<void()>> posted;
  std::vector<std::function<void()>> later;
};

} // namespace tokenrouter::test
