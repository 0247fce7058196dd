#include "runtime/reactor/reactor.hpp"

#include <algorithm>
#include <utility>

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/resumable.hpp>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/reactor/pause.hpp"
#include "runtime/reactor/printer.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t jobs_per_turn = 64;
constexpr std::size_t polls_per_turn = 16;

// One flooded actor must not keep the pollers waiting. With virtual time actors take turns message
// by message, so that a simulation sees more interleavings.
constexpr std::size_t messages_per_resume = 32;
constexpr std::size_t messages_per_resume_virtual = 1;

// Rounds that stop() gives actors which end by themselves; more would be an actor that never ends.
constexpr std::size_t jobs_at_stop = 10'000;

const void* this_thread_token() {
  thread_local const char token = 0;
  return &token;
}

} // namespace

reactor_config::reactor_config(bool use_virtual_time) : virtual_time(use_virtual_time) {
  load<reactor>();
}

caf::actor_system::module* reactor::make(caf::actor_system& system, caf::detail::type_list<>) {
  const auto* config = dynamic_cast<const reactor_config*>(&system.config());
  check(config != nullptr, "a reactor needs a reactor_config");
  return new reactor(system, config->virtual_time);
}

reactor& reactor::of(caf::actor_system& system) {
  auto* self = dynamic_cast<reactor*>(&system.scheduler());
  check(self != nullptr, "the actor system was not built from a reactor_config");
  return *self;
}

reactor::reactor(caf::actor_system& system, bool use_virtual_time)
    : super(system), virtual_time_(use_virtual_time), unit_(*this), clock_(use_virtual_time,
                                                                           [this] {
                                                                             if (!in_loop_thread())
                                                                               wake();
                                                                           }),
      loop_thread_(this_thread_token()) {}

bool reactor::in_loop_thread() const {
  return loop_thread_.load(std::memory_order_relaxed) == this_thread_token();
}

void reactor::adopt_this_thread() {
  loop_thread_.store(this_thread_token(), std::memory_order_relaxed);
}

void reactor::attach(poller* source) {
  check(std::find(pollers_.begin(), pollers_.end(), source) == pollers_.end(),
        "poller is attached already");
  pollers_.push_back(source);
  if (source->event_fd() >= 0)
    wakeup_.watch(source->event_fd());
}

void reactor::detach(poller* source) {
  const auto found = std::find(pollers_.begin(), pollers_.end(), source);
  check(found != pollers_.end(), "poller is not attached");
  pollers_.erase(found);
  if (source->event_fd() >= 0)
    wakeup_.unwatch(source->event_fd());
}

void reactor::release_awake() {
  check(held_ > 0, "release_awake without hold_awake");
  --held_;
}

void reactor::enqueue(caf::resumable* job) {
  if (in_loop_thread()) {
    jobs_.push_back(job);
    return;
  }
  {
    const std::lock_guard guard(inbox_mutex_);
    if (!stopped_) {
      inbox_.push_back(job);
      inbox_filled_.store(true, std::memory_order_seq_cst);
      job = nullptr;
    }
  }
  // Threads of detached actors send until they are joined, which is after stop().
  if (job != nullptr)
    cleanup_and_release(job);
  else if (sleeping_.load(std::memory_order_seq_cst)) {
    wakes_.fetch_add(1, std::memory_order_relaxed);
    wakeup_.ring();
  }
}

void reactor::wake() {
  wake_wanted_.store(true, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst)) {
    wakes_.fetch_add(1, std::memory_order_relaxed);
    wakeup_.ring();
  }
}

void reactor::wake_at_exit(const caf::actor& who) {
  who->attach_functor([this] { wake(); });
}

void reactor::take_inbox() {
  if (!inbox_filled_.load(std::memory_order_acquire))
    return;
  const std::lock_guard guard(inbox_mutex_);
  jobs_.insert(jobs_.end(), inbox_.begin(), inbox_.end());
  inbox_.clear();
  inbox_filled_.store(false, std::memory_order_relaxed);
}

void reactor::run_one(caf::resumable* job) {
  ++statistics_.jobs;
  const auto messages_max = virtual_time_ ? messages_per_resume_virtual : messages_per_resume;
  switch (job->resume(&unit_, messages_max)) {
  case caf::resumable::resume_later:
    jobs_.push_back(job);
    break;
  case caf::resumable::done:
  case caf::resumable::awaiting_message:
    intrusive_ptr_release(job);
    break;
  case caf::resumable::shutdown_execution_unit:
    break;
  }
}

std::size_t reactor::run_jobs(std::size_t jobs_max) {
  std::size_t ran = 0;
  for (; ran < jobs_max && !jobs_.empty(); ++ran) {
    auto* job = jobs_.front();
    jobs_.pop_front();
    run_one(job);
  }
  return ran;
}

