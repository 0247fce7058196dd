#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>

#include <caf/send.hpp>

#include "tests/actors/rank_bench.hpp"
#include "tests/support/wrapped_backend.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

/// Counts what a tracer writes; read after the tracer's end.
struct trace_counts {
  std::mutex lock;
  std::size_t tokens = 0;
  std::size_t requests = 0;
  std::size_t unflushed_rows = 0;
  bool closed = false;
};

class counting_sink final : public trace_sink {
 public:
  explicit counting_sink(trace_counts& counts) : counts_(counts) {}
  ~counting_sink() override { counts_.closed = true; }

  void append(const trace_batch& batch) override {
    const std::scoped_lock hold(counts_.lock);
    counts_.tokens += batch.tokens.size();
    counts_.requests += batch.requests.size();
    ++counts_.unflushed_rows;
  }

  void flush() override {
    const std::scoped_lock hold(counts_.lock);
    counts_.unflushed_rows = 0;
  }

 private:
  trace_counts& counts_;
};

} // namespace

namespace {

/// A model whose other shards are gone from some step on.
class lonely_backend final : public wrapped_backend {
 public:
  lonely_backend(std::unique_ptr<backend> inner, int steps)
      : wrapped_backend(std::move(inner)), steps_(steps) {}
  void step(const step_input& in, step_output& out) override {
    inner().step(in, out);
    out.failure = steps_-- > 0 ? "" : "another shard of the model is gone";
  }

 private:
  int steps_;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_step_that_fails_ends_the_job_by_the_models_name) {
  for (const bool threads : {false, true}) {
    rank_options options;
    options.eos_odds = 0;
    options.virtual_time = !threads;
    options.wrap = [](std::unique_ptr<backend> inner) {
      return std::make_unique<lonely_backend>(std::move(inner), 3);
    };
    rank_bench rank(options);
    rank.submit(1, {1, 2, 3}, 20);
    if (threads)
      rank.loop().run_until([&] { return rank.actors().end().has_value(); });
    else
      rank.run_until(10'000);
    const auto& end = rank.actors().end();
    BOOST_REQUIRE(end.has_value());
    BOOST_TEST(end->reason == "model 'm0' can't go on: another shard of the model is gone");
    BOOST_TEST(rank.log().streamed.at(1).size() == 3u); // what a failed step said is told to nobody
  }
}

BOOST_AUTO_TEST_CASE(a_rank_shuts_down_at_any_moment_with_mail_in_every_box) {
  for (const std::uint64_t stop_us : {0, 1, 11, 25, 60, 300, 2000}) {
    rank_bench rank({.roles = {"r2r_slm", "r2r_llm"}, .pool_blocks = 8, .rows_max = 3});
    for (std::uint64_t tag = 0; tag < 40; ++tag)
      rank.submit(tag, {1, 2, static_cast<token_id>(tag)}, 20);
    if (stop_us > 0)
      rank.run_until(stop_us);
    for (std::uint64_t tag = 0; tag < 20; ++tag)
      rank.cancel(tag);
    for (std::uint64_t tag = 100; tag < 120; ++tag)
      rank.submit(tag, {3, 4}, 20);
    BOOST_TEST(rank.running_actors() > 0u);
    rank.shut_down();
    BOOST_TEST(rank.running_actors() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(actors_with_threads_of_their_own_end_with_steps_under_way) {
  for (int round = 0; round < 20; ++round) {
    trace_counts counts;
    {
      rank_bench rank({.roles = {"r2r_slm", "r2r_llm"},
                       .pool_blocks = 64,
                       .virtual_time = false,
                       .open_trace = [&] { return std::make_unique<counting_sink>(counts); }});
      for (std::uint64_t tag = 0; tag < 30; ++tag)
        rank.submit(tag, {1, 2, static_cast<token_id>(tag)}, 50);
      const std::size_t enough = static_cast<std::size_t>(round);
      rank.loop().run_until([&] { return rank.log().done.size() >= enough; });
      for (std::uint64_t tag = 100; tag < 110; ++tag)
        rank.submit(tag, {3, 4}, 20);
      rank.shut_down();
      BOOST_TEST(rank.running_actors() == 0u);
    }
    BOOST_TEST(counts.closed);
  }
}

BOOST_AUTO_TEST_CASE(a_tracer_has_written_all_it_was_sent_before_it_ends) {
  trace_counts counts;
  std::size_t tokens = 0;
  {
    rank_bench rank({.roles = {"r2r_slm", "r2r_llm"},
                     .pool_blocks = 64,
                     .virtual_time = false,
                     .open_trace = [&] { return std::make_unique<counting_sink>(counts); }});
    for (std::uint64_t tag = 0; tag < 50; ++tag)
      rank.submit(tag, {1, 2, static_cast<token_id>(tag)}, 30);
    rank.loop().run_until([&] { return rank.log().done.size() == 50; });
    rank.shut_down();
    for (const auto& [tag, done] : rank.log().done)
      tokens += done.output.size();
  }
  BOOST_TEST(counts.requests == 50u);
  BOOST_TEST(counts.tokens == tokens);
  BOOST_TEST(counts.unflushed_rows == 0u);
  BOOST_TEST(counts.closed);
}

BOOST_AUTO_TEST_CASE(a_sink_that_cannot_be_opened_does_not_stop_the_rank) {
  rank_bench rank({.virtual_time = false, .open_trace = [] { return nullptr; }});
  for (std::uint64_t tag = 1; tag <= 200 && !rank.actors().end(); ++tag) {
    rank.submit(tag, {1, 2, 3}, 5);
    rank.loop().run_until([&] { return rank.log().done.count(tag) == 1 || rank.actors().end(); });
  }
  BOOST_TEST(rank.log().done.size() == 200u);
  BOOST_TEST(!rank.actors().end().has_value());
}

BOOST_AUTO_TEST_CASE(the_client_ends_the_job_with_its_code) {
  rank_bench rank;
  rank.run_until(10);
  BOOST_TEST(!rank.actors().end().has_value());
  caf::anon_send(rank.actors().supervisor(), job_finished{3});
  rank.run_until(20);
  BOOST_REQUIRE(rank.actors().end().has_value());
  BOOST_TEST(rank.actors().end()->exit_code == 3);
  BOOST_TEST(rank.actors().end()->reason.empty());
}

BOOST_AUTO_TEST_CASE(a_model_that_cannot_be_loaded_ends_the_job_by_name) {
  rank_bench rank({.loads = false});
  rank.submit(1, {1, 2, 3}, 5);
  rank.run_until(10);
  BOOST_REQUIRE(rank.actors().end().has_value());
  BOOST_TEST(rank.actors().end()->exit_code == 1);
  BOOST_TEST(rank.actors().end()->tell_user);
  BOOST_TEST(rank.actors().end()->reason.find("'m0'") != std::string::npos);
  BOOST_TEST(rank.actors().end()->reason.find("there is no such model") != std::string::npos);
  rank.shut_down();
  BOOST_TEST(rank.running_actors() == 0u);
}

BOOST_AUTO_TEST_CASE(an_actor_that_ends_before_the_job_ends_the_job_by_name) {
  rank_bench rank;
  rank.run_until(10);
  caf::anon_send_exit(rank.actors().pools().at(0), caf::exit_reason::kill);
  rank.run_until(20);
  BOOST_REQUIRE(rank.actors().end().has_value());
  BOOST_TEST(rank.actors().end()->exit_code == 1);
  BOOST_TEST(rank.actors().end()->reason.find("'kv_pool'") != std::string::npos);
}
