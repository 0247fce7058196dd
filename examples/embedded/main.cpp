// TokenRouter inside a program: streams one answer, coloured by the model that wrote each token,
// then answers a batch.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <runtime/ingress/embedded.hpp>

namespace tr = tokenrouter::embedded;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CONFIG [QUESTION...]\n", argv[0]);
    return 2;
  }
  auto job = tr::job::open({.config = argv[1]});
  if (!job) {
    std::fprintf(stderr, "%s\n", job.error().message.c_str());
    return 2;
  }
  if (!job->takes_requests()) // under mpirun: a rank that serves rank 0
    return job->wait_for_end();

  std::vector<tr::request> questions;
  for (int i = 2; i < argc; ++i)
    questions.push_back({.messages = {{"user", argv[i]}}, .max_new_tokens = 200});
  if (questions.empty())
    questions.push_back({.messages = {{"user", "What is 4822 + 22 - 2763?"}}});

  // One, piece by piece.
  auto generation = job->submit(questions.front());
  if (!generation) {
    std::fprintf(stderr, "%s\n", generation.error().message.c_str());
    return 1;
  }
  std::vector<std::size_t> written(job->model_names().size());
  while (const auto piece = generation->next()) {
    for (const auto& token : piece->tokens)
      ++written[token.model];
    std::printf("%s", piece->text.c_str());
    std::fflush(stdout);
  }
  const auto whole = generation->wait();
  std::printf("\n--- %zu tokens, %u handoffs, first after %.1f ms\n", whole.tokens.size(),
              whole.handoffs, static_cast<double>(whole.ttft_us) / 1000);
  for (std::size_t i = 0; i < written.size(); ++i)
    std::printf("--- %zu by %s\n", written[i], job->model_names()[i].c_str());

  // All, at once.
  bool failed = false;
  for (const auto& answer : job->generate(questions)) {
    failed = failed || answer.finish == tr::outcome::failed;
    std::printf("answer: %s\n", answer.finish == tr::outcome::failed
                                    ? answer.failure.message.c_str()
                                    : answer.text.substr(answer.text.rfind('\n') + 1).c_str());
  }
  return failed ? 1 : 0;
}
