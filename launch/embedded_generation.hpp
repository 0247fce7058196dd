#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/ingress/embedded.hpp"
#include "runtime/ingress/engine.hpp"

namespace tokenrouter::embedded {

piece to_piece(const generation_delta& x);

error to_error(const tokenrouter::error& x);

/// Tokens and text left out.
answer to_answer(const generation_end& x);

/// What a generation's owner and the job's thread share.
struct __attribute__((visibility("hidden"))) generation::parts final : generation_sink {
  void on_delta(generation_delta&& x) override;
  void on_end(generation_end&& x) override;

  std::shared_ptr<engine> job; ///< set by the owner before anyone else sees it
  std::uint64_t ticket = 0;

  std::mutex mutex; ///< guards all below
  std::condition_variable changed;
  std::deque<piece> pieces; ///< not yet taken by `next`
  answer whole;
  bool ended = false;
};

} // namespace tokenrouter::embedded
