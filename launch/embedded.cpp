#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <caf/send.hpp>

#include "launch/embedded_generation.hpp"
#include "launch/gateway_engine.hpp"
#include "launch/job.hpp"
#include "launch/serve_parts.hpp"
#include "runtime/ingress/embedded.hpp"

namespace tokenrouter::embedded {

namespace {

/// Reactor, log and MPI belong to one job at a time.
std::atomic<bool> job_is_open{false};

/// Tells functions instead of an owner.
class function_sink final : public generation_sink {
 public:
  function_sink(std::function<void(const piece&)> on_piece,
                std::function<void(const answer&)> on_end)
      : on_piece_(std::move(on_piece)), on_end_(std::move(on_end)) {}
  void on_delta(generation_delta&& x) override {
    if (on_piece_)
      on_piece_(to_piece(x));
  }
  void on_end(generation_end&& x) override {
    if (on_end_)
      on_end_(to_answer(x));
  }

 private:
  std::function<void(const piece&)> on_piece_;
  std::function<void(const answer&)> on_end_;
};

tokenrouter::result<std::vector<token_id>> tokens_of(const request& x, const call_tools& tools) {
  const int given = static_cast<int>(!x.messages.empty()) + static_cast<int>(!x.text.empty()) +
                    static_cast<int>(!x.token_ids.empty());
  if (given != 1)
    return fail(errc::invalid_argument, "give exactly one of messages, text and token_ids");
  if (!x.token_ids.empty())
    return x.token_ids;
  if (!x.text.empty())
    return tools.words->encode(x.text);
  std::vector<chat_message> messages;
  for (const auto& one : x.messages)
    messages.push_back({one.role, one.content});
  const auto text = tools.render(messages, {});
  if (!text)
    return tl::unexpected(text.error());
  return tools.words->encode(*text);
}

tokenrouter::result<generation_order> order_of(const request& x, const call_tools& tools) {
  auto tokens = tokens_of(x, tools);
  if (!tokens)
    return tl::unexpected(tokens.error());
  generation_order order;
  order.prompt = std::move(*tokens);
  order.max_new_tokens = x.max_new_tokens;
  order.ignore_eos = x.ignore_eos;
  order.sampling = {x.temperature, x.top_k, x.top_p, x.min_p, x.seed};
  order.stop = x.stop;
  order.request_score = x.request_score;
  for (const auto& one : order.stop)
    if (one.empty())
      return fail(errc::invalid_argument, "a stop string is empty");
  return order;
}

} // namespace

/// The thread that runs the job, and what others know of it.
struct __attribute__((visibility("hidden"))) job::parts {
  explicit parts(const job_settings& x) : settings(x) {}
  ~parts() { job_is_open = false; }

  void run();
  tokenrouter::result<void> start(job_view& view);

  /// Starts a generation; the error is the caller's.
  tokenrouter::result<std::uint64_t> submit(const request& x,
                                            std::shared_ptr<generation_sink> sink) const;

