#include "runtime/methods/collm/threshold_schedule.hpp"

#include <cmath>
#include <numbers>

namespace tokenrouter {

result<threshold_schedule> threshold_schedule::make(const method_parameters& p) {
  if (!p.threshold)
    return fail(errc::invalid_argument, "method.threshold: co-llm needs one, and neither the "
                                        "config nor the head's JSON gives it");
  shape form;
  if (p.schedule == "constant")
    form = shape::constant;
  else if (p.schedule == "linear")
    form = shape::linear;
  else if (p.schedule == "exponential")
    form = shape::exponential;
  else if (p.schedule == "cosine")
    form = shape::cosine;
  else
    return fail(errc::invalid_argument, "method.schedule: unknown schedule '" + p.schedule +
                                            "'; known: constant, linear, exponential, cosine");
  if (form == shape::exponential && !(p.schedule_start_threshold > 0))
    return fail(errc::invalid_argument,
                "method.schedule_start_threshold: an exponential schedule starts above 0");
  return threshold_schedule(form, p.schedule_start_threshold, *p.threshold, p.warmup_tokens);
}

double threshold_schedule::at(std::uint32_t output_tokens) const {
  if (form_ == shape::constant || output_tokens >= warmup_tokens_)
    return end_;
  const double part = static_cast<double>(output_tokens) / warmup_tokens_;
  switch (form_) {
  case shape::linear:
    return start_ + (end_ - start_) * part;
  case shape::exponential:
    return start_ * std::pow(end_ / start_, part);
  case shape::cosine:
    return end_ + (start_ - end_) / 2 * (1 + std::cos(std::numbers::pi * part));
  case shape::constant:
    break;
  }
  return end_;
}

} // namespace tokenrouter
