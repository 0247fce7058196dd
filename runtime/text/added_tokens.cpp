#include "runtime/text/added_tokens.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/check.hpp"
#include "runtime/text/normalize.hpp"
#include "runtime/text/utf8.hpp"

namespace tokenrouter {

namespace {

std::size_t spaces_end(std::string_view text, std::size_t from) {
  while (from < text.size()) {
    const utf8::unit unit = utf8::front_unit(text.substr(from));
    if (unit.kind != utf8::unit_kind::character ||
        !is_space(utf8::front_code_point(text.substr(from))))
      break;
    from += unit.bytes;
  }
  return from;
}

std::size_t spaces_begin(std::string_view text, std::size_t floor, std::size_t end) {
  while (end > floor) {
    std::size_t lead = end - 1;
    while (lead > floor && (static_cast<unsigned char>(text[lead]) & 0xC0) == 0x80)
      --lead;
    const std::string_view last = text.substr(lead, end - lead);
    const utf8::unit unit = utf8::front_unit(last);
    if (unit.kind != utf8::unit_kind::character || unit.bytes != last.size() ||
        !is_space(utf8::front_code_point(last)))
      break;
    end = lead;
  }
  return end;
}

} // namespace

added_token_finder::added_token_finder(std::vector<added_token> tokens)
    : tokens_(std::move(tokens)) {
  std::ranges::stable_sort(tokens_, [](const added_token& a, const added_token& b) {
    return a.content.size() > b.content.size();
  });
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    check(!tokens_[i].content.empty(), "an added token has content");
    by_first_byte_[static_cast<unsigned char>(tokens_[i].content[0])].push_back(i);
  }
}

std::optional<added_match> added_token_finder::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at)
    for (const std::size_t index : by_first_byte_[static_cast<unsigned char>(text[at])]) {
      const added_token& token = tokens_[index];
      if (text.compare(at, token.content.size(), token.content) != 0)
        continue;
      const std::size_t end = at + token.content.size();
      return added_match{token.lstrip ? spaces_begin(text, from, at) : at,
                         token.rstrip ? spaces_end(text, end) : end, token.id};
    }
  return std::nullopt;
}

} // namespace tokenrouter
