#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/commands.hpp"
#include "runtime/core/error.hpp"
#include "runtime/planning/calibration.hpp"

namespace tokenrouter {

namespace {

using json = nlohmann::ordered_json;

struct calibrate_options {
  std::string scores_file;
  double large_share = 0;
  bool as_json = false;
};

/// Appends the scores of one line. False: there is none it could mean.
bool read_line(const std::string& line, std::vector<double>& scores) {
  if (line.front() != '{') {
    char* end = nullptr;
    scores.push_back(std::strtod(line.c_str(), &end));
    return end == line.c_str() + line.size() && std::isfinite(scores.back());
  }
  const auto object = json::parse(line, nullptr, false);
  if (!object.is_object())
    return false;
  if (const auto one = object.find("score"); one != object.end()) {
    if (!one->is_number())
      return false;
    scores.push_back(one->get<double>());
    return std::isfinite(scores.back());
  }
  const auto several = object.find("scores");
  if (several == object.end() || !several->is_array())
    return false;
  for (const auto& one : *several) {
    if (!one.is_number() && !one.is_null())
      return false;
    if (one.is_number())
      scores.push_back(one.get<double>());
  }
  return true;
}

result<std::vector<double>> read_scores(const std::string& file) {
  std::ifstream in(file);
  if (!in)
    return fail(errc::not_found, "can't read " + file + ": give a file of scores");
  std::vector<double> scores;
  std::string line;
  for (std::uint64_t number = 1; std::getline(in, line); ++number) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos)
      continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    if (!read_line(line, scores))
      return fail(errc::malformed,
                  fmt::format("{}:{}: no score; give a number, or a JSON object with \"score\" (a "
                              "number) or \"scores\" (numbers and nulls)",
                              file, number));
  }
  if (in.bad())
    return fail(errc::io, "can't read " + file + " to its end");
  if (scores.empty())
    return fail(errc::malformed, file + " has no scores; give one a line");
  std::sort(scores.begin(), scores.end());
  return scores;
}

std::string to_text(const calibration& got, std::size_t scores_count, double large_share) {
  std::string out =
      fmt::format("threshold     {}\n"
                  "wanted share  {:.4f}\n"
                  "sent          {} of {} scores reach it, a share of {:.4f}\n",
                  got.threshold, large_share, got.sent_count, scores_count, got.sent_share);
  if (got.tied_count > 1)
    out += fmt::format("ties          {} scores equal it; a threshold of {} leaves them out and "
                       "sends a share of {:.4f}\n",
                       got.tied_count, got.next_threshold, got.next_share);
  return out;
}

std::string to_json(const calibration& got, std::size_t scores_count, double large_share) {
  const json out{{"threshold", got.threshold},           {"wanted_share", large_share},
                 {"sent_share", got.sent_share},         {"sent_count", got.sent_count},
                 {"tied_count", got.tied_count},         {"scores_count", scores_count},
                 {"next_threshold", got.next_threshold}, {"next_share", got.next_share}};
  return out.dump(2) + "\n";
}

int run_calibrate(const calibrate_options& options) {
  const auto scores = read_scores(options.scores_file);
  if (!scores) {
    std::fprintf(stderr, "tokenrouter: %s\n", scores.error().message.c_str());
    return 2;
  }
  const auto got = calibrate_threshold(*scores, options.large_share);
  if (!got) {
    std::fprintf(stderr, "tokenrouter: %s\n", got.error().message.c_str());
    return 2;
  }
  const auto print = options.as_json ? to_json : to_text;
  std::fputs(print(*got, scores->size(), options.large_share).c_str(), stdout);
  return 0;
}

} // namespace

void add_calibrate(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<calibrate_options>();
  auto* command = program.add_subcommand(
      "calibrate", "Print the threshold that a wanted share of scores reaches");
  command->footer("For methods that turn to the large model when score >= threshold.");
  command
      ->add_option("--scores", options->scores_file,
                   "File of scores, a number or a JSON object a line: with \"score\", or with "
                   "\"scores\" as `generate` writes them (nulls are skipped)")
      ->required();
  command
      ->add_option("--large-share", options->large_share,
                   "Share of the scores that the large model is to get, 0 to 1")
      ->required()
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--json", options->as_json, "Print JSON");
  command->callback([options, &exit_code] { exit_code = run_calibrate(*options); });
}

} // namespace tokenrouter
