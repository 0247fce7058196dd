#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
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
};

/// The running model's forward pass that proposes the token at `position`.
struct route_input {
  std::uint64_t seed = 0;     ///< of the request
  std::uint32_t position = 0; ///< index of the proposed token in prompt + output
  std::uint32_t prompt_tokens = 0;
  token_id proposed = -1;
  float entropy_nats = 0;
  float entropy_normalised = 0;
  float entropy_top20_nats = 0;
  float aleatoric = 0;
  float epistemic = 0;
  float head_score = 0; ///< of the first head asked for
};

enum class route_action : std::uint8_t {
  stay,    ///< commit the proposed token; this model makes the next one
  go_drop, ///< drop the proposed token; `target` makes this position
  go_keep, ///< commit the proposed token; `target` makes the next one
};

struct route_decision {
  route_action action = route_action::stay;
  model_id target;        ///< with go_*: never the deciding model
  float score = no_score; ///< the value that was compared, for outputs and traces
};

/// What a peer sent back, seen by the role of the model that receives the turn.
struct receive_input {
  std::uint32_t position = 0;    ///< committed tokens now, the peer's included
  std::uint32_t peer_tokens = 0; ///< made by peers since this model last had the turn
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

  /// How many of the peer's tokens to accept. All of them unless the method verifies.
  virtual std::uint32_t receive(const receive_input& in, method_state&) const {
    return in.peer_tokens;
  }

  /// The last `tokens` positions were taken back; windows and counters follow.
  virtual void rollback(std::uint32_t /*tokens*/, method_state&) const {}
};

} // namespace tokenrouter
