#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "launch/commands.hpp"
#include "runtime/trace/summary.hpp"

namespace tokenrouter {

namespace {

int run_summary(const std::vector<std::string>& paths) {
  std::vector<trace_file> files;
  for (const auto& path : paths) {
    auto file = read_trace(path);
    if (!file) {
      std::fprintf(stderr, "tokenrouter: %s\n", file.error().message.c_str());
      return 2;
    }
    files.push_back(std::move(*file));
  }
  const auto summary = summarise(files);
  if (!summary) {
    std::fprintf(stderr, "tokenrouter: %s\n", summary.error().message.c_str());
    return 2;
  }
  std::fputs(to_text(*summary).c_str(), stdout);
  return 0;
}

} // namespace

void add_trace(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("trace", "Look into the trace files of a job");
  command->require_subcommand(1);
  auto* summary = command->add_subcommand(
      "summary", "Print tokens per model, handoffs, tokens computed and time per stage");
  auto files = std::make_shared<std::vector<std::string>>();
  summary->add_option("files", *files, "The trace files of all ranks of one job")->required();
  summary->callback([files, &exit_code] { exit_code = run_summary(*files); });
}

} // namespace tokenrouter
