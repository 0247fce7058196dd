#include <boost/test/unit_test.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>

#include "runtime/ingress/embedded.hpp"
#include "tests/support/package.hpp"

using namespace tokenrouter::test;
namespace tr = tokenrouter::embedded;
namespace fs = std::filesystem;

namespace {

const std::string config = "configs/r2r/abacus-xs_abacus-m.yaml";
const std::vector<std::string> questions = {"What is 4822 + 22 - 2763?", "What is 3 * 14?",
                                            "Sort: 5, 3, 9."};

tr::request ask(const std::string& question, std::uint32_t max_new_tokens = 120) {
  tr::request x;
  x.messages = {{"user", question}};
  x.max_new_tokens = max_new_tokens;
  return x;
}

tr::request endless() {
  tr::request x;
  x.text = "1 2 3";
  x.max_new_tokens = 1800;
  x.ignore_eos = true;
  return x;
}

/// Token ids that `generate` makes of the questions.
std::vector<std::vector<std::int32_t>> generated() {
  const scratch_folder scratch;
  std::string lines;
  for (const auto& question : questions)
    lines +=
        nlohmann::json{{"messages", {{{"role", "user"}, {"content", question}}}}}.dump() + "\n";
  write_file(scratch.file("in.jsonl"), lines);
  must_run(program() + " generate --config " + config + " --max-new-tokens 120 --prompts " +
           scratch.file("in.jsonl") + " --output " + scratch.file("out.jsonl"));
  std::vector<std::vector<std::int32_t>> all;
  std::istringstream out(read_file(scratch.file("out.jsonl")));
  for (std::string line; std::getline(out, line);)
    all.push_back(nlohmann::json::parse(line)["token_ids"]);
  return all;
}

std::vector<std::int32_t> ids_of(const std::vector<tr::token>& tokens) {
  std::vector<std::int32_t> ids;
  for (const auto& x : tokens)
    ids.push_back(x.id);
  return ids;
}

} // namespace

BOOST_AUTO_TEST_CASE(pieces_batches_and_functions_all_give_what_generate_gives) {
  const auto expected = generated();
  auto job = tr::job::open({config, {}, 2}); // fewer at a time than the batch has
  BOOST_REQUIRE_MESSAGE(job.has_value(), (job ? "" : job.error().message));
  BOOST_TEST(job->model_names() == (std::vector<std::string>{"abacus-xs", "abacus-m"}),
             boost::test_tools::per_element());

  std::vector<tr::request> all;
  for (const auto& question : questions)
    all.push_back(ask(question));
  const auto answers = job->generate(all);
  for (std::size_t i = 0; i < all.size(); ++i)
    BOOST_TEST(ids_of(answers[i].tokens) == expected[i], boost::test_tools::per_element());

  auto generation = job->submit(all[0]);
  BOOST_REQUIRE(generation);
  std::string text;
  std::vector<std::int32_t> ids;
  while (const auto piece = generation->next()) {
    text += piece->text;
    for (const auto& token : piece->tokens)
      ids.push_back(token.id);
  }
  BOOST_TEST(ids == expected[0], boost::test_tools::per_element());
  BOOST_TEST(generation->wait().text == text);
  BOOST_TEST(answers[0].text == text);
  BOOST_TEST(answers[0].handoffs > 0u);

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::int32_t> told;
  bool over = false;
  const auto submitted = job->submit(
      all[1],
      [&](const tr::piece& x) {
        for (const auto& token : x.tokens)
          told.push_back(token.id);
      },
      [&](const tr::answer&) {
        const std::lock_guard guard(mutex);
        over = true;
        changed.notify_all();
      });
  BOOST_REQUIRE(submitted);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return over; });
  BOOST_TEST(told == expected[1], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_cancelled_or_dropped_ends_and_makes_room) {
  auto job = tr::job::open({config, {}, 1});
  BOOST_REQUIRE(job);
  auto first = job->submit(endless());
  BOOST_REQUIRE(first);
  BOOST_TEST(first->next().has_value());
  BOOST_TEST((job->submit(endless()).error().code == tr::error_code::capacity));
  first->cancel();
  const auto answer = first->wait();
  BOOST_TEST((answer.finish == tr::outcome::cancelled));
  BOOST_TEST(answer.tokens.size() > 0u);
  BOOST_TEST(answer.tokens.size() < 1800u);
  {
    const auto dropped = job->submit(endless());
    BOOST_TEST(dropped.has_value());
  }
  for (int i = 0; i < 500; ++i) {
    if (job->generate(ask(questions[1], 3)).finish == tr::outcome::length)
      break;
    BOOST_REQUIRE(i < 499);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_ends_leaves_no_request_waiting) {
  auto job = tr::job::open({config, {}, 4});
  BOOST_REQUIRE(job);
  auto left = job->submit(endless());
  BOOST_REQUIRE(left);
  { const auto gone = std::move(*job); }
  BOOST_TEST((left->wait().finish == tr::outcome::failed));
  left->cancel();
}

BOOST_AUTO_TEST_CASE(what_keeps_a_job_from_starting_is_said) {
  const auto none = tr::job::open({"nothing.yaml", {}, 1});
  BOOST_REQUIRE(!none);
  BOOST_TEST((none.error().message.find("nothing.yaml") != std::string::npos),
             none.error().message);
  const auto wrong = tr::job::open({config, {"max_batch_row=3"}, 1});
  BOOST_REQUIRE(!wrong);
  BOOST_TEST((wrong.error().message.find("max_batch_rows") != std::string::npos),
             wrong.error().message);
}

BOOST_AUTO_TEST_CASE(requests_that_make_no_sense_are_refused) {
  auto job = tr::job::open({config, {}, 1});
  BOOST_REQUIRE(job);
  tr::request both = ask("a");
  both.text = "b";
  BOOST_TEST((job->submit(both).error().code == tr::error_code::invalid_argument));
  tr::request empty_stop = ask("a");
  empty_stop.stop = {""};
  BOOST_TEST((job->submit(empty_stop).error().code == tr::error_code::invalid_argument));
  tr::request no_such_token;
  no_such_token.token_ids = {99'999};
  const auto answer = job->generate(no_such_token);
  BOOST_TEST((answer.finish == tr::outcome::failed));
  BOOST_TEST((answer.failure.message.find("99999") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(a_second_job_waits_for_the_first_to_end) {
  {
    const auto first = tr::job::open({config, {}, 1});
    BOOST_REQUIRE(first);
    const auto second = tr::job::open({config, {}, 1});
    BOOST_REQUIRE(!second);
    BOOST_TEST((second.error().code == tr::error_code::unavailable));
  }
  BOOST_TEST(tr::job::open({config, {}, 1}).has_value());
}

BOOST_AUTO_TEST_CASE(a_job_counts_what_its_models_did) {
  auto job = tr::job::open({config, {}, 4});
  BOOST_REQUIRE(job);
  const auto answer = job->generate(ask(questions[0]));
  const auto counts = job->statistics();
  BOOST_TEST(counts.finished == 1u);
  BOOST_TEST(counts.handoffs == answer.handoffs);
  BOOST_REQUIRE(counts.models.size() == 2u);
  std::vector<std::uint64_t> written(2);
  std::string bytes;
  for (const auto& token : answer.tokens) {
    ++written.at(token.model);
    bytes += job->token_bytes(token.id);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_TEST(counts.models[i].generated_tokens == written[i]);
    BOOST_TEST(counts.models[i].pool_tokens > 0u);
  }
  BOOST_TEST(bytes == answer.text);
}
