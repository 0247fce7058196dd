#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "tests/support/package.hpp"

using namespace tokenrouter::test;
namespace fs = std::filesystem;

namespace {

/// The package, and its example built with CMake and without.
class package : public installed_package {
 public:
  package() {
    const fs::path example = share() / "examples/embedded";
    build(example);
    made_by_cmake = (example / "build/ask").string();
    made_by_hand = file("ask");
    setenv("NO_COLOR", "1", 1); // mpirun's output is a terminal
    must_run("c++ -std=c++20 -Wall -Wextra -Wconversion -pedantic -Werror " +
             (example / "ask.cpp").string() + " -o " + made_by_hand + " " +
             flags_of("tokenrouter") + " -Wl,-rpath," + (prefix() / "lib").string());
  }

  std::string config() const { return (share() / "configs/r2r/abacus-xs_abacus-m.yaml").string(); }
  std::string library() const { return (prefix() / "lib/libtokenrouter.so").string(); }

  std::string made_by_cmake, made_by_hand;
};

const package& installed() {
  static const package one;
  return one;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

/// What the example says of questions, without times and without what is counted.
std::string answers_of(const std::string& output) {
  std::string kept;
  for (const auto& line : lines_of(output.substr(0, output.find("\nrequests: "))))
    kept += line.substr(0, line.find(", first token after")) + "\n";
  return kept;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_example_answers_alike_however_it_is_built_and_started) {
  const auto& package = installed();
  const std::string quiet = " " + package.config() + " 2>/dev/null"; // start-up table, warnings
  const std::string output = must_run(package.made_by_cmake + quiet);
  BOOST_TEST_MESSAGE(output);
  BOOST_TEST(has(output, "models: abacus-xs, [1:abacus-m]"), output);
  BOOST_TEST(has(output, "2081"), output); // 4822 + 22 - 2763, digits by either model or both
  BOOST_TEST(has(output, "cancelled one: cancelled before its end"), output);
  BOOST_TEST(has(output, "batch: "), output);
  BOOST_TEST(has(output, "requests: 11 finished, 1 cancelled, 0 failed"), output);
  BOOST_TEST(has(output, "abacus-m     wrote "), output);
  for (const auto& command :
       {package.made_by_hand + quiet, mpirun(2) + package.made_by_cmake + quiet,
        mpirun(3) + package.made_by_hand + quiet})
    BOOST_TEST(answers_of(must_run(command)) == answers_of(output), command);
}

BOOST_AUTO_TEST_CASE(a_config_that_is_wrong_is_refused_on_every_rank) {
  const auto& package = installed();
  const auto alone = run_command(package.made_by_cmake + " nothing.yaml");
  BOOST_TEST(alone.exit_code == 2);
  BOOST_TEST(has(alone.output, "nothing.yaml"), alone.output);
  const auto two = run_command(mpirun(2) + package.made_by_cmake + " nothing.yaml");
  BOOST_TEST(two.exit_code == 2, two.output);
}

BOOST_AUTO_TEST_CASE(the_library_exports_nothing_but_its_interface) {
  const auto symbols = lines_of(must_run("nm -D -g -C --defined-only " + installed().library()));
  BOOST_TEST(symbols.size() > 15u);
  const std::string job = "tokenrouter::embedded::job::";
  const std::string generation = "tokenrouter::embedded::generation::";
  for (const auto& line : symbols) {
    const std::string name = line.substr(0, line.find('(')); // address, kind, name
    BOOST_TEST((has(name, " T " + job) || has(name, " T " + generation)), line);
    BOOST_TEST(!has(name, "::parts"), line);
  }
  BOOST_TEST(has(must_run("readelf -d " + installed().library()),
                 "Library soname: [libtokenrouter.so.0."));
}

BOOST_AUTO_TEST_CASE(the_header_needs_the_standard_library_alone) {
  const auto included =
      must_run("echo '#include <tokenrouter/embedded.hpp>' | c++ -std=c++20 -x c++ -M -I" +
               (installed().prefix() / "include").string() + " -");
  const auto first = included.find(".hpp"); // which no header of the standard library ends in
  BOOST_REQUIRE(first != std::string::npos);
  BOOST_TEST(!has(included.substr(first + 1), ".hpp"), included);
}

BOOST_AUTO_TEST_CASE(the_package_has_what_a_job_and_its_user_need) {
  const auto prefix = installed().prefix();
  for (const char* file :
       {"bin/tokenrouter", "share/man/man1/tokenrouter.1",
        "share/bash-completion/completions/tokenrouter", "include/tokenrouter/embedded.hpp",
        "lib/cmake/TokenRouter/TokenRouterConfig.cmake",
        "lib/cmake/TokenRouter/TokenRouterConfigVersion.cmake", "lib/pkgconfig/tokenrouter.pc"})
    BOOST_TEST(fs::file_size(prefix / file) > 0u, file);
  BOOST_TEST(has(read_file((prefix / "share/man/man1/tokenrouter.1").string()), "generate"));
  must_run("cd / && " + installed().program_file() + " generate --config " + installed().config() +
           " --prompt hello --max-new-tokens 8");
}
