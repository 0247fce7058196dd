#include "runtime/text/splitter.hpp"

#include <limits>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t jit_stack_bytes_min = 32 << 10;
constexpr std::size_t jit_stack_bytes_max = 8 << 20;

std::string pcre2_message(int code) {
  unsigned char text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

} // namespace

struct splitter::code {
  pcre2_code* pattern = nullptr;
  pcre2_match_data* match = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;

  code() = default;
  code(const code&) = delete;
  code& operator=(const code&) = delete;
  ~code() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
    pcre2_code_free(pattern);
  }
};

splitter::splitter(std::unique_ptr<code> c) : code_(std::move(c)) {}
splitter::splitter(splitter&&) noexcept = default;
splitter& splitter::operator=(splitter&&) noexcept = default;
splitter::~splitter() = default;

result<splitter> splitter::compile(const std::string& pattern, bool literal) {
  auto out = std::make_unique<code>();
  int error_code = 0;
  PCRE2_SIZE offset = 0;
  const std::uint32_t options = literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP;
  out->pattern = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                               options, &error_code, &offset, nullptr);
  if (out->pattern == nullptr)
    return fail(errc::malformed, "pattern '" + pattern + "': " + pcre2_message(error_code) +
                                     " at byte " + std::to_string(offset));
  out->match = pcre2_match_data_create_from_pattern(out->pattern, nullptr);
  out->context = pcre2_match_context_create(nullptr);
  check(out->match != nullptr && out->context != nullptr, "PCRE2 has memory for a match");
  // Match limits count work, which a long text takes honestly.
  pcre2_set_match_limit(out->context, std::numeric_limits<std::uint32_t>::max());
  if (pcre2_jit_compile(out->pattern, PCRE2_JIT_COMPLETE) == 0) {
    out->stack = pcre2_jit_stack_create(jit_stack_bytes_min, jit_stack_bytes_max, nullptr);
    pcre2_jit_stack_assign(out->context, nullptr, out->stack);
  }
  return splitter(std::move(out));
}

result<void> splitter::split(std::string_view text,
                             const std::function<result<void>(std::string_view)>& piece) const {
  std::size_t done = 0, from = 0;
  while (from < text.size()) {
    const int found =
        pcre2_match(code_->pattern, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, code_->match, code_->context);
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    if (found < 0)
      return fail(errc::capacity, "splitting " + std::to_string(text.size()) +
                                      " bytes of text into words: " + pcre2_message(found));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(code_->match);
    // \K in a look-ahead can start a match after its end.
    if (ends[0] < done || ends[1] <= ends[0])
      break;
    if (ends[0] > done)
      if (auto passed = piece(text.substr(done, ends[0] - done)); !passed)
        return passed;
    if (auto passed = piece(text.substr(ends[0], ends[1] - ends[0])); !passed)
      return passed;
    done = from = ends[1];
  }
  return done < text.size() ? piece(text.substr(done)) : result<void>{};
}

} // namespace tokenrouter
