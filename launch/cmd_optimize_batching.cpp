#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "launch/batching_report.hpp"
#include "launch/commands.hpp"
#include "runtime/planning/threshold_lists.hpp"

namespace tokenrouter {

namespace {

struct optimize_batching_options {
  routing_model model;
  std::string preset;
  preset_parameters parameters;
  std::vector<std::string> routing_rows, commit_rows;
  std::string live = "8";
  std::vector<std::string> names;
  std::uint32_t rows_max = 20;
  bool as_json = false;
};

struct live_range {
  std::uint32_t requests = 0; ///< its last
  bool from_one = false;      ///< 1 to that, not that alone
};

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc{} && end == text.data() + text.size();
}

result<live_range> read_live(std::string_view text) {
  live_range live;
  live.from_one = text.starts_with("1..");
  if (!read_number(live.from_one ? text.substr(3) : text, live.requests) || live.requests < 1 ||
      live.requests > chain_live_max)
    return fail(errc::invalid_argument,
                fmt::format("--live {}: give a number from 1 to {}, or a range from 1, like 1..16",
                            text, chain_live_max));
  return live;
}

/// "0.65,0.35" for each row.
result<matrix_rows> read_matrix(const std::vector<std::string>& texts, std::string_view option) {
  matrix_rows rows;
  for (const auto& text : texts) {
    auto& row = rows.emplace_back();
    for (std::size_t at = 0; at <= text.size();) {
      const auto comma = std::min(text.find(',', at), text.size());
      if (!read_number(std::string_view(text).substr(at, comma - at), row.emplace_back()))
        return fail(errc::invalid_argument,
                    fmt::format("{} {}: a row is numbers with commas between, like 0.65,0.35",
                                option, text));
      at = comma + 1;
    }
  }
  return rows;
}

result<void> fill_model(optimize_batching_options& options) {
  if (!options.preset.empty())
    return apply_preset(options.model, options.preset, options.parameters);
  if (options.routing_rows.empty())
    return fail(errc::invalid_argument,
                "nothing says where requests go: give --preset, or --routing and "
                "--committed-tokens with a row for each model");
  auto routing = read_matrix(options.routing_rows, "--routing");
  if (!routing)
    return tl::unexpected(routing.error());
  auto committed_tokens = read_matrix(options.commit_rows, "--committed-tokens");
  if (!committed_tokens)
    return tl::unexpected(committed_tokens.error());
  options.model.routing = std::move(*routing);
  options.model.committed_tokens = std::move(*committed_tokens);
  return {};
}

result<void> name_models(optimize_batching_options& options) {
  const std::size_t models = options.model.models();
  if (options.names.empty())
    for (std::size_t i = 0; i < models; ++i)
      options.names.push_back("model-" + std::to_string(i));
  if (options.names.size() != models)
    return fail(errc::invalid_argument, fmt::format("{} names for {} latencies; give one a model",
                                                    options.names.size(), models));
  return {};
}

result<std::string> report(optimize_batching_options& options) {
  const auto live = read_live(options.live);
  if (!live)
    return tl::unexpected(live.error());
  if (auto ok = fill_model(options); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = name_models(options); !ok)
    return tl::unexpected(ok.error());
  if (live->from_one) {
    const auto lists = plan_threshold_lists(options.model, live->requests);
    if (!lists)
      return tl::unexpected(lists.error());
    return options.as_json ? lists_json(*lists, options.names) : lists_text(*lists, options.names);
  }
  const auto table = optimise_batching(options.model, live->requests);
  if (!table)
    return tl::unexpected(table.error());
  return options.as_json ? table_json(*table, live->requests, options.names)
                         : table_text(*table, options.names, options.rows_max);
}

int run_optimize_batching(optimize_batching_options& options) {
  const auto text = report(options);
  if (!text) {
    std::fprintf(stderr, "tokenrouter: %s\n", text.error().message.c_str());
    return 2;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

void add_routing(CLI::App& command, optimize_batching_options& options) {
  auto* preset =
      command
          .add_option(
              "--preset", options.preset,
              "Where requests go, by method: r2r, citer and co-llm (2 models: the large one "
              "makes single tokens), rstitch (2 models: the large one keeps on), ensemble "
              "(any number: each token's model is drawn)")
          ->check(CLI::IsMember({"r2r", "citer", "co-llm", "rstitch", "ensemble"}));
  command
      .add_option("--share", options.parameters.share,
                  "r2r, citer, co-llm, rstitch: of the small model's steps, those that go to the "
                  "large one")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->needs(preset);
  command
      .add_option("--return-share", options.parameters.return_share,
                  "rstitch: of the large model's steps, those that go back")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->needs(preset);
  command
      .add_option("--weights", options.parameters.weights,
                  "ensemble: chance of each model; they add up to 1")
      ->needs(preset);
  auto* routing = command
                      .add_option("--routing", options.routing_rows,
                                  "Instead of a preset: for each model a row of chances that a "
                                  "request goes on to each model, like 0.65,0.35 1,0")
                      ->excludes(preset);
  auto* committed =
      command
          .add_option("--committed-tokens", options.commit_rows,
                      "With --routing: rows of the tokens that the step commits if it "
                      "goes that way, like 1,0 1,0")
          ->needs(routing);
  routing->needs(committed);
}

} // namespace

void add_optimize_batching(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<optimize_batching_options>();
  auto* command = program.add_subcommand(
      "optimize-batching",
      "Compute which delayed-batching thresholds give the most tokens a second");
  command->footer("Exact for steps that take as long whatever their batch: a model starts when as "
                  "many requests wait as its threshold says, and takes them all.");
  command
      ->add_option("--latency-ms", options->model.latencies_ms,
                   "Time of one step of each model, in the order of the config")
      ->required();
  add_routing(*command, *options);
  command->add_option("--entry", options->model.entry, "Model where requests start, counted from 0")
      ->capture_default_str();
  command
      ->add_option("--live", options->live,
                   "Requests under way: a number, for every choice of thresholds; or a range like "
                   "1..16, for lists that follow the number of requests")
      ->capture_default_str();
  command
      ->add_option("--grid-ms", options->model.grid_ms,
                   "Times are rounded to multiples of it; coarser is faster")
      ->capture_default_str();
  command->add_option("--names", options->names, "Names of the models, for the lines to paste");
  command
      ->add_option("--rows", options->rows_max,
                   "Rows shown of a single number's table, best first; 0: all")
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print JSON, with every row");
  command->callback([options, &exit_code] { exit_code = run_optimize_batching(*options); });
}

} // namespace tokenrouter
