#include <vector>

#include <fmt/format.h>

#include "launch/command_texts.hpp"

namespace tokenrouter {

namespace {

/// What can stand behind one command's words.
struct command_words {
  std::string path;    ///< words of the command, blanks between
  std::string words;   ///< subcommands and options
  std::string valued;  ///< options that take a value, as a case pattern
  std::string choices; ///< case arms: options with few values
};

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const auto& name : option.get_lnames())
    out.push_back("--" + name);
  for (const auto& name : option.get_snames())
    out.push_back("-" + name);
  return out;
}

/// The values in braces of an option's type, such as {a,b}; empty if it has no such set.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return {};
  std::string words = type.substr(open + 1, close - open - 1);
  for (char& c : words)
    if (c == ',')
      c = ' ';
  return words;
}

void collect(const CLI::App& command, const std::string& path, std::vector<command_words>& into) {
  command_words out;
  out.path = path;
  for (const CLI::App* inner : command.get_subcommands({}))
    out.words += inner->get_name() + " ";
  for (const CLI::Option* option : command.get_options()) {
    for (const auto& name : spellings(*option)) {
      out.words += name + " ";
      if (option->get_items_expected_max() == 0)
        continue;
      out.valued += (out.valued.empty() ? "" : "|") + name;
      if (const auto choices = choices_of(*option); !choices.empty())
        out.choices += fmt::format(
            "      {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", name, choices);
    }
  }
  into.push_back(std::move(out));
  for (const CLI::App* inner : command.get_subcommands({}))
    collect(*inner, path.empty() ? inner->get_name() : path + " " + inner->get_name(), into);
}

std::string arm(const command_words& command) {
  std::string out =
      fmt::format("  '{}')\n    case \"$before\" in\n{}", command.path, command.choices);
  if (!command.valued.empty())
    out += fmt::format("      {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
                       command.valued);
  return out + fmt::format("    esac\n    words='{}' ;;\n", command.words);
}

} // namespace

std::string bash_completion(const CLI::App& program) {
  std::vector<command_words> commands;
  collect(program, "", commands);
  std::string paths, arms;
  for (const auto& command : commands) {
    paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", command.path);
    arms += arm(command);
  }
  return fmt::format(R"bash(# bash completion for {0}; from `{0} completion bash`
_{0}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="" path="" words="" next i
  COMPREPLY=()
  [ "$COMP_CWORD" -gt 0 ] && before="${{COMP_WORDS[COMP_CWORD - 1]}}"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{path:+$path }}${{COMP_WORDS[i]}}"
    case "$next" in
      {1}) path="$next" ;;
    esac
  done
  case "$path" in
{2}  esac
  if [[ "$word" == -* || ("$path" != *' '* && -z "$path") ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(printf '%s\n' $words | grep -v '^-')" -- "$word")
               $(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _{0} {0}
)bash",
                     program.get_name(), paths, arms);
}

} // namespace tokenrouter
