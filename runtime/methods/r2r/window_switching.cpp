#include "runtime/methods/r2r/window_switching.hpp"

#include <array>
#include <cmath>

#include "runtime/methods/r2r/defaults.hpp"

namespace tokenrouter {

namespace {

struct window_state {
  std::uint32_t quick = 0; ///< 1: the small model made the position before
  std::uint32_t count = 0;
  std::array<float, r2r_defaults::window_tokens_max> values{}; ///< oldest first

  void push(float value, std::uint32_t most) {
    if (count == most) {
      for (std::uint32_t i = 1; i < count; ++i)
        values[i - 1] = values[i];
      --count;
    }
    values[count++] = value;
  }

  double mean() const {
    double sum = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      sum += double{values[i]};
    return sum / count;
  }

  void clear() {
    count = 0;
    values.fill(0);
  }
};

} // namespace

role_needs window_switching::needs() const {
  if (options_.from == source::head) {
    role_needs out{to_set(signal::heads), {"r2r"}};
    out.request_threshold_max = 1;
    return out;
  }
  return {options_.simple_entropy_nats ? signal::evidence | signal::entropy
                                       : to_set(signal::evidence),
          {}};
}

/// The client's threshold stands for that of the head; others are of the evidence.
double window_switching::threshold_of(const route_input& in) const {
  return options_.from == source::head ? in.threshold.value_or(options_.threshold)
                                       : options_.threshold;
}

bool window_switching::is_simple(const route_input& in, float value) const {
  if (!options_.simple_entropy_nats)
    return double{value} < threshold_of(in);
  if (std::isnan(value) || std::isnan(in.entropy_nats))
    return false;
  return double{value} < threshold_of(in) ||
         double{in.entropy_nats} < *options_.simple_entropy_nats;
}

switch_decision window_switching::decide(const route_input& in, method_state& state) const {
  auto s = state.get<window_state>();
  const float value = options_.from == source::head ? in.head_score : in.aleatoric;
  switch_decision out{false, value};
  if (s.quick) {
    out.to_large = !is_simple(in, value);
    if (out.to_large && options_.keeps_trigger)
      s.push(value, options_.window_tokens);
  } else {
    s.push(value, options_.window_tokens);
    const double mean = s.mean();
    out = {!(mean < threshold_of(in)), static_cast<float>(mean)};
    if (!out.to_large)
      s.clear();
  }
  s.quick = out.to_large ? 0 : 1;
  state.set(s);
  return out;
}

} // namespace tokenrouter
