#include "runtime/config/device_choice.hpp"

#include <charconv>

namespace tokenrouter {

std::optional<device_choice> parse_device(std::string_view text) {
  constexpr std::string_view prefix = "cuda:";
  if (text == "cpu")
    return device_choice{};
  if (text == "cuda")
    return device_choice{.gpu = true, .number = {}};
  if (!text.starts_with(prefix))
    return std::nullopt;
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + prefix.size(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    return std::nullopt;
  return device_choice{.gpu = true, .number = number};
}

} // namespace tokenrouter
