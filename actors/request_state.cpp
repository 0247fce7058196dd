#include "actors/request_state.hpp"

#include <algorithm>

#include "runtime/core/check.hpp"

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
    if (x.position >= next_position_)
      early_.emplace(x.position, x);
  while (!early_.empty() && early_.begin()->first == next_position_ && !ended()) {
    const commit x = early_.begin()->second;
    early_.erase(early_.begin());
    ++next_position_;
    if (output_.empty())
      first_token_us_ = now_us;
    output_.push_back(x);
    fresh.push_back(x);
    if (x.model.value < usage_.size())
      ++usage_[x.model.value].generated_tokens;
    if (x.finish != finish_reason::none)
      end(x.finish, {}, now_us);
  }
  return fresh;
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
  usage.recomputed_tokens += x.recomputed_tokens;
  usage.kv_tokens = std::max(usage.kv_tokens, x.kv_tokens);
}

request_done request_state::result() const {
  request_done x;
  x.request = id_;
  x.finish = finish_;
  x.failure = failure_;
  x.output = output_;
  x.usage = usage_;
  x.handoffs = output_.empty() ? 0 : output_.back().turn - 1;
  x.ttft_us = output_.empty() ? 0 : first_token_us_ - submitted_us_;
  x.total_us = ended_us_ - submitted_us_;
  return x;
}

} // namespace tokenrouter