std::size_t reactor::poll_all(std::size_t rounds_max) {
  std::size_t events = 0;
  // By index: a frame may attach another poller.
  for (std::size_t i = 0; i < pollers_.size(); ++i)
    for (std::size_t round = 0; round < rounds_max; ++round) {
      ++statistics_.polls;
      const auto n = pollers_[i]->poll();
      events += n;
      if (n == 0)
        break;
    }
  return events;
}

bool reactor::turn() {
  take_inbox();
  const auto jobs = run_jobs(jobs_per_turn);
  const auto events = poll_all(polls_per_turn);
  std::size_t timers = 0;
  if (clock_.next_due_ns() != reactor_clock::never_ns)
    timers = clock_.fire_due(clock_.now_ns());
  statistics_.timers += timers;
  return jobs + events + timers > 0;
}

void reactor::run_until(const std::function<bool()>& done) {
  check(!virtual_time_, "with virtual time use run_ready and advance_to");
  adopt_this_thread();
  while (!done()) {
    if (turn()) {
      spin_guard_.interrupted();
    } else if (spin_ == spin_policy::while_in_flight && held_ > 0 &&
               spin_guard_.may_spin(monotonic_ns())) {
      pause_briefly();
    } else {
      sleep();
      spin_guard_.interrupted();
    }
  }
}

void reactor::run_until_no_actors() {
  run_until([this] { return system().registry().running() == 0; });
}

bool reactor::may_sleep() {
  if (wake_wanted_.exchange(false, std::memory_order_seq_cst) ||
      inbox_filled_.load(std::memory_order_seq_cst) || !jobs_.empty())
    return false;
  return std::all_of(pollers_.begin(), pollers_.end(),
                     [](poller* source) { return source->prepare_sleep(); });
}

// Other threads first publish what they have and then look at `sleeping_`; this side does it the
// other way round, so one of the two always sees the other.
void reactor::sleep() {
  sleeping_.store(true, std::memory_order_seq_cst);
  if (may_sleep()) {
    const auto due_ns = clock_.next_due_ns();
    const auto timeout_ns = due_ns == reactor_clock::never_ns
                                ? std::int64_t{-1}
                                : std::max<std::int64_t>(0, due_ns - clock_.now_ns());
    if (timeout_ns != 0) {
      ++statistics_.sleeps;
      wakeup_.wait(timeout_ns);
    }
  }
  sleeping_.store(false, std::memory_order_relaxed);
}

std::size_t reactor::run_ready() {
  adopt_this_thread();
  std::size_t total = 0;
  for (;;) {
    take_inbox();
    auto n = run_jobs(jobs_per_turn);
    n += poll_all(1);
    if (n == 0)
      return total;
    total += n;
  }
}

void reactor::advance_to(std::uint64_t us) {
  check(virtual_time_, "only virtual time can be advanced");
  const auto until_ns = static_cast<std::int64_t>(us) * 1000;
  while (clock_.next_due_ns() <= until_ns) {
    const auto due_ns = std::max(clock_.next_due_ns(), clock_.now_ns());
    clock_.set_now_ns(due_ns);
    statistics_.timers += clock_.fire_due(due_ns);
    run_ready();
  }
  clock_.set_now_ns(until_ns);
}

void reactor::stand_still_until(std::uint64_t us) {
  check(virtual_time_, "only virtual time can be advanced");
  clock_.set_now_ns(std::max(static_cast<std::int64_t>(us) * 1000, clock_.now_ns()));
}

std::optional<std::uint64_t> reactor::next_timer_us() const {
  const auto due_ns = clock_.next_due_ns();
  if (due_ns == reactor_clock::never_ns)
    return std::nullopt;
  return static_cast<std::uint64_t>((due_ns + 999) / 1000);
}

std::uint64_t reactor::now_us() const {
  return static_cast<std::uint64_t>(clock_.now_ns()) / 1000;
}

reactor_statistics reactor::statistics() const {
  auto result = statistics_;
  result.wakes = wakes_.load(std::memory_order_relaxed);
  return result;
}

void reactor::start() {
  // The base would spawn a printer with a thread of its own.
  utility_actors_[printer_id] = make_printer(system());
}

void reactor::drop_jobs() {
  // Cleaning up one actor may make others runnable: they are dropped as well.
  for (take_inbox(); !jobs_.empty(); take_inbox()) {
    auto* job = jobs_.front();
    jobs_.pop_front();
    cleanup_and_release(job);
  }
}

// CAF calls this from the system's destructor, after it has sent exit to its own helper actors:
// they get it here.
void reactor::stop() {
  adopt_this_thread();
  std::size_t left = jobs_at_stop;
  for (take_inbox(); !jobs_.empty() && left > 0; take_inbox())
    left -= run_jobs(std::min(left, jobs_per_turn));
  // Pending timers keep their actors alive.
  clock_.cancel_all();
  {
    const std::lock_guard guard(inbox_mutex_);
    stopped_ = true;
  }
  drop_jobs();
  // From here on every enqueue cleans up at once, also on this thread.
  loop_thread_.store(nullptr, std::memory_order_relaxed);
  utility_actors_[printer_id] = nullptr;
}

} // namespace tokenrouter
