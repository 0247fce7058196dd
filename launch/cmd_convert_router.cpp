#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/commands.hpp"

namespace tokenrouter {

namespace {

namespace fs = std::filesystem;

struct convert_options {
  std::string kind;
  std::string input;
  std::string output;
  std::optional<double> threshold;
  std::optional<std::uint32_t> defer_id;
};

/// The offline tool: in share/tokenrouter beside the program (where it was built) or beside its
/// folder (where it is installed).
std::optional<fs::path> find_tool() {
  std::error_code failed;
  const auto here = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const auto& root : {here, here.parent_path()}) {
    const auto path = root / "share" / "tokenrouter" / "convert_router.py";
    if (fs::exists(path, failed))
      return path;
  }
  return std::nullopt;
}

/// Runs it and returns its exit code.
int run_tool(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (failed != 0) {
    std::fprintf(stderr,
                 "tokenrouter: python3 can't be started (%s); install the package python3\n",
                 std::strerror(failed));
    return 2;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run_convert(const convert_options& options) {
  const auto tool = find_tool();
  if (!tool) {
    std::fprintf(stderr, "tokenrouter: share/tokenrouter/convert_router.py is not beside the "
                         "program; install tokenrouter whole\n");
    return 2;
  }
  // -E and -s: nothing of the user's environment is imported; -B: nothing is written beside it.
  std::vector<std::string> words{
      "python3",      "-E",     "-s",         "-B",
      tool->string(), "--kind", options.kind, "--output=" + options.output};
  if (options.threshold)
    words.push_back("--threshold=" + std::to_string(*options.threshold));
  if (options.defer_id)
    words.push_back("--defer-id=" + std::to_string(*options.defer_id));
  words.insert(words.end(), {"--", options.input});
  return run_tool(std::move(words));
}

} // namespace

void add_convert_router(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<convert_options>();
  auto* command = program.add_subcommand(
      "convert-router",
      "Turn a router's PyTorch checkpoint into safetensors and JSON; needs python3"
      ", not PyTorch, and runs nothing that the checkpoint holds");
  command->add_option("--kind", options->kind, "What the checkpoint holds")
      ->required()
      ->check(CLI::IsMember({"r2r", "citer", "collm"}));
  command
      ->add_option("input", options->input,
                   "The checkpoint: .pt or .pth; for collm the base model's file that has "
                   "lm_head.weight, .bin or .safetensors")
      ->required()
      ->check(CLI::ExistingFile);
  command
      ->add_option("-o,--output", options->output,
                   "File to write, ending in .safetensors; the JSON goes beside it")
      ->required();
  command
      ->add_option("--threshold", options->threshold,
                   "Threshold to write into the JSON instead of the checkpoint's")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--defer-id", options->defer_id,
                      "collm: id of <|defer|>; by default the tokenizer beside the input says it");
  command->callback([options, &exit_code] { exit_code = run_convert(*options); });
}

} // namespace tokenrouter
