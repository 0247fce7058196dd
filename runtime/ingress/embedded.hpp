#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/error.hpp"

/// TokenRouter inside your own program: a job as an object. Needs nothing but the standard library
/// and tl::expected to compile against.
namespace tokenrouter::embedded {

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

/// Final tokens in order, and the text that is complete with them.
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

/// One request under way. May be dropped: the request is then cancelled.
class generation {
 public:
  generation(generation&&) noexcept;
  generation& operator=(generation&&) noexcept;
  ~generation();

  /// Waits for what comes next; none at the end.
  std::optional<piece> next();

  /// Waits for the end, whether or not `next` was called before; the whole answer.
  answer wait();

  /// Ends it within a step or two. `wait` returns what there is.
  void cancel();

 private:
  friend class job;
  struct parts;
  explicit generation(std::shared_ptr<parts> p);
  std::shared_ptr<parts> parts_;
};

/// A job that runs in threads of its own. All functions may be called by any thread.
///
/// In a process that was started alone it hosts every model. Under mpirun or srun every rank opens
/// the same job; requests go in on rank 0 (`takes_requests`), the others call `wait_for_end`. One
/// job at a time, and under MPI one in a process.
class job {
 public:
  /// Loads everything; returns once requests are taken. The error says what kept it from starting.
  static result<job> open(const job_settings& settings);

  job(job&&) noexcept;
  job& operator=(job&&) noexcept;

  /// Cancels what is under way and ends the job on all ranks.
  ~job();

  const std::vector<std::string>& model_names() const;
  bool takes_requests() const;

  /// Errors: invalid_argument (the request), capacity (too many under way), unavailable (the job
  /// is over). What only the models can judge, such as the length of the prompt, comes as the
  /// answer's failure.
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

  /// Waits until the job is over: on ranks that take no requests. The exit code.
  int wait_for_end();

 private:
  struct parts;
  explicit job(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

} // namespace tokenrouter::embedded
