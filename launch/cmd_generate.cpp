#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "launch/commands.hpp"
#include "launch/generate_client.hpp"
#include "launch/job.hpp"
#include "launch/painter.hpp"
#include "launch/progress.hpp"
#include "launch/prompts.hpp"
#include "launch/results.hpp"
#include "launch/summary.hpp"
#include "launch/terminal.hpp"
#include "runtime/core/clock.hpp"

namespace tokenrouter {

namespace {

struct generate_options {
  job_options job;
  std::string prompts_file;
  std::string output_file;
  std::string prompt;
  bool raw = false;
  std::uint32_t max_new_tokens = 256;
  float temperature = 0;
  std::uint64_t seed = 0;
  std::uint32_t concurrency = 16;
  bool colours = false;
};

/// Shows and writes what comes back; results go out in the order of the prompts.
class generate_report final : public generate_observer {
 public:
  generate_report(const generate_options& options, job_view& view,
                  const std::vector<prompt_entry>& entries)
      : names_(view.model_names), words_(view.plan.words), summary_(view.model_names),
        started_us_(UINT64_MAX), terminal_(options.colours || shows_on_terminal(STDOUT_FILENO)),
        colours_(terminal_), live_(terminal_ && entries.size() == 1 && options.output_file.empty()),
        progress_(entries.size()), live_painter_(*words_, colours_) {
    for (const auto& entry : entries) {
      ids_.push_back(entry.id);
      prompt_tokens_.push_back(static_cast<std::uint32_t>(entry.order.prompt.size()));
    }
    if (!options.output_file.empty())
      file_.open(options.output_file);
    to_file_ = !options.output_file.empty();
  }

  bool can_write() const { return !to_file_ || file_.good(); }

  void on_delta(std::size_t, const token_delta& x) override {
    if (!live_)
      return;
    for (const auto& one : x.commits)
      std::fputs(live_painter_.push(one).c_str(), stdout);
    std::fflush(stdout);
  }

