#pragma once

#include <string>

#include "tests/support/scratch_folder.hpp"

namespace tokenrouter::test {

struct command_result {
  int exit_code = -1; ///< 128 + n if signal n ended it
  std::string output; ///< stdout and stderr, as they came
};

/// Runs a shell command to its end.
command_result run_command(const std::string& command);

/// `mpirun -np N` with what tests need: more ranks than cores, as any user.
std::string mpirun(int ranks);

/// Path of the program under test: `tokenrouter` beside the running test.
std::string program();

void write_file(const std::string& path, const std::string& text);
std::string read_file(const std::string& path);

} // namespace tokenrouter::test
