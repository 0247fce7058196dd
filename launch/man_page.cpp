#include <fmt/format.h>

#include "launch/command_texts.hpp"

namespace tokenrouter {

namespace {

/// Text that roff shows as it is.
std::string plain(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\''))
      out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string spelt(const CLI::Option& option) {
  std::string names;
  for (const auto& name : option.get_snames())
    names += (names.empty() ? "-" : ", -") + name;
  for (const auto& name : option.get_lnames())
    names += (names.empty() ? "--" : ", --") + name;
  if (names.empty())
    return "\\fI" + plain(option.get_single_name()) + "\\fR";
  std::string out = "\\fB" + plain(names) + "\\fR";
  if (option.get_items_expected_max() > 0)
    out += " \\fI" + plain(option.get_type_name()) + "\\fR";
  return out;
}

void append_options(const CLI::App& command, std::string& out) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty())
      continue;
    out += ".TP\n" + spelt(*option) + "\n" + plain(option->get_description());
    if (option->get_required())
      out += " (required)";
    if (!option->get_default_str().empty())
      out += " (default: " + plain(option->get_default_str()) + ")";
    out += "\n";
  }
}

void append_command(const CLI::App& command, const std::string& path, std::string& out) {
  out += ".SS " + plain(path) + "\n" + plain(command.get_description()) + "\n";
  append_options(command, out);
  for (const CLI::App* inner : command.get_subcommands({}))
    append_command(*inner, path + " " + inner->get_name(), out);
}

} // namespace

std::string man_page(const CLI::App& program, const std::string& version) {
  const std::string name = program.get_name();
  std::string upper = name;
  for (char& c : upper)
    c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  std::string out =
      fmt::format(".TH {} 1 \"\" \"{} {}\"\n.SH NAME\n{} \\- token-level routing among "
                  "language models over MPI ranks\n.SH SYNOPSIS\n.B {}\n"
                  ".I command\n[\\fIoption\\fR]...\n.SH DESCRIPTION\n{}\n",
                  upper, name, version, name, name, plain(program.get_description()));
  out += ".SH OPTIONS\n";
  append_options(program, out);
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : program.get_subcommands({}))
    append_command(*command, command->get_name(), out);
  out += ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nthe job or one of its requests failed\n.TP\n2\nit "
         "could not start: config, files or command line\n";
  return out;
}

} // namespace tokenrouter