  job_settings settings;
  std::thread thread;
  std::mutex mutex; ///< guards all below
  std::condition_variable changed;
  bool started = false; ///< ready, or over
  bool over = false;
  int exit_code = 0;
  std::string failure;
  supervisor_actor supervisor; ///< null when the job is over
  std::shared_ptr<gateway_engine> engine;
  call_tools tools;
  std::vector<std::string> names;
};

tokenrouter::result<void> job::parts::start(job_view& view) {
  gateway_engine::options options;
  options.facts = engine_facts_of(view);
  options.requests_max = settings.requests_max;
  const std::lock_guard guard(mutex);
  engine = std::make_shared<gateway_engine>(view.system, view.actors.gateway(), std::move(options));
  tools = call_tools_of(view);
  names = view.model_names;
  supervisor = view.actors.supervisor();
  return {};
}

void job::parts::run() {
  job_client client;
  client.start = [this](job_view& view) { return start(view); };
  client.on_ready = [this](const std::vector<replica_facts>& replicas) {
    const std::lock_guard guard(mutex);
    engine->on_ready(replicas);
    started = true;
    changed.notify_all();
  };
  client.on_end = [this](const job_end& end) {
    std::shared_ptr<gateway_engine> closing;
    {
      const std::lock_guard guard(mutex);
      closing = engine;
      if (failure.empty())
        failure = end.reason;
      supervisor = nullptr;
    }
    if (closing) // tells sinks, which may call us
      closing->close(end.reason.empty() ? "the job is over" : end.reason);
  };
  client.on_failure = [this](const std::string& message) {
    const std::lock_guard guard(mutex);
    failure = message;
  };
  client.on_joined = [this](bool leads) {
    if (leads)
      return;
    const std::lock_guard guard(mutex);
    started = true;
    changed.notify_all();
  };
  const int code = run_job({settings.config, settings.overrides}, client);
  const std::lock_guard guard(mutex);
  exit_code = code;
  started = over = true;
  changed.notify_all();
}

tokenrouter::result<std::uint64_t> job::parts::submit(const request& x,
                                                      std::shared_ptr<generation_sink> sink) const {
  if (!engine)
    return fail(errc::unavailable, "requests go in on rank 0");
  auto order = order_of(x, tools);
  if (!order)
    return tl::unexpected(order.error());
  return engine->submit(std::move(*order), std::move(sink));
}

result<job> job::open(const job_settings& settings) {
  if (job_is_open.exchange(true))
    return error{error_code::unavailable, "a job is open in this process; end it first"};
  auto p = std::make_unique<parts>(settings);
  p->thread = std::thread([here = p.get()] { here->run(); });
  std::string failure;
  bool over = false;
  {
    std::unique_lock lock(p->mutex);
    p->changed.wait(lock, [&] { return p->started; });
    over = p->over;
    failure = p->failure;
  }
  if (!over)
    return job(std::move(p));
  p->thread.join();
  return error{error_code::unavailable, failure.empty() ? "the job did not start" : failure};
}

job::job(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
job::job(job&&) noexcept = default;

job& job::operator=(job&& other) noexcept {
  job gone(std::move(*this));
  parts_ = std::move(other.parts_);
  return *this;
}

job::~job() {
  if (!parts_)
    return;
  {
    const std::lock_guard guard(parts_->mutex);
    if (parts_->supervisor)
      caf::anon_send(parts_->supervisor, job_finished{0});
  }
  if (parts_->thread.joinable())
    parts_->thread.join();
}

const std::vector<std::string>& job::model_names() const {
  return parts_->names;
}

bool job::takes_requests() const {
  const std::lock_guard guard(parts_->mutex);
  return parts_->engine != nullptr;
}

result<generation> job::submit(const request& x) {
  auto shared = std::make_shared<generation::parts>();
  shared->job = parts_->engine;
  const auto ticket = parts_->submit(x, shared);
  if (!ticket)
    return to_error(ticket.error());
  shared->ticket = *ticket;
  return generation(std::move(shared));
}

result<std::uint64_t> job::submit(const request& x, std::function<void(const piece&)> on_piece,
                                  std::function<void(const answer&)> on_end) {
  const auto ticket =
      parts_->submit(x, std::make_shared<function_sink>(std::move(on_piece), std::move(on_end)));
  if (!ticket)
    return to_error(ticket.error());
  return *ticket;
}

void job::cancel(std::uint64_t submitted) {
  if (takes_requests())
    parts_->engine->cancel(submitted);
}

answer job::generate(const request& x) {
  auto one = submit(x);
  if (one)
    return one->wait();
  answer refused;
  refused.failure = one.error();
  return refused;
}

std::vector<answer> job::generate(const std::vector<request>& all) {
  std::vector<result<generation>> under_way;
  std::vector<answer> answers(all.size());
  std::size_t next = 0;
  // No more at a time than the job takes: the first that is under way makes room for the next.
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto one = submit(all[i]);
    while (!one && one.error().code == error_code::capacity && next < i) {
      if (under_way[next])
        answers[next] = under_way[next]->wait();
      ++next;
      one = submit(all[i]);
    }
    if (!one)
      answers[i].failure = one.error();
    under_way.push_back(std::move(one));
  }
  for (; next < all.size(); ++next)
    if (under_way[next])
      answers[next] = under_way[next]->wait();
  return answers;
}

std::string job::token_bytes(std::int32_t id) const {
  const auto& words = parts_->tools.words;
  return words && !words->is_special(id) ? std::string(words->token_bytes(id)) : std::string();
}

job_statistics job::statistics() const {
  job_statistics out;
  if (!takes_requests())
    return out;
  const auto counts = parts_->engine->counts();
  out.waiting = counts.waiting;
  out.running = counts.running;
  out.finished = counts.finished;
  out.cancelled = counts.cancelled;
  out.failed = counts.failed;
  out.handoffs = counts.handoffs;
  for (const auto& x : counts.models)
    out.models.push_back({x.generated_tokens, x.computed_tokens, x.cached_tokens, x.pool_tokens});
  return out;
}

int job::wait_for_end() {
  std::unique_lock lock(parts_->mutex);
  parts_->changed.wait(lock, [this] { return parts_->over; });
  return parts_->exit_code;
}

} // namespace tokenrouter::embedded
