#include <boost/test/unit_test.hpp>

#include <functional>

#include "actors/supervisor_state.hpp"

using namespace tokenrouter;

namespace {

replica_facts facts(std::uint16_t model, std::uint32_t pool_tokens = 160) {
  return {{{model}, 0}, pool_tokens, 64, 1};
}

supervisor_state supervisor(std::uint32_t self, std::uint32_t ranks,
                            std::vector<replica_facts> local = {}) {
  return supervisor_state({{self}, ranks, std::move(local), 0, {"quick", "reference"}});
}

using transition = std::function<std::optional<job_end>(supervisor_state&)>;

} // namespace

BOOST_AUTO_TEST_CASE(a_rank_is_ready_with_the_last_of_its_models) {
  auto s = supervisor(1, 2, {facts(0), facts(1)});
  BOOST_TEST(!s.on_model_loaded({{{1}, 0}, 0}));
  BOOST_TEST(!s.on_model_loaded({{{1}, 0}, 0})); // the same once more is no second model
  BOOST_TEST(s.on_model_loaded({{{0}, 0}, 0}));
}

BOOST_AUTO_TEST_CASE(a_rank_is_ready_with_the_last_of_its_shards_too) {
  supervisor_state s({{1}, 2, {facts(0)}, 2, {"quick", "reference"}});
  BOOST_TEST(!s.on_model_loaded({{{0}, 0}, 0}));
  BOOST_TEST(!s.on_model_loaded({{{1}, 0}, 1}));
  BOOST_TEST(s.on_model_loaded({{{1}, 0}, 2})); // another shard of the same replica
}

BOOST_AUTO_TEST_CASE(a_rank_is_ready_once_the_ways_to_kv_are_known) {
  for (const bool loaded_last : {false, true}) {
    supervisor_state s({.self = {1},
                        .ranks = 2,
                        .local = {facts(0), facts(1)},
                        .model_names = {"quick", "reference"},
                        .fetchers = 1});
    BOOST_TEST(!s.on_model_loaded({{{1}, 0}, 0}));
    if (loaded_last)
      BOOST_TEST(!s.on_kv_settled({{1}, 0}));
    BOOST_TEST(s.on_model_loaded({{{0}, 0}, 0}) == loaded_last);
    BOOST_TEST(s.on_kv_settled({{1}, 0}) == !loaded_last);
    BOOST_TEST(!s.on_kv_settled({{1}, 0})); // once only
  }
}

BOOST_AUTO_TEST_CASE(the_job_is_ready_with_the_last_rank_also_without_models) {
  auto s = supervisor(0, 3, {facts(0)});
  BOOST_TEST(!s.on_rank_ready({{2}, {facts(1, 320)}}).has_value());
  BOOST_TEST(!s.on_rank_ready({{1}, {}}).has_value());
  BOOST_TEST(!s.on_rank_ready({{1}, {}}).has_value()); // twice the same rank is not two
  const auto all = s.on_rank_ready({{0}, {facts(0)}});
  BOOST_REQUIRE(all.has_value());
  BOOST_REQUIRE(all->size() == 2u);
  BOOST_TEST((all->at(0).replica == replica_id{{1}, 0}));
  BOOST_TEST(all->at(0).pool_tokens == 320u);
  BOOST_TEST((all->at(1).replica == replica_id{{0}, 0}));
  BOOST_TEST(!s.on_rank_ready({{0}, {facts(0)}}).has_value()); // once only
}

BOOST_AUTO_TEST_CASE(a_job_of_one_rank_is_ready_by_itself) {
  auto s = supervisor(0, 1, {facts(0)});
  BOOST_TEST(s.on_model_loaded({{{0}, 0}, 0}));
  const auto all = s.on_rank_ready({{0}, {facts(0)}});
  BOOST_TEST(all.value_or(std::vector<replica_facts>{}).size() == 1u);
}

