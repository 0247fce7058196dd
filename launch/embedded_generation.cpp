#include "launch/embedded_generation.hpp"

#include <utility>

namespace tokenrouter::embedded {

namespace {

outcome outcome_of(finish_reason x) {
  switch (x) {
  case finish_reason::stop:
    return outcome::stop;
  case finish_reason::length:
    return outcome::length;
  case finish_reason::cancelled:
    return outcome::cancelled;
  case finish_reason::none:
  case finish_reason::failed:
    break;
  }
  return outcome::failed;
}

// Both lists of errors are one.
static_assert(static_cast<int>(error_code::invalid_argument) ==
                  static_cast<int>(errc::invalid_argument) &&
              static_cast<int>(error_code::unavailable) == static_cast<int>(errc::unavailable) &&
              static_cast<int>(error_code::internal) == static_cast<int>(errc::internal));

} // namespace

error to_error(const tokenrouter::error& x) {
  return {static_cast<error_code>(x.code), x.message};
}

piece to_piece(const generation_delta& x) {
  piece out;
  out.text = x.text;
  for (const auto& one : x.tokens)
    out.tokens.push_back({one.token, one.model.value, one.logprob, one.score});
  return out;
}

answer to_answer(const generation_end& x) {
  answer out;
  out.finish = outcome_of(x.finish);
  out.failure = to_error(x.failure);
  out.handoffs = x.handoffs;
  out.ttft_us = x.ttft_us;
  out.total_us = x.total_us;
  return out;
}

void generation::parts::on_delta(generation_delta&& x) {
  piece fresh = to_piece(x);
  const std::lock_guard guard(mutex);
  whole.text += fresh.text;
  whole.tokens.insert(whole.tokens.end(), fresh.tokens.begin(), fresh.tokens.end());
  pieces.push_back(std::move(fresh));
  changed.notify_all();
}

void generation::parts::on_end(generation_end&& x) {
  answer end = to_answer(x);
  const std::lock_guard guard(mutex);
  end.text = std::move(whole.text);
  end.tokens = std::move(whole.tokens);
  whole = std::move(end);
  ended = true;
  changed.notify_all();
}

generation::generation(std::shared_ptr<parts> p) : parts_(std::move(p)) {}
generation::generation(generation&&) noexcept = default;

generation& generation::operator=(generation&& other) noexcept {
  if (this != &other) {
    cancel();
    parts_ = std::move(other.parts_);
  }
  return *this;
}

generation::~generation() {
  cancel();
}

std::optional<piece> generation::next() {
  std::unique_lock lock(parts_->mutex);
  parts_->changed.wait(lock, [this] { return parts_->ended || !parts_->pieces.empty(); });
  if (parts_->pieces.empty())
    return std::nullopt;
  piece out = std::move(parts_->pieces.front());
  parts_->pieces.pop_front();
  return out;
}

answer generation::wait() {
  std::unique_lock lock(parts_->mutex);
  parts_->changed.wait(lock, [this] { return parts_->ended; });
  return parts_->whole;
}

void generation::cancel() {
  if (!parts_)
    return;
  {
    const std::lock_guard guard(parts_->mutex);
    if (parts_->ended)
      return;
  }
  parts_->job->cancel(parts_->ticket);
}

} // namespace tokenrouter::embedded
