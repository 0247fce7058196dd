#include <array>

#include "tests/sim/scenario.hpp"

namespace tokenrouter::sim {

namespace {

class dice {
 public:
  explicit dice(std::mt19937_64& engine) : engine_(engine) {}
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(engine_() % (high - low + 1));
  }
  bool one_in(std::uint32_t n) { return engine_() % n == 0; }
  double share() { return static_cast<double>(engine_() % 1001) / 1000.0; }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& all) {
    return all[engine_() % N];
  }

 private:
  std::mt19937_64& engine_;
};

void draw_r2r(dice& d, scenario& s) {
  static constexpr std::array strategies{"immediate",
                                         "entropy",
                                         "momentum",
                                         "single_rolling_window",
                                         "duo_rolling_window",
                                         "neural",
                                         "neural_rolling_window",
                                         "neural_multi_input",
                                         "random"};
  auto& p = s.parameters;
  s.topology.roles = {"r2r_slm", "r2r_llm"};
  p.switching_strategy = d.one_of(strategies);
  p.threshold = p.switching_strategy == "entropy" ? 3 * d.share() : d.share();
  p.aleatoric_threshold = 2.3 * d.share();
  p.entropy_threshold = 3 * d.share();
  if (d.one_in(2))
    p.epistemic_threshold = d.share();
  p.window_tokens = d.between(1, 6);
  p.reference_share = d.share();
}

/// Texts of the toy vocabulary, with everything GlimpRouter looks for, whole and in pieces.
std::shared_ptr<const std::vector<std::string>> toy_texts() {
  auto texts = std::make_shared<std::vector<std::string>>(vocab_tokens, "word ");
  static constexpr std::array marks{"\n",   "\n\n", ".\n\n",   "\n\n\n", "</think>",
                                    "</th", "ink>", "<think>", "x\n",    "</"};
  for (std::size_t i = 0; i < marks.size(); ++i)
    (*texts)[1 + 3 * i] = marks[i];
  return texts;
}

void draw_glimprouter(dice& d, scenario& s) {
  static constexpr std::array answerers{"large", "small", "same"};
  static constexpr std::array thinkings{"output_start", "prompt", "never"};
  auto& p = s.parameters;
  s.topology.roles = {"glimprouter_slm", "glimprouter_llm"};
  p.threshold = 3 * d.share();
  p.answer_by = d.one_of(answerers);
  p.thinking = d.one_of(thinkings);
  p.step_tokens_max = d.between(2, 20);
  p.thinking_tokens_max = d.one_in(2) ? d.between(1, 30) : 8192;
  p.first_small_steps_count = d.between(0, 2);
  p.token_bytes = toy_texts();
  p.end_of_thinking = {1, 13, 4};
}

void draw_collm(dice& d, scenario& s) {
  static constexpr std::array schedules{"constant", "linear", "exponential", "cosine"};
  auto& p = s.parameters;
  s.topology.roles = {"collm_base", "collm_assist"};
  p.threshold = d.share();
  p.schedule = d.one_of(schedules);
  p.warmup_tokens = d.between(1, 20);
  p.combine = d.one_in(2) ? "compose" : "defer";
}

void draw_weights(dice& d, scenario& s) {
  for (std::size_t i = 0; i < s.topology.roles.size(); ++i)
    s.parameters.weights.push_back(0.1 + d.share());
}

void draw_random(dice& d, scenario& s) {
  auto& p = s.parameters;
  if (d.one_in(2)) {
    p.random_mode = "ensemble";
    s.topology.roles.assign(d.between(2, 8), "random_routing");
    draw_weights(d, s);
    return;
  }
  p.random_mode = d.one_in(2) ? "r2r" : "markov";
  s.topology.roles = {"random_routing", "random_routing"};
  p.reference_share = d.one_in(4) ? d.between(0, 1) : d.share();
  p.small_to_large_share = d.share();
  p.large_to_small_share = d.share();
}

void draw_query_level(dice& d, scenario& s) {
  static constexpr std::array sources{"request", "hash", "entropy", "head"};
  auto& p = s.parameters;
  s.topology.roles.assign(d.one_in(2) ? 2 : d.between(3, 8), "query_level_routing");
  p.score_source = d.one_of(sources);
  p.score_tail_tokens = d.between(1, 40);
  p.threshold = d.share();
  double threshold = 0;
  for (std::size_t i = 1; i < s.topology.roles.size(); ++i)
    p.thresholds.push_back(threshold += d.share() / static_cast<double>(s.topology.roles.size()));
  if (s.topology.roles.size() == 2)
    p.thresholds.clear();
}

} // namespace

void draw_method(std::mt19937_64& random, scenario& s) {
  dice d(random);
  auto& p = s.parameters;
  s.topology.entry = {0};
  switch (d.between(0, 10)) {
  case 0:
    s.topology.roles = {"plain"};
    break;
  case 1:
    s.topology.roles.assign(d.between(2, 8), "cascade");
    for (std::size_t i = 1; i < s.topology.roles.size(); ++i)
      p.thresholds.push_back(3 * d.share());
    break;
  case 2:
    s.topology.roles = {"citer_slm", "citer_llm"};
    p.threshold = d.share();
    break;
  case 3:
    draw_collm(d, s);
    break;
  case 4:
    s.topology.roles = {"rstitch_slm", "rstitch_llm"};
    p.threshold = d.share() / 2;
    p.on_return = d.one_in(2) ? "keep_llm" : "keep_own";
    p.has_router = d.one_in(3);
    break;
  case 5:
    draw_glimprouter(d, s);
    break;
  case 6:
    draw_random(d, s);
    break;
  case 7:
    s.topology.roles.assign(d.between(2, 8), "per_request_random_routing");
    draw_weights(d, s);
    break;
  case 8:
    draw_query_level(d, s);
    break;
  case 9:
    s.topology.roles = {"speculate_slm", "speculate_llm"};
    p.draft_tokens = d.between(1, 8);
    break;
  default:
    draw_r2r(d, s);
  }
}

} // namespace tokenrouter::sim
