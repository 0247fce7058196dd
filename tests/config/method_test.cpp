#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "runtime/config/config_keys.hpp"
#include "runtime/config/method_keys.hpp"
#include "tests/config/config_fixture.hpp"

using namespace tokenrouter;
namespace tt = boost::test_tools;
using lines = std::vector<std::string>;

namespace {

/// Four lines: the method and two models with the roles of a pair, or two without.
std::string pair_of(const std::string& method, const std::string& small, const std::string& large) {
  return "system: {entry_model: s, method: " + method +
         "}\nmodels:\n  s: {path: a, scheduler: " + small +
         "}\n  l: {path: b, scheduler: " + large + "}\n";
}

std::string alike(const std::string& method, int models = 2) {
  std::string out = "system: {entry_model: x, method: " + method + "}\nmodels:\n  x: {path: a}\n";
  const char* more[] = {"  y: {path: b}\n", "  z: {path: b}\n"};
  for (int i = 1; i < models; ++i)
    out += more[i - 1];
  return out;
}

const std::string r2r = pair_of("r2r", "r2r_slm", "r2r_llm");
const std::string citer = pair_of("citer", "citer_slm", "citer_llm");
const std::string collm = pair_of("co-llm", "collm_base", "collm_assist");
const std::string rstitch = pair_of("rstitch", "rstitch_slm", "rstitch_llm");
const std::string glimpse = pair_of("glimprouter", "glimprouter_slm", "glimprouter_llm");
const std::string speculate = pair_of("speculate", "speculate_slm", "speculate_llm");

struct row {
  std::string text;
  lines faults;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(method_section, config_fixture)

BOOST_AUTO_TEST_CASE(complete_methods_have_no_faults) {
  for (const std::string& text :
       {r2r + "method: {router: r.safetensors}\n",
        r2r + "method: {router: r.safetensors, threshold: 1}\n",
        r2r + "method: {switching_strategy: entropy, threshold: 1.5}\n",
        r2r + "method: {switching_strategy: entropy, router: r.safetensors}\n",
        r2r + "method: {switching_strategy: immediate, epistemic_threshold: 0.05}\n",
        r2r + "method: {switching_strategy: momentum, momentum_decay_fraction: 0.8}\n",
        r2r + "method: {switching_strategy: duo_rolling_window, window_tokens: 16}\n",
        r2r + "method: {switching_strategy: random, reference_share: 0.1}\n",
        citer + "method: {router: r.safetensors, threshold: 0.95, head_form: unfolded}\n",
        collm + "method: {router: r.safetensors, schedule: cosine, warmup_tokens: 4}\n",
        collm + "method: {defer_token: <|defer|>, threshold: 0.5, combine: compose}\n",
        rstitch,
        rstitch + "method: {entropy_unit: nats, threshold: 1.5, on_return: keep_own}\n",
        rstitch + "method: {router: r.safetensors}\n",
        glimpse,
        glimpse + "method: {threshold: 1, answer_by: same, thinking: prompt}\n",
        speculate,
        speculate + "method: {draft_tokens: 8}\n",
        alike("me", 3) + "method: {weights: [1, 0, 2]}\n",
        alike("query-level") + "method: {threshold: 0.5}\n",
        alike("query-level", 3) + "method: {thresholds: [0.5, 0.5], score_source: hash}\n",
        alike("query-level") + "method: {threshold: 1, score_source: head, router: r.safetensors,"
                               " head_kind: citer}\n",
        alike("random-token"),
        alike("random-token") + "method: {random_mode: markov, small_to_large_share: 0.1}\n",
        alike("random-request"),
        alike("random-request", 3) + "method: {weights: [1, 1, 1]}\n",
        alike("cascade") + "method: {thresholds: [0.5]}\n",
        std::string("system: {method: single, entry_model: m}\nmodels:\n  m: {path: a}\n"),
        pair_of("custom", "mine_a", "mine_b") +
            "method: {library: r.safetensors, threshold: 3, options: {depth: 3, word: x}}\n"})
    BOOST_TEST(faults(text) == lines{}, tt::per_element());
}

BOOST_AUTO_TEST_CASE(models_that_do_not_fit_the_method_are_refused) {
  const row rows[] = {
      {"system: {method: single, entry_model: m}\nmodels:\n  m: {path: a}\n  n: {path: b}\n",
       {"DIR/c.yaml:2: models has 2 entries, but method single runs one; set system.method to one "
        "that routes, or remove the others"}},
      {"system: {method: single}\nmodels:\n  m: {path: a, scheduler: r2r_slm}\n",
       {"DIR/c.yaml:3: models.m.scheduler is r2r_slm, but method single has plain"}},
      {"system: {entry_model: l, method: r2r}\nmodels:\n  s: {path: a, scheduler: r2r_slm}\n"
       "  l: {path: b, scheduler: r2r_llm}\nmethod: {router: r.safetensors}\n",
       {"DIR/c.yaml:1: system.entry_model must be the r2r_slm, 's', not 'l'"}},
      {"system: {entry_model: s, method: r2r}\nmodels:\n  s: {path: a, scheduler: r2r_slm}\n"
       "  t: {path: b, scheduler: r2r_slm}\n  l: {path: b, scheduler: cascade}\n"
       "method: {router: r.safetensors}\n",
       {"DIR/c.yaml:2: models must have exactly one model with scheduler r2r_slm, not 2",
        "DIR/c.yaml:2: models must have exactly one model with scheduler r2r_llm, not 0",
        "DIR/c.yaml:5: models.l.scheduler is cascade, but method r2r has r2r_slm and r2r_llm"}},
      {"system: {entry_model: s, method: speculate}\nmodels:\n  s: {path: a}\n"
       "  l: {path: b, scheduler: speculate_llm}\n",
       {"DIR/c.yaml:2: models must have exactly one model with scheduler speculate_slm, not 0",
        "DIR/c.yaml:3: models.s has no scheduler; give its role, speculate_slm or speculate_llm"}},
      {"system: {entry_model: y, method: cascade}\nmodels:\n  x: {path: a}\n  y: {path: b}\n"
       "method: {thresholds: [0.5]}\n",
       {"DIR/c.yaml:1: system.entry_model must be the first model with method cascade, 'x', not "
        "'y'"}},
      {"system: {method: cascade}\nmodels:\n  x: {path: a}\n",
       {"DIR/c.yaml:2: models has 1 entry, but method cascade needs at least 2"}},
      {alike("random-token", 3),
       {"DIR/c.yaml:2: models has 3 entries, but method random-token runs 2"}},
      {"system: {entry_model: x, method: custom}\nmodels:\n  x: {path: a}\n",
       {"DIR/c.yaml: method needs library, the shared library with its roles, for method custom",
        "DIR/c.yaml:3: models.x has no scheduler; give its role"}},
  };
  for (const auto& [text, expected] : rows) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(heads_that_are_missing_are_named) {
  const row rows[] = {
      {r2r + "method: {threshold: 0.5}\n",
       {"DIR/c.yaml:5: method needs router, the weights of the routing head, for "
        "switching_strategy neural"}},
      {r2r + "method: {switching_strategy: neural_multi_input}\n",
       {"DIR/c.yaml:5: method needs router, the weights of the routing head, for "
        "switching_strategy neural_multi_input"}},
      {r2r + "method:\n  router: gone.safetensors\n",
       {"DIR/c.yaml:6: method.router is not a file: DIR/gone.safetensors"}},
      {citer,
       {"DIR/c.yaml: method needs router, the weights of the routing head, for method citer"}},
      {collm,
       {"DIR/c.yaml: method needs router, the weights of the routing head, for method co-llm"}},
      {collm + "method: {defer_token: d, threshold: 1, router: r.safetensors}\n",
       {"DIR/c.yaml:5: method.router and defer_token both name a deferral head; keep one"}},
      {collm + "method: {defer_token: d}\n",
       {"DIR/c.yaml:5: method needs threshold: a row of the model's own LM head brings none"}},
      {alike("query-level") + "method: {score_source: head, threshold: 0.5}\n",
       {"DIR/c.yaml:5: method needs router, the weights of the routing head, for score_source "
        "head"}},
      {alike("custom") + "method: {library: gone.so}\n",
       {"DIR/c.yaml:3: models.x has no scheduler; give its role",
        "DIR/c.yaml:4: models.y has no scheduler; give its role",
        "DIR/c.yaml:5: method.library is not a file: DIR/gone.so"}},
  };
  for (const auto& [text, expected] : rows) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(thresholds_and_weights_are_checked_against_the_models) {
  const row rows[] = {
      {r2r + "method:\n  router: r.safetensors\n  threshold: 2\n",
       {"DIR/c.yaml:7: method.threshold must be a number from 0 to 1 for switching_strategy "
        "neural"}},
      {rstitch + "method: {threshold: 1.5}\n",
       {"DIR/c.yaml:5: method.threshold must be a number from 0 to 1 for method rstitch"}},
      {rstitch + "method: {entropy_unit: nats}\n",
       {"DIR/c.yaml:5: method needs threshold, in nats, for entropy_unit nats"}},
      {r2r + "method: {switching_strategy: entropy, threshold: -1}\n",
       {"DIR/c.yaml:5: method.threshold must be a number of at least 0, not '-1'"}},
      {alike("cascade"),
       {"DIR/c.yaml: method needs thresholds with 1 numbers, one for each model but the last, not "
        "0"}},
      {alike("cascade") + "method:\n  thresholds: [0.1, 0.2]\n",
       {"DIR/c.yaml:6: method.thresholds needs thresholds with 1 numbers, one for each model but "
        "the last, not 2"}},
      {alike("cascade") + "method:\n  thresholds: 0.1\n",
       {"DIR/c.yaml:6: method.thresholds must be a list of numbers of at least 0, not '0.1'"}},
      {alike("query-level"),
       {"DIR/c.yaml: method needs thresholds with 1 numbers, one for each model but the last, not "
        "0"}},
      {alike("query-level", 3) + "method: {threshold: 0.5}\n",
       {"DIR/c.yaml:6: method.threshold is for two models; give thresholds, one for each model but "
        "the last"}},
      {alike("query-level") + "method: {threshold: 0.5, thresholds: [0.5]}\n",
       {"DIR/c.yaml:5: method.threshold and thresholds say the same; keep one"}},
      {alike("query-level", 3) + "method: {thresholds: [0.6, 0.5]}\n",
       {"DIR/c.yaml:6: method.thresholds must ascend: a higher score goes to a larger model"}},
      {alike("me", 3),
       {"DIR/c.yaml: method needs weights with 3 numbers, one for each model, not 0"}},
      {alike("me") + "method: {weights: [1, 2, 3]}\n",
       {"DIR/c.yaml:5: method.weights needs weights with 2 numbers, one for each model, not 3"}},
      {alike("me") + "method: {weights: [1, -1]}\n",
       {"DIR/c.yaml:5: method.weights must be a list of numbers of at least 0, not one with '-1'"}},
      {alike("me") + "method: {weights: [0, 0]}\n",
       {"DIR/c.yaml:5: method.weights are all 0; at least one model must be drawn"}},
      {alike("random-request", 3),
       {"DIR/c.yaml: method needs weights with 3 numbers, one for each model, not 0"}},
      {alike("random-request") + "method: {weights: [1, 1], reference_share: 0.5}\n",
       {"DIR/c.yaml:5: method.reference_share and weights say the same; keep one"}},
      {r2r + "method: {switching_strategy: momentum, momentum_decay_fraction: 1.5}\n",
       {"DIR/c.yaml:5: method.momentum_decay_fraction must be a number from 0 to 1, not '1.5'"}},
      {r2r + "method: {switching_strategy: duo_rolling_window, window_tokens: 17}\n",
       {"DIR/c.yaml:5: method.window_tokens must be a whole number from 1 to 16, not '17'"}},
      {speculate + "method: {draft_tokens: 0}\n",
       {"DIR/c.yaml:5: method.draft_tokens must be a whole number from 1 to 64, not '0'"}},
      {pair_of("custom", "a", "b") + "method: {library: r.safetensors, options: {x: [1]}}\n",
       {"DIR/c.yaml:5: method.options.x must be text, not a list"}},
  };
  for (const auto& [text, expected] : rows) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(keys_without_effect_are_refused_and_say_who_reads_them) {
  const row rows[] = {
      {r2r + "method: {router: r.safetensors, thresholds: [1]}\n",
       {"DIR/c.yaml:5: method.thresholds has no effect: system.method is r2r, only query-level and "
        "cascade read it"}},
      {alike("cascade") + "method: {thresholds: [0.1], threshold: 0.3, draft_tokens: 2}\n",
       {"DIR/c.yaml:5: method.threshold has no effect: system.method is cascade, only r2r, citer, "
        "co-llm, rstitch, glimprouter and query-level read it",
        "DIR/c.yaml:5: method.draft_tokens has no effect: system.method is cascade, only speculate "
        "reads it"}},
      {r2r + "method: {switching_strategy: momentum, threshold: 0.3}\n",
       {"DIR/c.yaml:5: method.threshold has no effect: method.switching_strategy is momentum, only "
        "entropy, neural, neural_rolling_window and neural_multi_input read it"}},
      {collm + "method: {router: r.safetensors, warmup_tokens: 3}\n",
       {"DIR/c.yaml:5: method.warmup_tokens has no effect: method.schedule is constant, only "
        "linear, exponential and cosine read it"}},
      {alike("random-token") + "method: {random_mode: markov, reference_share: 0.3}\n",
       {"DIR/c.yaml:5: method.reference_share has no effect: method.random_mode is markov, only "
        "r2r "
        "reads it"}},
      {alike("query-level") + "method: {threshold: 0.5, score_tail_tokens: 3}\n",
       {"DIR/c.yaml:5: method.score_tail_tokens has no effect: method.score_source is request, "
        "only "
        "entropy reads it"}},
      // A word that is refused gives no second fault.
      {r2r + "method: {switching_strategy: momentun, threshold: 0.3}\n",
       {"DIR/c.yaml:5: method.switching_strategy must be one of immediate, entropy, momentum, "
        "single_rolling_window, duo_rolling_window, neural, neural_rolling_window, "
        "neural_multi_input and random, not 'momentun'"}},
  };
  for (const auto& [text, expected] : rows) {
    BOOST_TEST_INFO(text);
    BOOST_TEST(faults(text) == expected, tt::per_element());
  }
}

BOOST_AUTO_TEST_CASE(every_key_of_the_section_is_read_by_some_method) {
  for (const std::string_view key : config_names_under("method")) {
    const bool read = std::ranges::any_of(known_methods(), [&](const method_shape& method) {
      method_parameters p;
      if (method.is_custom() && key != "library" && key != "options")
        return false;
      for (const char* strategy : {"immediate", "momentum", "neural_rolling_window", "random"})
        for (const char* mode : {"r2r", "markov"})
          for (const char* source : {"entropy", "head"}) {
            p.switching_strategy = strategy;
            p.random_mode = mode;
            p.score_source = source;
            p.schedule = "linear";
            if (why_without_effect(key, method.name, p).empty())
              return true;
          }
      return false;
    });
    BOOST_TEST(read, key);
  }
}

BOOST_AUTO_TEST_CASE(every_parameter_is_read) {
  const auto p = load(r2r + "method: {switching_strategy: random, aleatoric_threshold: 1,"
                            " epistemic_threshold: 2, entropy_threshold: 3,"
                            " momentum_decay_fraction: 0.1, quick_to_reference_threshold: 0.2,"
                            " reference_to_quick_threshold: 0.25, window_tokens: 4,"
                            " reference_share: 0.3, head_form: unfolded, schedule: linear,"
                            " schedule_start_threshold: 0.4, warmup_tokens: 5, combine: compose,"
                            " defer_token: d, entropy_unit: nats, on_return: keep_own,"
                            " answer_by: small, thinking: never, step_tokens_max: 6,"
                            " thinking_tokens_max: 7, first_small_steps_count: 8,"
                            " random_mode: markov, small_to_large_share: 0.5,"
                            " large_to_small_share: 0.6, score_source: hash, score_tail_tokens: 9,"
                            " head_kind: citer, draft_tokens: 10, weights: [1, 2],"
                            " thresholds: [3], threshold: 4, options: {a: b, c: 1}}\n")
                     .config.method.parameters;
  BOOST_TEST(p.switching_strategy == "random");
  BOOST_TEST(p.aleatoric_threshold.value() == 1);
  BOOST_TEST(p.epistemic_threshold.value() == 2);
  BOOST_TEST(p.entropy_threshold.value() == 3);
  BOOST_TEST(p.momentum_decay_fraction == 0.1);
  BOOST_TEST(p.quick_to_reference_threshold == 0.2);
  BOOST_TEST(p.reference_to_quick_threshold == 0.25);
  BOOST_TEST(p.window_tokens == 4u);
  BOOST_TEST(p.reference_share == 0.3);
  BOOST_TEST(p.head_form == "unfolded");
  BOOST_TEST(p.schedule == "linear");
  BOOST_TEST(p.schedule_start_threshold == 0.4);
  BOOST_TEST(p.warmup_tokens == 5u);
  BOOST_TEST(p.combine == "compose");
  BOOST_TEST(p.defer_token == "d");
  BOOST_TEST(p.entropy_unit == "nats");
  BOOST_TEST(p.on_return == "keep_own");
  BOOST_TEST(p.answer_by == "small");
  BOOST_TEST(p.thinking == "never");
  BOOST_TEST(p.step_tokens_max == 6u);
  BOOST_TEST(p.thinking_tokens_max == 7u);
  BOOST_TEST(p.first_small_steps_count == 8u);
  BOOST_TEST(p.random_mode == "markov");
  BOOST_TEST(p.small_to_large_share == 0.5);
  BOOST_TEST(p.large_to_small_share == 0.6);
  BOOST_TEST(p.score_source == "hash");
  BOOST_TEST(p.score_tail_tokens == 9u);
  BOOST_TEST(p.head_kind == "citer");
  BOOST_TEST(p.draft_tokens == 10u);
  BOOST_TEST(p.weights == (std::vector<double>{1, 2}), tt::per_element());
  BOOST_TEST(p.thresholds == (std::vector<double>{3}), tt::per_element());
  BOOST_TEST(p.threshold.value() == 4);
  BOOST_TEST((p.options == std::map<std::string, std::string>{{"a", "b"}, {"c", "1"}}));
  BOOST_TEST(!p.has_router);
}

BOOST_AUTO_TEST_CASE(some_parameters_follow_from_the_method) {
  const auto me = load(alike("me") + "method: {weights: [1, 2]}\n").config.method.parameters;
  BOOST_TEST(me.random_mode == "ensemble");
  BOOST_TEST(
      load(rstitch + "method: {router: r.safetensors}\n").config.method.parameters.has_router);
  BOOST_TEST(!load(rstitch).config.method.parameters.has_router);
  const auto loaded = load(alike("random-request"));
  for (const model_settings& model : loaded.config.models)
    BOOST_TEST(model.role == "per_request_random_routing");
}

BOOST_AUTO_TEST_SUITE_END()
