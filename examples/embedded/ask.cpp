// Asks a job of several models, in this very process, and shows who wrote what. Usage:
// ask CONFIG [QUESTION ...]
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tokenrouter/embedded.hpp>

namespace tr = tokenrouter::embedded;

namespace {

tr::request chat(const std::string& question) {
  tr::request x;
  x.messages = {{"user", question}};
  x.max_new_tokens = 400;
  return x;
}

/// Writes tokens as they come: coloured by their model on a terminal (mpirun's output is one as
/// well) without NO_COLOR, else with those of every model but the first in brackets, with its
/// index.
class model_marks {
 public:
  void write(const tr::token& token, const std::string& bytes) {
    if (bytes.empty())
      return;
    if (token.model != current_)
      change_to(token.model);
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fflush(stdout);
  }

  void end() {
    change_to(0);
    std::puts("");
  }

  void legend(const std::vector<std::string>& names) {
    std::fputs("models:", stdout);
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::fputs(i == 0 ? " " : ", ", stdout);
      write({-1, static_cast<std::uint16_t>(i), 0, 0}, names[i]);
    }
    end();
  }

 private:
  void change_to(std::uint16_t model) {
    constexpr std::array colours = {"\033[0m", "\033[1;33m", "\033[1;35m", "\033[1;36m"};
    if (terminal_)
      std::fputs(model < colours.size() ? colours[model] : "\033[1;32m", stdout);
    else if (current_ != 0)
      std::fputs("]", stdout);
    if (!terminal_ && model != 0)
      std::printf("[%u:", static_cast<unsigned>(model));
    current_ = model;
  }

  bool terminal_ = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  std::uint16_t current_ = 0;
};

const char* how(const tr::answer& x) {
  constexpr std::array texts = {"stop", "length", "cancelled", "failed"};
  return texts[static_cast<std::size_t>(x.finish)];
}

/// All are under way at once; shown one after another.
bool stream(tr::job& job, const std::vector<std::string>& questions) {
  std::vector<tr::generation> under_way;
  for (const auto& question : questions) {
    auto one = job.submit(chat(question));
    if (!one) {
      std::fprintf(stderr, "ask: %s\n", one.error().message.c_str());
      return false;
    }
    under_way.push_back(std::move(*one));
  }
  model_marks marks;
  marks.legend(job.model_names());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    std::printf("\n> %s\n", questions[i].c_str());
    while (const auto piece = under_way[i].next())
      for (const auto& token : piece->tokens)
        marks.write(token, job.token_bytes(token.id));
    marks.end();
    const auto answer = under_way[i].wait();
    std::printf("-- %s, %zu tokens, %u handoffs, first token after %.1f ms\n", how(answer),
                answer.tokens.size(), answer.handoffs, static_cast<double>(answer.ttft_us) / 1e3);
    if (answer.finish == tr::outcome::failed) {
      std::fprintf(stderr, "ask: %s\n", answer.failure.message.c_str());
      return false;
    }
  }
  return true;
}

/// Starts what would go on for long, and stops it after its first words.
bool cancel_one(tr::job& job) {
  tr::request x;
  x.text = "1 2 3";
  x.max_new_tokens = 1500;
  x.ignore_eos = true;
  auto one = job.submit(x);
  if (!one)
    return false;
  for (int pieces = 0; pieces < 5 && one->next(); ++pieces)
    ;
  one->cancel();
  const auto answer = one->wait();
  std::printf("\ncancelled one: %s%s\n", how(answer),
              answer.tokens.size() < x.max_new_tokens ? " before its end" : "");
  return answer.finish == tr::outcome::cancelled;
}

/// The same question, drawn eight times.
bool batch(tr::job& job, const std::string& question) {
  std::vector<tr::request> all(8, chat(question));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].temperature = 0.7f;
    all[i].seed = i;
  }
  std::size_t tokens = 0, stopped = 0;
  for (const auto& answer : job.generate(all)) {
    tokens += answer.tokens.size();
    stopped += answer.finish == tr::outcome::stop ? 1 : 0;
  }
  std::printf("batch: %zu of %zu answers complete, %zu tokens\n", stopped, all.size(), tokens);
  return stopped > 0;
}

void print_statistics(const tr::job& job) {
  const auto x = job.statistics();
  std::printf(
      "\nrequests: %llu finished, %llu cancelled, %llu failed; %llu handoffs\n",
      static_cast<unsigned long long>(x.finished), static_cast<unsigned long long>(x.cancelled),
      static_cast<unsigned long long>(x.failed), static_cast<unsigned long long>(x.handoffs));
  std::uint64_t all = 0;
  for (const auto& model : x.models)
    all += model.generated_tokens;
  for (std::size_t i = 0; i < x.models.size(); ++i)
    std::printf("%-12s wrote %5.1f %% of the tokens (%llu), ran %llu positions, %llu from cache\n",
                job.model_names()[i].c_str(),
                100.0 * static_cast<double>(x.models[i].generated_tokens) /
                    static_cast<double>(std::max<std::uint64_t>(all, 1)),
                static_cast<unsigned long long>(x.models[i].generated_tokens),
                static_cast<unsigned long long>(x.models[i].computed_tokens),
                static_cast<unsigned long long>(x.models[i].cached_tokens));
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ask CONFIG [QUESTION ...]\n");
    return 2;
  }
  auto job = tr::job::open({argv[1], {}, 64});
  if (!job) {
    std::fprintf(stderr, "ask: %s\n", job.error().message.c_str());
    return 2;
  }
  if (!job->takes_requests()) // a rank of mpirun other than the first: runs its models
    return job->wait_for_end();
  std::vector<std::string> questions(argv + 2, argv + argc);
  if (questions.empty())
    questions = {
        "What is 4822 + 22 - 2763?",
        "How often is the letter \"r\" used in the word \"strawberry\"?",
        "Yuki collected 96 shells and Carmen collected 33. Who collected more, and how many more?"};
  const bool ok = stream(*job, questions) && cancel_one(*job) && batch(*job, questions.front());
  print_statistics(*job);
  return ok ? 0 : 1;
}
