#include "runtime/config/read_method.hpp"

#include <array>
#include <limits>

#include "runtime/core/limits.hpp"
#include "runtime/methods/r2r/defaults.hpp"

namespace tokenrouter {

namespace {

using names = std::span<const std::string_view>;

constexpr double no_bound = std::numeric_limits<double>::infinity();
constexpr std::uint32_t tokens_max = limits::context_tokens_max;

constexpr std::array<std::string_view, 9> strategy_names = {"immediate",
                                                            "entropy",
                                                            "momentum",
                                                            "single_rolling_window",
                                                            "duo_rolling_window",
                                                            "neural",
                                                            "neural_rolling_window",
                                                            "neural_multi_input",
                                                            "random"};
constexpr std::array<std::string_view, 2> form_names = {"folded", "unfolded"};
constexpr std::array<std::string_view, 4> schedule_names = {"constant", "linear", "exponential",
                                                            "cosine"};
constexpr std::array<std::string_view, 2> combine_names = {"defer", "compose"};
constexpr std::array<std::string_view, 2> unit_names = {"normalised", "nats"};
constexpr std::array<std::string_view, 2> return_names = {"keep_llm", "keep_own"};
constexpr std::array<std::string_view, 3> answerer_names = {"large", "small", "same"};
constexpr std::array<std::string_view, 3> thinking_names = {"output_start", "prompt", "never"};
constexpr std::array<std::string_view, 2> mode_names = {"r2r", "markov"};
constexpr std::array<std::string_view, 4> source_names = {"request", "hash", "entropy", "head"};
constexpr std::array<std::string_view, 2> head_names = {"r2r", "citer"};

class parameter_reader {
 public:
  explicit parameter_reader(const yaml_view& view) : view_(view) {}

  /// A word that is refused leaves an empty one behind, so that nothing is concluded from it.
  void word(const char* key, names values, std::string& out) const {
    if (const yaml_view child = view_.child(key); child.given())
      out = child.one_of(values).value_or("");
  }
  template <class T>
  void number(const char* key, double low, double high, T& out) const {
    if (const auto value = view_.child(key).real(low, high))
      out = *value;
  }
  void count(const char* key, std::uint32_t low, std::uint32_t high, std::uint32_t& out) const {
    if (const auto value = view_.child(key).whole(low, high))
      out = static_cast<std::uint32_t>(*value);
  }
  void numbers(const char* key, std::vector<double>& out) const {
    if (auto values = view_.child(key).real_list(0, no_bound))
      out = std::move(*values);
  }
  void options(const char* key, std::map<std::string, std::string>& out) const {
    const yaml_view map = view_.child(key);
    if (!map.present())
      return;
    map.check_twice();
    for (const std::string& name : map.names())
      if (const auto value = map.child(name).text())
        out[name] = *value;
  }

 private:
  const yaml_view& view_;
};

void read_r2r(const parameter_reader& read, method_parameters& p) {
  read.word("switching_strategy", strategy_names, p.switching_strategy);
  read.number("aleatoric_threshold", 0, no_bound, p.aleatoric_threshold);
  read.number("epistemic_threshold", 0, no_bound, p.epistemic_threshold);
  read.number("entropy_threshold", 0, no_bound, p.entropy_threshold);
  read.number("momentum_decay_fraction", 0, 1, p.momentum_decay_fraction);
  read.number("quick_to_reference_threshold", 0, 1, p.quick_to_reference_threshold);
  read.number("reference_to_quick_threshold", 0, 1, p.reference_to_quick_threshold);
  read.count("window_tokens", 1, r2r_defaults::window_tokens_max, p.window_tokens);
  read.number("reference_share", 0, 1, p.reference_share);
}

void read_glimprouter(const parameter_reader& read, method_parameters& p) {
  read.word("answer_by", answerer_names, p.answer_by);
  read.word("thinking", thinking_names, p.thinking);
  read.count("step_tokens_max", 1, tokens_max, p.step_tokens_max);
  read.count("thinking_tokens_max", 1, tokens_max, p.thinking_tokens_max);
  read.count("first_small_steps_count", 0, tokens_max, p.first_small_steps_count);
}

} // namespace

void read_method_parameters(const yaml_view& view, method_settings& method) {
  const parameter_reader read(view);
  method_parameters& p = method.parameters;
  read.number("threshold", 0, no_bound, p.threshold);
  read.numbers("thresholds", p.thresholds);
  read.numbers("weights", p.weights);
  read_r2r(read, p);
  read.word("head_form", form_names, p.head_form);
  read.word("schedule", schedule_names, p.schedule);
  read.number("schedule_start_threshold", 1e-6, 1, p.schedule_start_threshold);
  read.count("warmup_tokens", 0, tokens_max, p.warmup_tokens);
  read.word("combine", combine_names, p.combine);
  p.defer_token = view.child("defer_token").text().value_or("");
  read.word("entropy_unit", unit_names, p.entropy_unit);
  read.word("on_return", return_names, p.on_return);
  read_glimprouter(read, p);
  read.word("random_mode", mode_names, p.random_mode);
  read.number("small_to_large_share", 0, 1, p.small_to_large_share);
  read.number("large_to_small_share", 0, 1, p.large_to_small_share);
  read.word("score_source", source_names, p.score_source);
  read.count("score_tail_tokens", 1, tokens_max, p.score_tail_tokens);
  read.word("head_kind", head_names, p.head_kind);
  read.count("draft_tokens", 1, 64, p.draft_tokens);
  read.options("options", p.options);
  if (method.name == "me")
    p.random_mode = "ensemble";
  p.has_router = method.name == "rstitch" && view.child("router").given();
}

} // namespace tokenrouter
