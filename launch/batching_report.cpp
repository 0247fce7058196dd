#include "launch/batching_report.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace tokenrouter {

namespace {

using json = nlohmann::ordered_json;

std::string vector_text(const std::vector<std::uint32_t>& thresholds) {
  return fmt::format("{}", fmt::join(thresholds, ","));
}

double ratio(double tokens_per_second, double to_tokens_per_second) {
  return to_tokens_per_second > 0 ? tokens_per_second / to_tokens_per_second : 1;
}

std::string paste_line(const std::string& name, const std::string& value) {
  return fmt::format("  # under models.{}:\n  delayed_batching_threshold: {}\n", name, value);
}

json choice_json(const std::vector<std::uint32_t>& thresholds, const batching_rate& rate,
                 double no_delay_tokens_per_second) {
  return {{"thresholds", thresholds},
          {"tokens_per_second", rate.tokens_per_second},
          {"ratio_to_no_delay", ratio(rate.tokens_per_second, no_delay_tokens_per_second)},
          {"states", rate.states_count}};
}

} // namespace

std::string table_text(const batching_table& table, const std::vector<std::string>& names,
                       std::uint32_t rows_max) {
  const auto& choices = table.choices;
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rate_of = [&choices](std::size_t i) { return choices[i].rate.tokens_per_second; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (a == table.best_index || b == table.best_index)
      return a == table.best_index && b != table.best_index;
    return rate_of(a) > rate_of(b);
  });
  if (rows_max > 0 && order.size() > rows_max) {
    const bool shown = std::count(order.begin(), order.begin() + rows_max, std::size_t{0}) > 0;
    order.resize(rows_max);
    if (!shown)
      order.push_back(0);
  }
  std::string out =
      fmt::format("{:<16} {:>10} {:>12} {:>8}\n", "thresholds", "tok/s", "to no delay", "states");
  for (std::size_t i : order)
    out += fmt::format("{:<16} {:>10.1f} {:>12.3f} {:>8}{}\n", vector_text(choices[i].thresholds),
                       rate_of(i), ratio(rate_of(i), rate_of(0)), choices[i].rate.states_count,
                       i == table.best_index ? "  best"
                       : i == 0              ? "  no delay"
                                             : "");
  if (order.size() < choices.size())
    out += fmt::format("{} of {} rows; --rows 0 shows all\n", order.size(), choices.size());
  for (std::size_t m = 0; m < names.size(); ++m)
    out += paste_line(names[m], std::to_string(choices[table.best_index].thresholds[m]));
  return out;
}

std::string table_json(const batching_table& table, std::uint32_t live_requests,
                       const std::vector<std::string>& names) {
  const double no_delay = table.choices.front().rate.tokens_per_second;
  const auto& best = table.choices[table.best_index];
  json out;
  out["live_requests"] = live_requests;
  out["best"] = choice_json(best.thresholds, best.rate, no_delay);
  for (std::size_t m = 0; m < names.size(); ++m)
    out["delayed_batching_threshold"][names[m]] = best.thresholds[m];
  for (const auto& choice : table.choices)
    out["choices"].push_back(choice_json(choice.thresholds, choice.rate, no_delay));
  return out.dump(2) + "\n";
}

std::string lists_text(const threshold_lists& lists, const std::vector<std::string>& names) {
  std::string out = fmt::format("{:>4} {:<16} {:>10} {:>12} {:>8} {:>8}\n", "live", "thresholds",
                                "tok/s", "to no delay", "to best", "states");
  for (std::size_t n = 0; n < lists.rates.size(); ++n) {
    std::vector<std::uint32_t> thresholds;
    for (const auto& list : lists.of_model)
      thresholds.push_back(list[n]);
    const double rate = lists.rates[n].tokens_per_second;
    out +=
        fmt::format("{:>4} {:<16} {:>10.1f} {:>12.3f} {:>8.3f} {:>8}\n", n + 1,
                    vector_text(thresholds), rate, ratio(rate, lists.no_delay_tokens_per_second[n]),
                    ratio(rate, lists.best_tokens_per_second[n]), lists.rates[n].states_count);
  }
  for (std::size_t m = 0; m < names.size(); ++m)
    out += paste_line(names[m], fmt::format("[{}]", fmt::join(lists.of_model[m], ", ")));
  return out;
}

std::string lists_json(const threshold_lists& lists, const std::vector<std::string>& names) {
  json out;
  for (std::size_t m = 0; m < names.size(); ++m)
    out["delayed_batching_threshold"][names[m]] = lists.of_model[m];
  out["worst_loss_share"] = lists.worst_loss_share();
  for (std::size_t n = 0; n < lists.rates.size(); ++n) {
    std::vector<std::uint32_t> thresholds;
    for (const auto& list : lists.of_model)
      thresholds.push_back(list[n]);
    json one = choice_json(thresholds, lists.rates[n], lists.no_delay_tokens_per_second[n]);
    one["live_requests"] = n + 1;
    one["best_tokens_per_second"] = lists.best_tokens_per_second[n];
    out["lists"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

} // namespace tokenrouter