BOOST_AUTO_TEST_CASE(each_cause_ends_the_job_in_its_own_way) {
  struct row {
    const char* what;
    transition cause;
    std::uint8_t exit_code;
    std::string reason;
    bool tell_peers;
    bool tell_user;
  };
  const std::vector<row> rows{
      {"the client has all it wanted", [](auto& s) { return s.on_finished(0); }, 0, "", true,
       false},
      {"the client gives a code", [](auto& s) { return s.on_finished(3); }, 3, "", true, false},
      {"a model can't be loaded",
       [](auto& s) {
         return s.on_model_failed({{{{1}, 0}, 0}, {errc::not_found, "no file there"}});
       },
       1, "model 'reference' can't be loaded: no file there", true, true},
      {"a model without a name",
       [](auto& s) {
         return s.on_model_failed({{{{9}, 0}, 0}, {errc::not_found, "no file there"}});
       },
       1, "model '9' can't be loaded: no file there", true, true},
      {"a model can't complete a step",
       [](auto& s) {
         return s.on_model_failed({{{{1}, 0}, 1}, {errc::unavailable, "a shard is gone"}, true});
       },
       1, "model 'reference' can't go on: a shard is gone", true, true},
      {"a peer is lost",
       [](auto& s) {
         return s.on_peer_down({{2}, "no sign of life"}).end;
       },
       1, "rank 2 is lost: no sign of life", true, true},
      {"an actor is gone", [](auto& s) { return s.on_actor_down("scheduler"); }, 1,
       "actor 'scheduler' ended unexpectedly", true, true},
      {"a peer ends the job",
       [](auto& s) {
         return s.on_end({{0}, 4, "because"});
       },
       4, "because", false, true},
      {"a peer ends the job as intended",
       [](auto& s) {
         return s.on_end({{0}, 0, ""});
       },
       0, "", false, false},
  };
  for (const auto& r : rows) {
    BOOST_TEST_CONTEXT(r.what) {
      auto s = supervisor(0, 4);
      BOOST_TEST(!s.ended());
      const auto end = r.cause(s);
      BOOST_REQUIRE(end.has_value());
      BOOST_TEST(s.ended());
      BOOST_TEST(end->exit_code == r.exit_code);
      BOOST_TEST(end->reason.empty() == r.reason.empty());
      BOOST_TEST(end->reason.find(r.reason) == 0u);
      BOOST_TEST(end->tell_peers == r.tell_peers);
      BOOST_TEST(end->tell_user == r.tell_user);
    }
  }
}

BOOST_AUTO_TEST_CASE(there_is_exactly_one_end) {
  const std::vector<transition> causes{
      [](auto& s) { return s.on_finished(0); },
      [](auto& s) {
        return s.on_model_failed({{{{0}, 0}, 0}, {errc::io, "x"}});
      },
      [](auto& s) {
        return s.on_peer_down({{1}, "x"}).end;
      },
      [](auto& s) { return s.on_peer_left({0}).end; },
      [](auto& s) {
        return s.on_end({{2}, 1, "x"});
      },
      [](auto& s) { return s.on_actor_down("gateway"); },
  };
  for (const auto& first : causes)
    for (const auto& second : causes) {
      auto s = supervisor(2, 3);
      BOOST_TEST(first(s).has_value());
      BOOST_TEST(!second(s).has_value());
    }
}

BOOST_AUTO_TEST_CASE(the_lowest_rank_that_is_left_tells_the_user) {
  struct row {
    const char* what;
    std::uint32_t self;
    std::vector<std::uint32_t> lost; ///< the first ends the job, if nobody else did
    std::vector<std::uint32_t> left_before;
    bool tell_user;
  };
  const std::vector<row> rows{
      {"rank 0 speaks", 0, {2}, {}, true},
      {"rank 1 leaves it to rank 0", 1, {2}, {}, false},
      {"rank 0 is the one that is lost", 1, {0}, {}, true},
      {"rank 2 leaves it to rank 1", 2, {0}, {}, false},
      {"rank 1 had left before", 2, {0}, {1}, true},
      {"a higher rank had left before", 1, {3}, {2}, false},
  };
  for (const auto& r : rows) {
    auto s = supervisor(r.self, 4);
    for (auto rank : r.left_before)
      BOOST_TEST(!s.on_peer_left({rank}).end.has_value());
    const auto end = s.on_peer_down({{r.lost[0]}, "gone"}).end;
    BOOST_REQUIRE(end.has_value());
    BOOST_TEST(end->tell_user == r.tell_user, r.what);
    BOOST_TEST(end->tell_peers);
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_leaves_in_order_ends_the_job_only_if_it_is_rank_0) {
  auto s = supervisor(1, 3);
  BOOST_TEST(!s.on_peer_left({2}).end.has_value());
  const auto end = s.on_peer_left({0}).end;
  BOOST_REQUIRE(end.has_value());
  BOOST_TEST(end->exit_code == 1);
  BOOST_TEST(!end->tell_peers);
  BOOST_TEST(end->tell_user);
  BOOST_TEST(end->reason.find("rank 0") != std::string::npos);
}