  void on_done(std::size_t entry, const request_done& x) override {
    summary_.add(x);
    started_us_ = std::min(started_us_, monotonic_us() - x.total_us);
    waiting_.emplace(entry, x);
    while (!waiting_.empty() && waiting_.begin()->first == next_) {
      show(next_, waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++next_;
    }
    progress_.advance(x.output.size());
    if (summary_.requests() == ids_.size())
      finish();
  }

 private:
  void show(std::size_t entry, const request_done& x) {
    if (x.finish == finish_reason::failed)
      std::fprintf(stderr, "tokenrouter: %s\n", x.failure.message.c_str());
    if (to_file_) {
      file_ << result_line(ids_[entry], x, names_, prompt_tokens_[entry]) << '\n';
    } else if (live_) {
      std::printf("%s\n\n", live_painter_.finish().c_str());
    } else if (terminal_) {
      painter brush(*words_, colours_);
      std::string text;
      for (const auto& one : x.output)
        text += brush.push(one);
      std::printf("[%s]\n%s%s\n\n", ids_[entry].c_str(), text.c_str(), brush.finish().c_str());
    } else {
      std::printf("%s\n", result_line(ids_[entry], x, names_, prompt_tokens_[entry]).c_str());
    }
  }

  void finish() {
    progress_.finish();
    if (to_file_)
      file_.flush();
    if (to_file_ && !file_)
      std::fprintf(stderr, "tokenrouter: the output file could not be written completely\n");
    if (to_file_ || terminal_)
      std::fputs(summary_.table(monotonic_us() - started_us_, colours_).c_str(), stdout);
    std::fflush(stdout);
  }

  std::vector<std::string> names_;
  std::vector<std::string> ids_;
  std::vector<std::uint32_t> prompt_tokens_;
  std::shared_ptr<const tokenizer> words_;
  run_summary summary_;
  std::uint64_t started_us_; ///< when the first request did: models had loaded
  bool terminal_;
  bool colours_;
  bool live_;
  bool to_file_ = false;
  progress_bar progress_;
  painter live_painter_;
  std::ofstream file_;
  std::map<std::size_t, request_done> waiting_;
  std::size_t next_ = 0;
};

prompt_tools tools_of(const job_view& view) {
  const auto words = view.plan.words;
  const auto folder = view.config.models[view.plan.entry.value].path;
  const auto form = std::make_shared<result<chat_template>>(chat_template::load(folder));
  prompt_tools tools;
  tools.encode = [words](std::string_view text) { return words->encode(text); };
  tools.render = [form](const std::vector<chat_message>& messages,
                        bool enable_thinking) -> result<std::string> {
    if (!*form)
      return tl::unexpected(form->error());
    return (*form)->render(messages, {true, enable_thinking});
  };
  return tools;
}

result<std::vector<prompt_entry>> entries_of(const generate_options& options,
                                             const prompt_tools& tools) {
  prompt_defaults defaults;
  defaults.max_new_tokens = options.max_new_tokens;
  defaults.sampling.temperature = options.temperature;
  defaults.sampling.seed = options.seed;
  if (!options.prompts_file.empty())
    return read_prompts(options.prompts_file, defaults, tools);
  prompt_entry entry;
  entry.id = "prompt";
  auto text = options.raw ? result<std::string>(options.prompt)
                          : tools.render({{"user", options.prompt}}, true);
  if (!text)
    return tl::unexpected(text.error());
  auto tokens = tools.encode(*text);
  if (!tokens)
    return tl::unexpected(tokens.error());
  entry.order.prompt = std::move(*tokens);
  entry.order.spec.max_new_tokens = defaults.max_new_tokens;
  entry.order.spec.sampling = defaults.sampling;
  return std::vector<prompt_entry>{std::move(entry)};
}

int run_generate(const generate_options& options) {
  std::unique_ptr<generate_report> report;
  job_client client;
  client.start = [&](job_view& view) -> result<void> {
    auto entries = entries_of(options, tools_of(view));
    if (!entries)
      return tl::unexpected(entries.error());
    report = std::make_unique<generate_report>(options, view, *entries);
    if (!report->can_write())
      return fail(errc::io, "can't write the output file " + options.output_file);
    auto run = std::make_shared<generate_run>();
    run->entries = std::move(*entries);
    run->concurrency = options.concurrency;
    run->gateway = view.actors.gateway();
    run->supervisor = view.actors.supervisor();
    run->observer = report.get();
    view.system.spawn(generate_client, std::move(run));
    return {};
  };
  return run_job(options.job, client);
}

} // namespace

void add_generate(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<generate_options>();
  auto* command = program.add_subcommand(
      "generate", "Generate text for prompts; every rank of the job runs this command alike");
  const std::string what = "Job", input = "Input", output = "Output", sampling = "Sampling";
  command->add_option("--config", options->job.config_file, "The job's YAML file")
      ->required()
      ->group(what);
  command->add_option("--set", options->job.overrides, "Override a key of the config: key=value")
      ->group(what);
  command->add_option("--concurrency", options->concurrency, "Requests under way at a time")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str()
      ->group(what);
  auto* file = command
                   ->add_option("--prompts", options->prompts_file,
                                "JSONL file, a prompt a line: messages, prompt or "
                                "prompt_token_ids; optionally id, max_new_tokens, temperature, "
                                "top_k, top_p, min_p, seed, request_score, ignore_eos, "
                                "enable_thinking")
                   ->group(input);
  auto* text = command->add_option("--prompt", options->prompt, "One user message")->group(input);
  command->add_flag("--raw", options->raw, "Take --prompt as it is, without the chat template")
      ->needs(text)
      ->group(input);
  file->excludes(text);
  command
      ->add_option("--output", options->output_file,
                   "JSONL file for the results; without it they go to the standard output")
      ->group(output);
  command->add_flag("--color", options->colours, "Colour as on a terminal")->group(output);
  command
      ->add_option("--max-new-tokens", options->max_new_tokens,
                   "Most tokens to generate where a prompt does not say")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(sampling);
  command->add_option("--temperature", options->temperature, "0: greedy")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->group(sampling);
  command
      ->add_option(
          "--seed", options->seed,
          "Of the random draws; line i of --prompts draws with seed + i unless it says its own")
      ->capture_default_str()
      ->group(sampling);
  command->callback([options, file, text, &exit_code] {
    if (file->empty() && text->empty())
      throw CLI::RequiredError("--prompts or --prompt");
    exit_code = run_generate(*options);
  });
}

} // namespace tokenrouter
