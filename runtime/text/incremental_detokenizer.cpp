#include "runtime/text/incremental_detokenizer.hpp"

#include <string_view>
#include <utility>

#include "runtime/text/utf8.hpp"

namespace tokenrouter {

std::string incremental_detokenizer::push(token_id token) {
  if (skip_special_ && source_->is_special(token))
    return {};
  pending_ += source_->token_bytes(token);
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const utf8::unit unit = utf8::front_unit(rest);
    if (unit.kind == utf8::unit_kind::incomplete)
      break;
    out += unit.kind == utf8::unit_kind::character ? rest.substr(0, unit.bytes) : utf8::replacement;
    rest.remove_prefix(unit.bytes);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return out;
}

std::string incremental_detokenizer::finish() {
  return utf8::replace_invalid(std::exchange(pending_, {}));
}

} // namespace tokenrouter
