#include <boost/test/unit_test.hpp>

#include <string>

#include "tests/support/command.hpp"

using namespace tokenrouter::test;

namespace {

/// What bash offers for a line whose last word is being typed.
std::string offered(const std::string& line) {
  const std::string script = "source <(" + program() + " completion bash); COMP_WORDS=(" + line +
                             "); [[ '" + line +
                             "' == *\"''\" ]] && COMP_WORDS[-1]=''; "
                             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tokenrouter; "
                             "printf '%s ' \"${COMPREPLY[@]}\"";
  scratch_folder folder;
  write_file(folder.file("complete.sh"), script);
  return run_command("bash " + folder.file("complete.sh")).output;
}

} // namespace

BOOST_AUTO_TEST_CASE(bash_completes_commands_options_choices_and_files) {
  const std::pair<const char*, const char*> rows[] = {
      {"tokenrouter gen", "generate "},
      {"tokenrouter check --con", "--config "},
      {"tokenrouter check --config configs/r2r/abacus-xs_abacus-m.y",
       "configs/r2r/abacus-xs_abacus-m.yaml "},
      {"tokenrouter trace sum", "summary "},
      {"tokenrouter completion ''", "bash "},
      {"tokenrouter plan-memory --jso", "--json "},
      {"tokenrouter convert-router --kind ci", "citer "},
  };
  for (const auto& [line, want] : rows) {
    const std::string got = offered(line);
    BOOST_TEST(got.substr(0, std::string(want).size()) == want, line << " offers " << got);
  }
  const std::string all = offered("tokenrouter ''");
  for (const char* command : {"generate", "check", "trace", "man", "completion"})
    BOOST_TEST(all.find(command) != std::string::npos, command);
}

BOOST_AUTO_TEST_CASE(the_man_page_names_every_command_and_option) {
  const auto page = run_command(program() + " man");
  BOOST_TEST(page.exit_code == 0);
  BOOST_TEST(page.output.starts_with(".TH TOKENROUTER 1"));
  for (const char* part : {".SS generate", ".SS trace summary", "\\-\\-max\\-new\\-tokens",
                           "\\-\\-config", ".SH EXIT STATUS"})
    BOOST_TEST(page.output.find(part) != std::string::npos, part);
}
