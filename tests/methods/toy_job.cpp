#include "tests/methods/toy_job.hpp"

#include <boost/test/unit_test.hpp>

namespace tokenrouter {

namespace {

class toy_run {
 public:
  explicit toy_run(const toy_job& job) : job_(job), sequence_(job.prompt) {
    for (std::size_t i = 0; i < job.models.size(); ++i) {
      auto role = make_role({static_cast<std::uint16_t>(i)}, job.topology, job.parameters);
      BOOST_REQUIRE_MESSAGE(role, (role ? "" : role.error().message));
      roles_.push_back(std::move(*role));
    }
    auto entry = make_entry(job.topology, job.parameters);
    BOOST_REQUIRE_MESSAGE(entry, (entry ? "" : entry.error().message));
    auto start = (*entry)->start({job.seed, job.prompt, job.request_score});
    owner_ = start.model;
    state_ = std::move(start.state);
  }

  toy_result run() {
    const std::size_t steps_max = 20 * std::size_t{job_.output_tokens_max} + 20;
    while (!result_.ended && result_.steps.size() < steps_max)
      step();
    return std::move(result_);
  }

 private:
  const method_role& role() const { return *roles_[owner_.value]; }

  /// `sequence_` holds the tentative tokens as well; they are its last ones.
  token_id propose(std::size_t length) const {
    return job_.models[owner_.value].next(std::span(sequence_).first(length));
  }

  bool finishes(token_id token, std::size_t position) const {
    return token == job_.eos ||
           position - job_.prompt.size() + 1 >= std::size_t{job_.output_tokens_max};
  }

  /// Commits everything tentative, then `token`.
  void commit(token_id token) {
    for (; !tentative_.empty() && !result_.ended; tentative_.erase(tentative_.begin()))
      finish_with(tentative_.front());
    if (result_.ended)
      return;
    sequence_.push_back(token);
    finish_with({token, owner_});
  }

  void finish_with(made_token made) {
    const std::size_t position = job_.prompt.size() + result_.output.size();
    result_.output.push_back(made);
    result_.ended = finishes(made.token, position);
  }

  void judge_tentative() {
    const std::size_t first = sequence_.size() - tentative_.size();
    std::vector<token_id> own, theirs;
    for (std::size_t i = 0; i <= tentative_.size(); ++i)
      own.push_back(propose(first + i));
    for (const made_token& made : tentative_)
      theirs.push_back(made.token);
    const std::uint32_t accepted =
        role().receive({static_cast<std::uint32_t>(first), theirs, own}, state_);
    BOOST_REQUIRE(accepted <= theirs.size());
    role().rollback(static_cast<std::uint32_t>(theirs.size()) - accepted, state_);
    tentative_.resize(accepted);
    sequence_.resize(first + accepted);
    for (; !tentative_.empty() && !result_.ended; tentative_.erase(tentative_.begin()))
      finish_with(tentative_.front());
  }

  void step() {
    if (judges_)
      judge_tentative();
    judges_ = false;
    if (result_.ended)
      return;
    route_input in;
    in.seed = job_.seed;
    in.position = static_cast<std::uint32_t>(sequence_.size());
    in.prompt_tokens = static_cast<std::uint32_t>(job_.prompt.size());
    in.tentative_tokens = static_cast<std::uint32_t>(tentative_.size());
    in.proposed = propose(sequence_.size());
    in.would_finish = finishes(in.proposed, sequence_.size());
    in.request_score = job_.request_score;
    if (job_.models[owner_.value].signals)
      job_.models[owner_.value].signals(sequence_, in);
    const route_decision decision = role().route(in, state_);
    result_.steps.push_back({in.position, owner_, decision});
    apply(in, decision);
  }

  void apply(const route_input& in, const route_decision& decision) {
    const bool goes =
        decision.action != route_action::stay && decision.action != route_action::stay_tentative;
    if (goes) {
      BOOST_REQUIRE(decision.target != owner_);
      BOOST_REQUIRE(decision.target.value < job_.models.size());
    }
    switch (decision.action) {
    case route_action::stay:
    case route_action::go_keep:
      if (decision.forced.empty())
        commit(in.proposed);
      for (std::size_t i = 0; i < decision.forced.size() && !result_.ended; ++i)
        commit(decision.forced[i]);
      break;
    case route_action::stay_tentative:
      BOOST_REQUIRE(!in.would_finish);
      [[fallthrough]];
    case route_action::go_tentative:
      tentative_.push_back({in.proposed, owner_});
      sequence_.push_back(in.proposed);
      judges_ = goes;
      break;
    case route_action::go_drop:
      break;
    }
    if (goes)
      owner_ = decision.target;
  }

  const toy_job& job_;
  std::vector<std::unique_ptr<method_role>> roles_;
  std::vector<token_id> sequence_;
  std::vector<made_token> tentative_;
  model_id owner_;
  method_state state_;
  bool judges_ = false; ///< the owner has yet to look at what is tentative
  toy_result result_;
};

} // namespace

std::vector<token_id> toy_result::tokens() const {
  std::vector<token_id> out;
  for (const made_token& made : output)
    out.push_back(made.token);
  return out;
}

std::vector<int> toy_result::makers() const {
  std::vector<int> out;
  for (const made_token& made : output)
    out.push_back(made.model.value);
  return out;
}

double toy_result::share_of(model_id model) const {
  std::size_t count = 0;
  for (const made_token& made : output)
    count += made.model == model;
  return static_cast<double>(count) / static_cast<double>(output.size());
}

toy_result toy_job::run() const {
  return toy_run(*this).run();
}

toy_model hashing_model(std::uint32_t flavour) {
  return {[flavour](std::span<const token_id> sequence) {
            std::uint32_t hash = 2166136261u ^ flavour;
            for (const token_id token : sequence)
              hash = (hash ^ static_cast<std::uint32_t>(token)) * 16777619u;
            return static_cast<token_id>(1 + (hash >> 8) % 9);
          },
          {}};
}

} // namespace tokenrouter
