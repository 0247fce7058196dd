#pragma once

#include <map>
#include <string>
#include <vector>

namespace tokenrouter::test {

/// One policy of the oracle and how to run it here.
struct oracle_policy {
  std::string name;   ///< file in tests/data/oracle, without .json
  std::string config; ///< below configs/
};

/// How one run is laid out.
struct oracle_layout {
  int ranks = 0; ///< 0: without mpirun
  int concurrency = 1;
  std::string overrides; ///< further options
};

/// The oracle's prompts as a prompts file for `generate`.
void write_oracle_prompts(const std::string& path);

/// Runs a policy over all prompts in exact mode and compares token ids, who made each, the routing
/// scores and what each model computed with the oracle. Empty: all equal, but for what follows a
/// documented near tie (added to `near_ties`).
std::vector<std::string> differences(const oracle_policy& policy, const oracle_layout& layout,
                                     int& near_ties);

} // namespace tokenrouter::test
