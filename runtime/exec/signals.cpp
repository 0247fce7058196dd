#include "runtime/exec/signals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/math/special_functions/digamma.hpp>

#include "runtime/core/check.hpp"
#include "runtime/exec/hot_kernel.hpp"
#include "runtime/exec/hot_math.hpp"

namespace tokenrouter {

namespace {

constexpr float minus_inf = -std::numeric_limits<float>::infinity();

constexpr std::size_t chunk_floats = 512; ///< a power of two: chunks are summed by halves

/// Adds Σe^y, Σ(e^y·y) and the number of NaN entries of one chunk; sums pairwise, so the order is
/// fixed and errors stay small.
TR_HOT_KERNEL void add_softmax(const float* logits, float largest, softmax_sums* sums) {
  float terms[chunk_floats], products[chunk_floats];
  int nans = 0;
  for (std::size_t i = 0; i < chunk_floats; ++i) {
    const float z = logits[i];
    nans += z != z;
    const float y = z - largest;
    terms[i] = exp_nonpositive(y);
    products[i] = terms[i] * (y > -87.0f ? y : -87.0f);
  }
  for (std::size_t half = chunk_floats / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) {
      terms[i] += terms[i + half];
      products[i] += products[i + half];
    }
  sums->sum += double{terms[0]};
  sums->weighted += double{products[0]};
  sums->nans += static_cast<std::size_t>(nans);
}

/// −inf if every entry is NaN or −inf.
TR_HOT_KERNEL float largest_of(const float* logits, std::size_t count) {
  constexpr std::size_t lanes = 32;
  float best[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane)
    best[lane] = minus_inf;
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];
  for (std::size_t i = whole; i < count; ++i)
    best[0] = logits[i] > best[0] ? logits[i] : best[0];
  float largest = best[0];
  for (std::size_t lane = 1; lane < lanes; ++lane)
    largest = best[lane] > largest ? best[lane] : largest;
  return largest;
}

/// Descending with NaN first: a strict weak order over all floats.
bool comes_first(float a, float b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

} // namespace

softmax_sums sum_softmax(std::span<const float> logits) {
  check(!logits.empty(), "softmax over at least one logit");
  softmax_sums out;
  out.largest = largest_of(logits.data(), logits.size());
  if (std::isinf(out.largest)) {
    out.sum = out.largest < 0 ? static_cast<double>(logits.size())
                              : static_cast<double>(std::ranges::count(logits, out.largest));
    out.nans = static_cast<std::size_t>(
        std::ranges::count_if(logits, [](float z) { return std::isnan(z); }));
    return out;
  }
  const std::size_t whole = logits.size() / chunk_floats * chunk_floats;
  for (std::size_t at = 0; at < whole; at += chunk_floats)
    add_softmax(logits.data() + at, out.largest, &out);
  if (whole != logits.size()) {
    float rest[chunk_floats];
    std::fill(std::copy(logits.begin() + static_cast<std::ptrdiff_t>(whole), logits.end(), rest),
              rest + chunk_floats, minus_inf);
    add_softmax(rest, out.largest, &out);
  }
  return out;
}

entropy_value entropy(std::span<const float> logits) {
  const softmax_sums sums = sum_softmax(logits);
  if (sums.nans != 0)
    return {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::quiet_NaN()};
  const double bound = std::log(static_cast<double>(logits.size()));
  const double nats = std::clamp(std::log(sums.sum) - sums.weighted / sums.sum, 0.0, bound);
  return {static_cast<float>(nats), bound > 0 ? static_cast<float>(nats / bound) : 0.0f};
}

float top_entropy_nats(std::span<const float> largest_first) {
  return largest_first.empty() ? 0.0f : entropy(largest_first).nats;
}

evidence_value evidence(std::span<const float> largest_first) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto clamped = [](float z) { return z < 1e-6f ? 1e-6 : double{z}; };
  double total = 0;
  for (const float z : largest_first)
    total += clamped(z);
  if (!std::isfinite(total))
    return {static_cast<float>(nan), static_cast<float>(nan)};
  const double whole = boost::math::digamma(total + 1);
  double aleatoric = 0;
  for (const float z : largest_first)
    aleatoric -= clamped(z) / total * (boost::math::digamma(clamped(z) + 1) - whole);
  const auto k = static_cast<double>(largest_first.size());
  return {static_cast<float>(aleatoric), static_cast<float>(k / (total + k))};
}

void top_logits(std::span<const float> logits, std::size_t k, std::vector<float>& out) {
  k = std::min(k, logits.size());
  out.clear();
  if (k == 0)
    return;
  // `out` collects what beats the k-th best so far and is cut back to k whenever it is full, so
  // that most of a long row costs one comparison an entry.
  const std::size_t full = std::max<std::size_t>(4 * k, 256);
  const auto kth = [&] { return out.begin() + static_cast<std::ptrdiff_t>(k); };
  float least = minus_inf;
  for (const float z : logits) {
    if (z <= least)
      continue;
    out.push_back(z);
    if (out.size() == full) {
      std::nth_element(out.begin(), kth() - 1, out.end(), comes_first);
      out.resize(k);
      least = out.back();
    }
  }
  if (out.size() > k) {
    std::nth_element(out.begin(), kth() - 1, out.end(), comes_first);
    out.resize(k);
  }
  std::sort(out.begin(), out.end(), comes_first);
  out.resize(k, minus_inf);
}

void fill_signals(std::span<const float> logits, signal_set wanted, std::vector<float>& scratch,
                  step_row_output& out) {
  constexpr std::size_t top_entropy_k = 20, evidence_k = 10;
  if (has(wanted, signal::entropy)) {
    const entropy_value h = entropy(logits);
    out.entropy_nats = h.nats;
    out.entropy_normalised = h.normalised;
  }
  const bool wants_top = has(wanted, signal::top_entropy);
  if (!wants_top && !has(wanted, signal::evidence))
    return;
  top_logits(logits, wants_top ? top_entropy_k : evidence_k, scratch);
  if (wants_top)
    out.entropy_top20_nats = top_entropy_nats(scratch);
  if (has(wanted, signal::evidence)) {
    const std::span<const float> top(scratch);
    const evidence_value e = evidence(top.first(std::min(evidence_k, top.size())));
    out.aleatoric = e.aleatoric;
    out.epistemic = e.epistemic;
  }
}

} // namespace tokenrouter
