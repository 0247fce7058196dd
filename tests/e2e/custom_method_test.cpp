#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/methods/plugin.hpp"
#include "tests/support/package.hpp"

using namespace tokenrouter::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// The package, with its example and a library of the tests' own built against it. Made once.
class package : public installed_package {
 public:
  package() {
    const fs::path example = share() / "examples/custom_method";
    config = (example / "margin.yaml").string();
    build(example);
    must_run("c++ -std=c++20 -Wall -Wextra -Wconversion -Werror -shared -fPIC "
             "tests/e2e/odd_method.cpp -o " +
             file("odd.so") + " " + flags_of("tokenrouter-method"));
  }

  std::string config; ///< of the example
};

const package& installed() {
  static const package one;
  return one;
}

/// The answers to the first prompts of the bench.
std::vector<json> answers(const std::string& launcher, const std::string& options) {
  const auto& package = installed();
  must_run("head -n 6 " +
           (package.share() / "examples/models/abacus/prompts/bench.jsonl").string() + " > " +
           package.file("in.jsonl"));
  must_run(launcher + package.program_file() + " generate --max-new-tokens 96 --concurrency 6 " +
           "--prompts " + package.file("in.jsonl") + " --output " + package.file("out.jsonl") +
           " " + options);
  std::vector<json> all;
  std::istringstream lines(read_file(package.file("out.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    all.push_back(json::parse(line));
    all.back().erase("timing_ms");
  }
  BOOST_REQUIRE(all.size() == 6u);
  return all;
}

/// Starts a job of the example with `overrides` and expects to be refused with just this message.
void expect_refusal(const std::string& overrides, const std::string& message) {
  const auto run = run_command(installed().program_file() + " generate --prompt hello --config " +
                               installed().config + " " + overrides);
  BOOST_TEST(run.exit_code == 2, overrides);
  BOOST_TEST(run.output == "tokenrouter: " + message + "\n");
}

std::string library(const std::string& path) {
  return "--set method.library=" + path + " ";
}

std::string odd_library() {
  return library(installed().file("odd.so")) + "--set method.options={} ";
}

std::string roles(const std::string& small, const std::string& large) {
  return "--set models.abacus-xs.scheduler=" + small + " --set models.abacus-m.scheduler=" + large +
         " ";
}

std::string hex(std::uint64_t x) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(x));
  return text;
}

/// A shared library made of that C source.
std::string c_library(const std::string& name, const std::string& source) {
  write_file(installed().file(name + ".c"), source);
  must_run("cc -shared -fPIC -o " + installed().file(name + ".so") + " " +
           installed().file(name + ".c"));
  return installed().file(name + ".so");
}

} // namespace

BOOST_AUTO_TEST_CASE(the_example_routes_alike_in_one_process_and_over_two_ranks) {
  const auto alone = answers("", "--config " + installed().config);
  const auto spread = answers(mpirun(2), "--config " + installed().config);
  int handoffs = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    BOOST_TEST(alone[i] == spread[i]);
    handoffs += alone[i]["usage"]["handoffs"].get<int>();
    // Who wrote each token follows from the scores and the count of handoffs in a row.
    unsigned in_a_row = 0;
    for (std::size_t k = 0; k < alone[i]["models"].size(); ++k) {
      const bool sure = alone[i]["scores"][k].get<double>() < 0.2 + 0.2 * in_a_row;
      BOOST_TEST(alone[i]["models"][k] == (sure ? "abacus-xs" : "abacus-m"));
      in_a_row = sure ? 0 : in_a_row + 1;
    }
  }
  BOOST_TEST(handoffs > 20);
}

BOOST_AUTO_TEST_CASE(options_reach_the_method) {
  const auto careful =
      answers("", "--config " + installed().config + " --set 'method.options={margin_nats: 0}'");
  for (const auto& answer : careful)
    for (const auto& model : answer["models"])
      BOOST_TEST(model == "abacus-m");
}

BOOST_AUTO_TEST_CASE(a_role_with_the_routers_head_routes_as_r2r_does) {
  const std::string router =
      " --set method.router=" +
      (installed().share() / "examples/models/abacus/routers/r2r.safetensors").string();
  const auto ours = answers("", "--config " + installed().config + " " + odd_library() +
                                    roles("headed", "helper") + router);
  const auto theirs = answers(
      "", "--config " + (installed().share() / "configs/r2r/abacus-xs_abacus-m.yaml").string());
  for (std::size_t i = 0; i < ours.size(); ++i)
    BOOST_TEST(ours[i] == theirs[i]);
}

