#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "runtime/text/incremental_detokenizer.hpp"

namespace tokenrouter {

/// Text of tokens in the colour of the model that made each. Without colours: the text alone.
class painter {
 public:
  painter(const tokenizer& source, bool colours) : detokenizer_(source), colours_(colours) {}

  std::string push(const commit& x);
  /// The end of one request's text: what was held back, and the colour switched off.
  std::string finish();

 private:
  incremental_detokenizer detokenizer_;
  bool colours_;
  int current_model_ = -1;
};

/// `text` in the colour of that model.
std::string paint(model_id model, const std::string& text, bool colours);

} // namespace tokenrouter
