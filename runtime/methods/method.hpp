#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/core/check.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/signal_set.hpp"

/// A routing method is a set of roles, one for each model. A role is pure logic over values: it
/// reads no clock, does no I/O and knows nothing of actors, ranks or devices. The runtime calls it
/// from the scheduler of its model.
namespace tokenrouter {

/// No score: the role decides without one.
inline constexpr float no_score = std::numeric_limits<float>::quiet_NaN();

/// What a role remembers of one request. Belongs to the request: it travels with every handoff and
/// survives retraction. Holds one trivially copyable struct of the method's own, or nothing.
class method_state {
 public:
  template <class T>
  T get() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= limits::method_state_bytes_max);
    T value{};
    if (bytes_.size() == sizeof(T))
      std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }

  template <class T>
  void set(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= limits::method_state_bytes_max);
    bytes_.resize(sizeof(T));
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  std::size_t size_bytes() const { return bytes_.size(); }

  friend bool operator==(const method_state&, const method_state&) = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, method_state& x) {
    return f(x.bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// What the runtime must compute for a role.
struct role_needs {
  signal_set signals = 0;
  std::vector<std::string> heads; ///< kinds, e.g. "r2r"; scores come in this order
  /// Positions, the proposing one included, whose signals `route` sees in `tail`. The runtime runs
  /// them again where their signals are no longer known, so the answer never depends on caches.
  std::uint32_t tail_positions = 1;
  /// Positions, the proposing one included, that the heads see in head_input::window; run again as
  /// above.
  std::uint32_t head_window_positions = 1;
  /// Tokens are drawn with the sampling stream of the job's first model. Roles that say so draw the
  /// same token at a position wherever their distributions agree, so a judge accepts most drafts.
  bool shares_sampling_stream = false;
  /// The role goes by the client's threshold (route_input, start_input), which is from 0 to this.
  /// 0: it has none that a request could set.
  double request_threshold_max = 0;
};

/// A threshold that is compared with an entropy in nats.
inline constexpr double nats_max = 64;

/// The running model's forward pass that proposes the token at `position`.
struct route_input {
  std::uint64_t seed = 0;     ///< of the request
  std::uint32_t position = 0; ///< index of the proposed token in prompt + output
  std::uint32_t prompt_tokens = 0;
  std::uint32_t tentative_tokens = 0; ///< of the tokens before `position`: not committed yet
  token_id proposed = -1;
  bool would_finish = false;      ///< committing `proposed` ends the request
  float request_score = no_score; ///< the client's own routing score for this request; NaN: none
  std::optional<double> threshold = std::nullopt; ///< … and its threshold, in place of the method's
  float entropy_nats = 0;
  float entropy_normalised = 0;
  float entropy_top20_nats = 0;
  float aleatoric = 0;
  float epistemic = 0;
  float head_score = 0; ///< of the first head asked for
  /// Normalised entropies of the last role_needs::tail_positions positions that this model ran,
  /// oldest first, this one last; fewer at the start of a prompt. Empty unless more than one was
  /// asked for.
  std::span<const float> tail_entropies;
};

enum class route_action : std::uint8_t {
  stay,           ///< commit the proposed token; this model makes the next one
  go_drop,        ///< drop the proposed token; `target` makes this position
  go_keep,        ///< commit the proposed token; `target` makes the next one
  stay_tentative, ///< keep the proposed token without committing it; this model goes on
  go_tentative,   ///< the same, but `target` has the next turn and judges what is tentative
};

/// Committing a token commits every tentative one before it. A token that would finish the request
/// may not stay tentative at its model: use go_tentative.
struct route_decision {
  route_action action = route_action::stay;
  model_id target;        ///< with go_*: never the deciding model
  float score = no_score; ///< the value that was compared, for outputs and traces
  /// With stay and go_keep: committed in place of the proposed token, in order, until one finishes
  /// the request. The role's own memory.
  std::span<const token_id> forced = {};
  /// With go_drop, if above 0: `target` proposes the token x that maximises
  /// (1 − mix_weight) · P_here(x) + mix_weight · P_target(x). Needs signal::distribution.
  float mix_weight = 0;
};

/// Tentative tokens of a peer, after this model ran over them.
struct receive_input {
  std::uint32_t position = 0;          ///< of the first tentative token
  std::span<const token_id> tentative; ///< N ≥ 1 tokens
  /// What this model says at each of these positions and at the one after: N + 1 tokens.
  std::span<const token_id> own;
};

/// Where and how a request starts.
struct start_input {
  std::uint64_t seed = 0;
  std::span<const token_id> prompt;
  float request_score = no_score;                 ///< see route_input
  std::optional<double> threshold = std::nullopt; ///< see route_input
};

struct request_start {
  model_id model;
  method_state state;
};

/// Chooses the first model of each request. Pure; called where the request is admitted.
class method_entry {
 public:
  virtual ~method_entry() = default;
  virtual request_start start(const start_input& in) const = 0;
};

class method_role {
 public:
  virtual ~method_role() = default;

  virtual role_needs needs() const = 0;

  /// Decides after each forward pass, before the proposed token is committed. A NaN signal must
  /// lead to the larger model.
  virtual route_decision route(const route_input& in, method_state& state) const = 0;

  /// First token to ship to a peer that holds KV for `peer_kv_tokens` leading tokens of
  /// `committed_tokens`. At most peer_kv_tokens: a gap would be refused.
  virtual std::uint32_t send(std::uint32_t peer_kv_tokens, std::uint32_t committed_tokens) const {
    return peer_kv_tokens < committed_tokens ? peer_kv_tokens : committed_tokens - 1;
  }

  /// How many of a peer's tentative tokens to accept, 0 … N; they are committed, the rest is taken
  /// back (`rollback`), and own[accepted] is the next proposal that `route` sees. All of them,
  /// unless the method verifies. Committed tokens are final and not asked about.
  virtual std::uint32_t receive(const receive_input& in, method_state&) const {
    return static_cast<std::uint32_t>(in.tentative.size());
  }

  /// The last `tokens` tentative positions were taken back; windows and counters follow.
  virtual void rollback(std::uint32_t /*tokens*/, method_state&) const {}
};

} // namespace tokenrouter
