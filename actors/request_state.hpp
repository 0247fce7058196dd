#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "actors/local_messages.hpp"

namespace tokenrouter {

/// The home's record of one request: committed tokens in order, and who made them. Free of CAF.
class request_state {
 public:
  /// `models`: how many the job has.
  request_state(request_id id, std::uint32_t prompt_tokens, std::uint32_t models,
                std::uint64_t submitted_us);

  /// Takes tokens in any order of arrival and returns those that are now in order and new. A second
  /// token for a position is dropped: commits never change. So are those of an earlier epoch of
  /// turns. After the end: nothing.
  std::vector<commit> on_commits(std::vector<commit>&& commits, std::uint64_t now_us);

  /// Where requests could be taken up after commits that come now.
  void on_resumes(std::vector<resume_point>&& resumes);

  /// Turns so far are void: tokens that are not in order yet will be made again. Returns the first
  /// turn of the new epoch; none if there can be no more epochs.
  std::optional<turn_number> begin_epoch();

  /// Who makes the next token, with what state; none: nobody said, as before the first token.
  const std::optional<resume_point>& resume() const { return resume_; }

  const std::vector<commit>& output() const { return output_; }

  /// Ends it before its last token. Ignored if it has ended.
  void end(finish_reason reason, error failure, std::uint64_t now_us);

  /// The text is complete with the output's first `output_tokens`, at least one: later ones are
  /// dropped, and with them the end that one of them may have brought.
  void stop_after(std::size_t output_tokens, std::uint64_t now_us);

  /// A replica gave back all it held.
  void on_released(const released& x);

  std::size_t output_tokens() const { return output_.size(); }
  finish_reason finish() const { return finish_; }
  bool ended() const { return finish_ != finish_reason::none; }

  /// The result; `client_tag` and `text` are the caller's.
  request_done result() const;

 private:
  void take_resume();

  request_id id_;
  std::uint32_t prompt_tokens_;
  std::uint64_t submitted_us_;
  std::uint64_t first_token_us_ = 0;
  std::uint64_t ended_us_ = 0;
  std::uint32_t next_position_;
  std::map<std::uint32_t, commit> early_; ///< ahead of next_position_
  std::uint32_t epoch_ = 0;
  std::uint32_t handoffs_before_ = 0;             ///< of earlier epochs
  turn_number last_turn_ = 1;                     ///< in its epoch: of the last token
  std::map<std::uint32_t, resume_point> resumes_; ///< by position; of this epoch, not reached yet
  std::optional<resume_point> resume_;            ///< at next_position_
  std::vector<commit> output_;
  std::vector<model_usage> usage_;
  finish_reason finish_ = finish_reason::none;
  error failure_;
};

} // namespace tokenrouter