BOOST_AUTO_TEST_CASE(the_librarys_entry_says_where_requests_start) {
  for (const auto& answer : answers("", "--config " + installed().config + " " + odd_library() +
                                            roles("alone", "alone")))
    for (const auto& model : answer["models"])
      BOOST_TEST(model == "abacus-m");
}

BOOST_AUTO_TEST_CASE(a_library_that_does_not_fit_is_refused) {
  const auto& package = installed();
  const std::string ours = hex(tokenrouter::method_abi());
  expect_refusal(library(package.file("gone.so")),
                 "the config has a fault:\n--set method.library=" + package.file("gone.so") +
                     ": method.library is not a file: " + package.file("gone.so"));
  write_file(package.file("text.so"), "no library\n");
  expect_refusal(library(package.file("text.so")),
                 "method.library can't be opened: " + package.file("text.so") + ": file too short");
  const auto empty = c_library("empty", "int nothing;\n");
  const std::string advice =
      "; end its source with TOKENROUTER_METHOD of runtime/methods/plugin.hpp";
  expect_refusal(library(empty),
                 "method.library " + empty + " has no function tokenrouter_method_abi" + advice);
  const auto half =
      c_library("half", "unsigned long tokenrouter_method_abi(void) { return " + ours + "ul; }\n");
  expect_refusal(library(half),
                 "method.library " + half + " has no function tokenrouter_make_role" + advice);
  const auto old = c_library("old", "unsigned long tokenrouter_method_abi(void) { return 7; }\n");
  expect_refusal(library(old), "method.library " + old + " was built for method interface " +
                                   hex(7) + ", but this program has " + ours +
                                   "; rebuild it with this program's headers");
}

BOOST_AUTO_TEST_CASE(roles_that_cannot_be_made_are_named) {
  const std::string margin =
      "method.library " +
      (fs::path(installed().config).parent_path() / "build/libmargin.so").string() + ": ";
  const std::string odd = "method.library " + installed().file("odd.so") + ": ";
  expect_refusal(roles("margin_medium", "margin_large"),
                 margin + "unknown scheduler 'margin_medium'; the library has: margin_small, "
                          "margin_large");
  expect_refusal(roles("margin_small", "margin_small"),
                 margin + "the method needs exactly one model with scheduler: margin_large; the "
                          "config has 0");
  expect_refusal("--set 'method.options={rise_nats: wide}'",
                 margin + "method.options.rise_nats must be a number, 0 to 3, not wide");
  expect_refusal("--set 'method.options={rise: 1}'",
                 margin + "method.options.rise is unknown; the method reads margin_nats, "
                          "rise_nats");
  struct row {
    const char *role, *message;
  };
  const row rows[] = {
      {"headed", "the factory of scheduler 'headed' threw: bad optional access"},
      {"greedy", "scheduler 'greedy' needs 5 heads; a model runs at most 4"},
      {"deaf", "scheduler 'deaf' names heads, but signal::heads is not among its signals"},
      {"blind", "scheduler 'blind' needs 0 positions; the proposing one counts as 1"},
      {"nothing", "scheduler 'nothing' was made as a null pointer"},
  };
  for (const auto& [role, message] : rows)
    expect_refusal(odd_library() + roles(role, "alone"), odd + message);
  expect_refusal(odd_library() + roles("headed", "alone") + "--set method.threshold=0.5",
                 "method needs router, the weights of the routing head 'r2r' that a role of model "
                 "'abacus-xs' asks for");
}

BOOST_AUTO_TEST_CASE(a_job_over_ranks_refuses_a_library_once) {
  const auto run =
      run_command(mpirun(2) + installed().program_file() + " generate --prompt hello --config " +
                  installed().config + " " + library(c_library("none", "int nothing;\n")));
  BOOST_TEST(run.exit_code == 2, run.output);
  const std::string part = "has no function tokenrouter_method_abi";
  const auto first = run.output.find(part);
  BOOST_REQUIRE_MESSAGE(first != std::string::npos, run.output);
  BOOST_TEST(run.output.find(part, first + 1) == std::string::npos, run.output);
}
