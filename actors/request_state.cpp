#include "actors/request_state.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"
#include "runtime/policy/turn_epoch.hpp"

namespace tokenrouter {

request_state::request_state(request_id id, std::uint32_t prompt_tokens, std::uint32_t models,
                             std::uint64_t submitted_us)
    : id_(id), prompt_tokens_(prompt_tokens), submitted_us_(submitted_us),
      next_position_(prompt_tokens), usage_(models) {}

std::vector<commit> request_state::on_commits(std::vector<commit>&& commits, std::uint64_t now_us) {
  std::vector<commit> fresh;
  if (ended())
    return fresh;
  for (auto& x : commits)
    if (x.position >= next_position_ && epoch_of(x.turn) == epoch_)
      early_.emplace(x.position, x);
  while (!early_.empty() && early_.begin()->first == next_position_ && !ended()) {
    const commit x = early_.begin()->second;
    early_.erase(early_.begin());
    ++next_position_;
    last_turn_ = turn_in_epoch(x.turn);
    if (output_.empty())
      first_token_us_ = now_us;
    output_.push_back(x);
    fresh.push_back(x);
    if (x.model.value < usage_.size())
      ++usage_[x.model.value].generated_tokens;
    if (x.finish != finish_reason::none)
      end(x.finish, {}, now_us);
  }
  if (!fresh.empty())
    take_resume();
  return fresh;
}

void request_state::on_resumes(std::vector<resume_point>&& resumes) {
  for (auto& x : resumes)
    if (epoch_of(x.turn) == epoch_)
      resumes_.insert_or_assign(x.position, std::move(x));
}

/// The tokens before `next_position_` end where some step's tokens ended.
void request_state::take_resume() {
  if (const auto found = resumes_.find(next_position_); found != resumes_.end())
    resume_ = std::move(found->second);
  resumes_.erase(resumes_.begin(), resumes_.upper_bound(next_position_));
}

std::optional<turn_number> request_state::begin_epoch() {
  if (epoch_ + 1 == epochs_max)
    return std::nullopt;
  ++epoch_;
  handoffs_before_ += last_turn_ - 1;
  last_turn_ = 1;
  early_.clear();
  resumes_.clear();
  return first_turn(epoch_);
}

void request_state::end(finish_reason reason, error failure, std::uint64_t now_us) {
  if (ended())
    return;
  check(reason != finish_reason::none, "an end has a reason");
  finish_ = reason;
  failure_ = std::move(failure);
  ended_us_ = now_us;
  early_.clear();
}

void request_state::stop_after(std::size_t output_tokens, std::uint64_t now_us) {
  check(output_tokens > 0 && output_tokens <= output_.size(), "a text ends at one of its tokens");
  for (std::size_t i = output_tokens; i < output_.size(); ++i)
    if (output_[i].model.value < usage_.size())
      --usage_[output_[i].model.value].generated_tokens;
  output_.resize(output_tokens);
  last_turn_ = turn_in_epoch(output_.back().turn);
  finish_ = finish_reason::none;
  end(finish_reason::stop, {}, now_us);
}

void request_state::on_released(const released& x) {
  if (x.from.model.value >= usage_.size())
    return;
  auto& usage = usage_[x.from.model.value];
  usage.computed_tokens += x.computed_tokens;
  usage.cached_tokens += x.cached_tokens;
  usage.fetched_tokens += x.fetched_tokens;
  // A second replica of a model ran again what the first one held.
  usage.recomputed_tokens += x.recomputed_tokens + std::min(usage.kv_tokens, x.kv_tokens);
  usage.kv_tokens = std::max(usage.kv_tokens, x.kv_tokens);
}

request_done request_state::result() const {
  request_done x;
  x.request = id_;
  x.finish = finish_;
  x.failure = failure_;
  x.output = output_;
  x.usage = usage_;
  x.handoffs = handoffs_before_ + last_turn_ - 1;
  x.ttft_us = output_.empty() ? 0 : first_token_us_ - submitted_us_;
  x.total_us = ended_us_ - submitted_us_;
  return x;
}

} // namespace tokenrouter
