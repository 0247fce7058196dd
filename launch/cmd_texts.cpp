#include <cstdio>
#include <memory>

#include "launch/command_texts.hpp"
#include "launch/commands.hpp"

namespace tokenrouter {

void add_completion(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("completion", "Print a script that completes this "
                                                       "program's commands and options");
  command->require_subcommand(1);
  auto* bash =
      command->add_subcommand("bash", "For bash: source it, or put it where bash-completion looks");
  bash->callback([&program, &exit_code] {
    std::fputs(bash_completion(program).c_str(), stdout);
    exit_code = 0;
  });
}

void add_man(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("man", "Print this program's man page (roff)");
  command->callback([&program, &exit_code] {
    std::fputs(man_page(program, program.version()).c_str(), stdout);
    exit_code = 0;
  });
}

} // namespace tokenrouter
