#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// TokenRouter inside your own program: a job as an object. Needs C++20 and its standard library to
/// compile against, and libtokenrouter to link; program and library are built by compilers with the
/// same C++ ABI. Nothing here throws but what the standard library throws.
namespace tokenrouter::embedded {

#define TOKENROUTER_EXPORT __attribute__((visibility("default")))

enum class error_code : std::uint8_t {
  invalid_argument, ///< a value is out of its range
  not_found,        ///< a file, key or peer is missing
  malformed,        ///< a file or message does not parse
  mismatch,         ///< two things that must agree do not
  capacity,         ///< it can't fit, now or ever
  unavailable,      ///< the job, a rank or a device is not there
  cancelled,
  timeout,
  io,
  internal,
};

/// What went wrong, where, and what to do about it, in one sentence for the user.
struct error {
  error_code code = error_code::internal;
  std::string message;
};

/// A value, or why there is none. Access to what is not there throws std::bad_variant_access.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : held_(std::move(value)) {}
  result(embedded::error why) : held_(std::move(why)) {}

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() { return std::get<0>(held_); }
  const T& operator*() const { return std::get<0>(held_); }
  T* operator->() { return &std::get<0>(held_); }
  const T* operator->() const { return &std::get<0>(held_); }
  const embedded::error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, embedded::error> held_;
};

struct job_settings {
  std::filesystem::path config;       ///< the job's YAML file
  std::vector<std::string> overrides; ///< key=value, as --set takes them
  std::uint32_t requests_max = 1024;  ///< under way at a time; more are refused
};

struct message {
  std::string role;
  std::string content;
};

/// Exactly one of `messages`, `text` and `token_ids` is not empty.
struct request {
  std::vector<message> messages; ///< written by the chat template of the entry model
  std::string text;              ///< taken as it is
  std::vector<std::int32_t> token_ids;
  std::uint32_t max_new_tokens = 256;
  float temperature = 0;   ///< 0: the likeliest token
  std::uint32_t top_k = 0; ///< 0: off
  float top_p = 1;
  float min_p = 0;
  std::uint64_t seed = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop; ///< the text ends before the first of them
  float request_score = std::numeric_limits<float>::quiet_NaN(); ///< for query-level routing
};

struct token {
  std::int32_t id = -1;
  std::uint16_t model = 0; ///< who made it: index into job::model_names()
  float logprob = 0;       ///< of that model, temperature 1
  float score = 0;         ///< of the routing decision at this position; NaN: none
};

/// Final tokens in order, and the text that is complete with them: it may lag behind by part of a
/// character, or by what may become a stop string.
struct piece {
  std::vector<token> tokens;
  std::string text;
};

enum class outcome : std::uint8_t { stop, length, cancelled, failed };

struct answer {
  outcome finish = outcome::failed;
  error failure; ///< with outcome::failed and outcome::cancelled
  std::vector<token> tokens;
  std::string text;
  std::uint32_t handoffs = 0;
  std::uint64_t ttft_us = 0;
  std::uint64_t total_us = 0;
};

struct model_statistics {
  std::uint64_t generated_tokens = 0;
  std::uint64_t computed_tokens = 0; ///< positions it ran, of requests that have ended
  std::uint64_t cached_tokens = 0;   ///< taken from its prefix cache instead, of those requests
  std::uint64_t pool_tokens = 0;     ///< what its KV pools hold, all replicas together
};

/// Counts since the job was opened.
struct job_statistics {
  std::uint32_t waiting = 0; ///< requests without a token yet
  std::uint32_t running = 0; ///< with some, and no end yet
  std::uint64_t finished = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t handoffs = 0;           ///< of requests that have ended
  std::vector<model_statistics> models; ///< index as in job::model_names()
};

/// One request under way. May be dropped: the request is then cancelled. May outlive its job.
class TOKENROUTER_EXPORT generation {
 public:
  generation(generation&&) noexcept;
  generation& operator=(generation&&) noexcept;
  ~generation();

  /// Waits for what comes next; none at the end.
  std::optional<piece> next();

  /// Waits for the end, whether or not `next` was called before; the whole answer.
  answer wait();

  /// Ends it within a step or two. `wait` returns what there is. Any thread.
  void cancel();

 private:
  friend class job;
  struct parts;
  explicit generation(std::shared_ptr<parts> p);
  std::shared_ptr<parts> parts_;
};

/// A job that runs in threads of its own. All functions may be called by any thread.
///
/// In a process that was started alone it hosts every model. Under mpirun, or srun with PMIx, every
/// rank opens the same job, from the same config: rank 0 takes requests (`takes_requests`), the
/// others run models and call `wait_for_end`, which returns when the job of rank 0 is destroyed.
/// The job starts and ends MPI, so the program itself must not call it, and can open one job only;
/// without MPI it may open one after another. If a rank is lost, all ranks exit with a line on
/// stderr, as MPI leaves no way to go on. Warnings, and on several ranks the start-up table, go to
/// stderr; no signal handler is installed.
class TOKENROUTER_EXPORT job {
 public:
  /// Loads everything; returns once requests are taken, or on the other ranks once all have met.
  /// The error says what kept it from starting; all ranks get one then.
  static result<job> open(const job_settings& settings);

  job(job&&) noexcept;
  job& operator=(job&&) noexcept;

  /// Cancels what is under way and ends the job on all ranks. On ranks that take no requests it
  /// waits for that end.
  ~job();

  /// Empty where no requests are taken.
  const std::vector<std::string>& model_names() const;
  bool takes_requests() const;

  /// Errors: invalid_argument (the request), capacity (too many under way), unavailable (the job
  /// is over, or takes no requests here). What only the models can judge, such as the length of the
  /// prompt, comes as the answer's failure.
  result<generation> submit(const request& x);

  /// The same with functions that are called from the job's thread, which they must not hold up:
  /// `on_piece` for each piece, `on_end` once at the end, with tokens and text left out. Returns
  /// what `cancel` takes.
  result<std::uint64_t> submit(const request& x, std::function<void(const piece&)> on_piece,
                               std::function<void(const answer&)> on_end);
  void cancel(std::uint64_t submitted);

  /// Waits for one answer, or for all of them in order.
  answer generate(const request& x);
  std::vector<answer> generate(const std::vector<request>& all);

  /// Bytes that a token stands for; several tokens may make one character. Empty for ids without a
  /// token, for tokens that are no text (the end of a turn), and where no requests are taken.
  std::string token_bytes(std::int32_t id) const;

  job_statistics statistics() const;

  /// Waits until the job is over: on ranks that take no requests. The exit code.
  int wait_for_end();

 private:
  struct parts;
  explicit job(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

#undef TOKENROUTER_EXPORT

} // namespace tokenrouter::embedded
