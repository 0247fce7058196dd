#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace tokenrouter {

/// A bash script that completes the program's subcommands and options, made of its command tree;
/// after an option that takes a value, and for arguments without a name, it completes files.
std::string bash_completion(const CLI::App& program);

/// The program's man page in roff, made of its command tree.
std::string man_page(const CLI::App& program, const std::string& version);

} // namespace tokenrouter
