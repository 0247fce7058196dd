#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/config/load.hpp"
#include "tests/support/scratch_folder.hpp"

namespace tokenrouter {

/// A folder with two model folders `a` and `b`, a router file `r.safetensors` and a config file
/// `c.yaml` that a test writes; gone after the test.
struct config_fixture {
  test::scratch_folder scratch;
  std::filesystem::path folder = scratch.path();
  std::filesystem::path file = folder / "c.yaml";

  config_fixture() {
    for (const char* model : {"a", "b"}) {
      std::filesystem::create_directories(folder / model);
      std::ofstream(folder / model / "config.json") << "{}";
    }
    std::filesystem::create_directories(folder / "empty");
    std::ofstream(folder / "r.safetensors") << "x";
  }

  config_load load(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    std::ofstream(file) << text;
    return load_config(file, overrides);
  }

  /// Each fault as shown to the user, the folder's path written as DIR.
  std::vector<std::string> faults(const std::string& text,
                                  const std::vector<std::string>& overrides = {}) const {
    std::vector<std::string> out;
    for (const config_fault& fault : load(text, overrides).faults) {
      std::string shown = to_string(fault);
      for (std::size_t at = 0; (at = shown.find(folder.string(), at)) != std::string::npos;)
        shown.replace(at, folder.string().size(), "DIR");
      out.push_back(shown);
    }
    return out;
  }
};

} // namespace tokenrouter
