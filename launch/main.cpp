#include "launch/commands.hpp"

#ifndef TOKENROUTER_VERSION
#error "the build passes TOKENROUTER_VERSION"
#endif

int main(int argc, char** argv) {
  CLI::App program("TokenRouter: several language models write one text, token by token, over MPI "
                   "ranks. Start it alone, or with mpirun or srun.",
                   "tokenrouter");
  program.set_version_flag("--version", TOKENROUTER_VERSION);
  program.require_subcommand(1);
  program.get_formatter()->column_width(40);
  int exit_code = 0;
  tokenrouter::add_generate(program, exit_code);
  tokenrouter::add_serve(program, exit_code);
  tokenrouter::add_wait(program, exit_code);
  tokenrouter::add_check(program, exit_code);
  tokenrouter::add_trace(program, exit_code);
  tokenrouter::add_optimize_batching(program, exit_code);
  tokenrouter::add_plan_memory(program, exit_code);
  tokenrouter::add_calibrate(program, exit_code);
  tokenrouter::add_convert_router(program, exit_code);
  tokenrouter::add_completion(program, exit_code);
  tokenrouter::add_man(program, exit_code);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // CLI11 has codes of its own; a wrong command line is 2 here, as everywhere.
    return program.exit(e) == 0 ? 0 : 2;
  }
  return exit_code;
}
