#pragma once

#include <CLI/CLI.hpp>

/// One function a subcommand: adds it with its options to the program. What it does runs after
/// parsing; its exit code goes to `exit_code`.
namespace tokenrouter {

void add_generate(CLI::App& program, int& exit_code);
void add_serve(CLI::App& program, int& exit_code);
void add_wait(CLI::App& program, int& exit_code);
void add_check(CLI::App& program, int& exit_code);
void add_trace(CLI::App& program, int& exit_code);
void add_optimize_batching(CLI::App& program, int& exit_code);
void add_plan_memory(CLI::App& program, int& exit_code);
void add_calibrate(CLI::App& program, int& exit_code);
void add_convert_router(CLI::App& program, int& exit_code);
void add_completion(CLI::App& program, int& exit_code);
void add_man(CLI::App& program, int& exit_code);

} // namespace tokenrouter
