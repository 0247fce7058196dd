#include "tests/e2e/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"

namespace tokenrouter::test {

namespace {

using json = nlohmann::json;

constexpr double score_tolerance = 1e-3;

json read_json(const std::string& path) {
  return json::parse(read_file(path));
}

std::string who(const json& oracle, const json& item, std::size_t i) {
  const std::string name =
      item.contains("by") ? item["by"][i].get<std::string>() : oracle["name"].get<std::string>();
  return "abacus-" + name;
}

/// Where ours and the oracle's part, or -1.
long first_difference(const json& oracle, const json& item, const json& ours) {
  const auto& want = item["output_ids"];
  const auto& got = ours["token_ids"];
  const std::size_t common = std::min(want.size(), got.size());
  for (std::size_t i = 0; i < common; ++i)
    if (want[i] != got[i] || ours["models"][i] != who(oracle, item, i))
      return static_cast<long>(i);
  return want.size() == got.size() ? -1 : static_cast<long>(common);
}

void compare_scores(const json& item, const json& ours, std::vector<std::string>& out) {
  if (!item.contains("score"))
    return;
  for (std::size_t i = 0; i < item["score"].size(); ++i) {
    const double want = item["score"][i].get<double>();
    const double got = ours["scores"][i].is_null() ? NAN : ours["scores"][i].get<double>();
    if (!(std::abs(want - got) <= score_tolerance)) {
      out.push_back("prompt " + ours["id"].get<std::string>() + ": score " + std::to_string(got) +
                    " at token " + std::to_string(i) + ", the oracle has " + std::to_string(want));
      return;
    }
  }
}

void compare_work(const json& ours, std::vector<std::string>& out) {
  for (const auto& [model, usage] : ours["usage"]["models"].items())
    if (usage["computed_tokens"].get<int>() + usage["cached_tokens"].get<int>() !=
            usage["lacked_tokens"].get<int>() ||
        usage["recomputed_tokens"] != 0)
      out.push_back("prompt " + ours["id"].get<std::string>() + ": " + model + " computed " +
                    usage["computed_tokens"].dump() + " tokens, took " +
                    usage["cached_tokens"].dump() + " from the cache and lacked " +
                    usage["lacked_tokens"].dump());
}

void compare_item(const json& oracle, const json& item, const json& ours, int& near_ties,
                  std::vector<std::string>& out) {
  const long at = first_difference(oracle, item, ours);
  const auto& ties = item["near_ties"];
  if (at >= 0 && std::find(ties.begin(), ties.end(), at) != ties.end()) {
    ++near_ties;
    return;
  }
  if (at >= 0)
    out.push_back("prompt " + ours["id"].get<std::string>() + " differs from token " +
                  std::to_string(at) + " on");
  else
    compare_scores(item, ours, out);
  compare_work(ours, out);
}

} // namespace

void write_oracle_prompts(const std::string& path) {
  const json file = read_json("tests/data/oracle/prompts.json");
  std::ofstream out(path);
  for (const auto& prompt : file["prompts"])
    out << json{{"id", std::to_string(prompt["index"].get<int>())},
                {"messages", prompt["messages"]},
                {"enable_thinking", prompt["enable_thinking"]},
                {"max_new_tokens", 200}}
               .dump()
        << '\n';
}

std::vector<std::string> differences(const oracle_policy& policy, const oracle_layout& layout,
                                     int& near_ties) {
  const scratch_folder scratch;
  write_oracle_prompts(scratch.file("in.jsonl"));
  const std::string command = (layout.ranks > 0 ? mpirun(layout.ranks) : "") + program() +
                              " generate --config configs/" + policy.config + ".yaml --prompts " +
                              scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl") +
                              " --concurrency " + std::to_string(layout.concurrency) +
                              " --set compute_dtype=float32 " + layout.overrides;
  const auto run = run_command(command);
  if (run.exit_code != 0)
    return {command + "\nended with " + std::to_string(run.exit_code) + ": " + run.output};
  std::map<std::string, json> ours;
  std::istringstream lines(read_file(scratch.file("out.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    json one = json::parse(line);
    ours.emplace(one["id"].get<std::string>(), std::move(one));
  }
  std::vector<std::string> out;
  const json oracle = read_json("tests/data/oracle/" + policy.name + ".json");
  for (const auto& item : oracle["items"]) {
    const auto found = ours.find(std::to_string(item["index"].get<int>()));
    if (found == ours.end())
      out.push_back("prompt " + item["index"].dump() + " has no answer");
    else
      compare_item(oracle, item, found->second, near_ties, out);
  }
  if (oracle["items"].empty() || ours.size() != oracle["items"].size())
    out.push_back("the run has " + std::to_string(ours.size()) + " answers");
  return out;
}

} // namespace tokenrouter::test
