#include "launch/painter.hpp"

#include <array>

namespace tokenrouter {

namespace {

constexpr const char* reset = "\033[0m";

/// The first model (usually the smallest) is plain, so that the others stand out.
const char* colour_of(model_id model) {
  constexpr std::array<const char*, 6> others{"\033[1;33m", "\033[1;35m", "\033[1;36m",
                                              "\033[1;32m", "\033[1;34m", "\033[1;31m"};
  return model.value == 0 ? "\033[37m" : others[(model.value - 1u) % others.size()];
}

} // namespace

std::string paint(model_id model, const std::string& text, bool colours) {
  return colours ? colour_of(model) + text + reset : text;
}

std::string painter::push(const commit& x) {
  std::string out;
  const std::string text = detokenizer_.push(x.token);
  if (colours_ && current_model_ != x.model.value && !text.empty()) {
    out = std::string(reset) + colour_of(x.model);
    current_model_ = x.model.value;
  }
  return out + text;
}

std::string painter::finish() {
  std::string out = detokenizer_.finish();
  if (colours_ && current_model_ >= 0)
    out += reset;
  current_model_ = -1;
  return out;
}

} // namespace tokenrouter
