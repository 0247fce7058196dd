#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "runtime/config/config_keys.hpp"
#include "runtime/config/load.hpp"

using namespace tokenrouter;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(every_config_that_is_shipped_loads) {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml")
      continue;
    found.insert(entry.path().lexically_relative("configs").string());
    const auto loaded = load_config(entry.path(), {});
    for (const config_fault& fault : loaded.faults)
      BOOST_ERROR(to_string(fault));
    for (const model_settings& model : loaded.config.models)
      BOOST_TEST(model.ranks.empty());
  }
  for (const char* name : {"single/abacus-xs", "single/abacus-s", "single/abacus-m",
                           "me/abacus-xs_abacus-s_abacus-m", "cascade/abacus-xs_abacus-s_abacus-m"})
    BOOST_TEST(found.contains(name + std::string(".yaml")), name);
  for (const char* folder :
       {"r2r", "r2r-immediate", "r2r-entropy", "r2r-momentum", "r2r-single_rolling_window",
        "r2r-duo_rolling_window", "r2r-neural", "r2r-neural_rolling_window",
        "r2r-neural_multi_input", "r2r-random", "citer", "co-llm", "rstitch", "glimprouter",
        "query-level", "random-token", "random-request", "speculate"})
    BOOST_TEST(found.contains(folder + std::string("/abacus-xs_abacus-m.yaml")), folder);
}

BOOST_AUTO_TEST_CASE(every_key_is_explained_in_the_readme) {
  std::ifstream stream("configs/README.md");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  BOOST_REQUIRE(!text.empty());
  for (const std::string_view key : known_config_keys())
    BOOST_TEST((text.find("`" + std::string(key) + "`") != std::string::npos),
               "configs/README.md does not mention " << key);
}

BOOST_AUTO_TEST_CASE(edit_distance_counts_edits_and_exchanges) {
  struct row {
    const char *a, *b;
    std::size_t distance;
  };
  const row rows[] = {{"", "", 0},       {"", "abc", 3},    {"abc", "", 3},
                      {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1},
                      {"abc", "ab", 1},  {"ab", "cab", 1},  {"kitten", "sitting", 3}};
  for (const row& r : rows)
    BOOST_TEST(edit_distance(r.a, r.b) == r.distance, r.a << " " << r.b);
}
