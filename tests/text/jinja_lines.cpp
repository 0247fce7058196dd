/// Renders cases, one JSON object {"template", "context"} a line on standard input, to lines
/// {"out"} or {"error"}: what tests/data/jinja/compare.py holds against Jinja2.
#include <ctime>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/text/jinja/program.hpp"

using namespace tokenrouter;
using json = nlohmann::ordered_json;

namespace {

json answer(const json& given, const std::tm& now) {
  const auto parsed = jinja::program::parse(given["template"].get<std::string>(), "T");
  if (!parsed)
    return {{"error", parsed.error().message}};
  const auto got = parsed->render(given["context"], now);
  return got ? json{{"out", *got}} : json{{"error", got.error().message}};
}

} // namespace

int main() {
  std::tm now{};
  now.tm_year = 125;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 13;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 6;
  now.tm_yday = 206;
  std::string line;
  while (std::getline(std::cin, line))
    std::cout << answer(json::parse(line), now).dump() << "\n";
}
