#include "runtime/planning/stationary.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/SparseCore>
#include <Eigen/SparseLU>

namespace tokenrouter {

namespace {

using column_matrix = Eigen::SparseMatrix<double>;
using row_matrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

constexpr std::uint32_t none = UINT32_MAX;

/// Up to this size elimination is as fast as iteration.
constexpr std::size_t direct_states = 500;

/// Above it elimination takes minutes.
constexpr std::size_t direct_states_max = 20'000;

constexpr int sweeps_max = 1000;
constexpr double sweep_share = 0.9;
constexpr double tolerance = 1e-11; ///< summed change of a sweep, of probabilities that add up to 1

/// Strongly connected components (Tarjan, without recursion). A component gets its number after all
/// that can be reached from it.
class components {
 public:
  explicit components(const batching_chain& chain)
      : chain_(chain), of_(chain.states(), none), order_(chain.states(), none),
        low_(chain.states(), 0) {
    visit_all_from(0);
  }

  std::uint32_t count() const { return count_; }
  std::uint32_t of(std::uint32_t state) const { return of_[state]; }

 private:
  struct visit {
    std::uint32_t state;
    std::size_t edge;
  };

  void open(std::uint32_t state) {
    order_[state] = low_[state] = next_order_++;
    pending_.push_back(state);
    path_.push_back({state, chain_.first_edge[state]});
  }

  void visit_all_from(std::uint32_t root) {
    open(root);
    while (!path_.empty()) {
      const std::uint32_t state = path_.back().state;
      if (path_.back().edge < chain_.first_edge[state + 1]) {
        const std::uint32_t to = chain_.edge_state[path_.back().edge++];
        if (order_[to] == none)
          open(to);
        else if (of_[to] == none)
          low_[state] = std::min(low_[state], order_[to]);
        continue;
      }
      path_.pop_back();
      if (!path_.empty())
        low_[path_.back().state] = std::min(low_[path_.back().state], low_[state]);
      if (low_[state] == order_[state])
        close(state);
    }
  }

  void close(std::uint32_t root) {
    std::uint32_t state;
    do {
      state = pending_.back();
      pending_.pop_back();
      of_[state] = count_;
    } while (state != root);
    ++count_;
  }

  const batching_chain& chain_;
  std::vector<std::uint32_t> of_, order_, low_;
  std::vector<std::uint32_t> pending_;
  std::vector<visit> path_;
  std::uint32_t next_order_ = 0;
  std::uint32_t count_ = 0;
};

/// Position of each listed state in the list; `none` for the others.
std::vector<std::uint32_t> positions(const batching_chain& chain,
                                     const std::vector<std::uint32_t>& states) {
  std::vector<std::uint32_t> index(chain.states(), none);
  for (std::uint32_t i = 0; i < states.size(); ++i)
    index[states[i]] = i;
  return index;
}

/// P^T over `states`, numbered as in the list: row j has the chances of coming to j.
template <class Matrix>
Matrix incoming(const batching_chain& chain, const std::vector<std::uint32_t>& states) {
  const auto index = positions(chain, states);
  std::vector<Eigen::Triplet<double>> entries;
  for (std::uint32_t i = 0; i < states.size(); ++i)
    for (std::size_t e = chain.first_edge[states[i]]; e < chain.first_edge[states[i] + 1]; ++e)
      if (const std::uint32_t j = index[chain.edge_state[e]]; j != none)
        entries.emplace_back(j, i, chain.edge_chance[e]);
  const auto size = static_cast<Eigen::Index>(states.size());
  Matrix matrix(size, size);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

/// Expected visits x to `states` when `b` says how often each is entered from outside:
/// (I - P^T) x = b over these states, from which the outside is reached.
result<Eigen::VectorXd> solve_visits(const batching_chain& chain,
                                     const std::vector<std::uint32_t>& states,
                                     const Eigen::VectorXd& b) {
  if (states.size() <= direct_states_max) {
    auto equations = incoming<column_matrix>(chain, states);
    column_matrix identity(equations.rows(), equations.cols());
    identity.setIdentity();
    equations = identity - equations;
    Eigen::SparseLU<column_matrix> solver(equations);
    if (solver.info() == Eigen::Success)
      if (Eigen::VectorXd visits = solver.solve(b); visits.allFinite())
        return visits;
  }
  return fail(errc::capacity,
              "the batching model has " + std::to_string(states.size()) +
                  " states among which it moves too slowly to be solved by iteration, and over " +
                  std::to_string(direct_states_max) +
                  " are too many for elimination; use a coarser time grid or fewer requests");
}

double rate_under(const batching_chain& chain, const std::vector<std::uint32_t>& states,
                  const Eigen::VectorXd& visits) {
  double tokens = 0, ticks = 0;
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    tokens += visits[i] * chain.commit_tokens[states[i]];
    ticks += visits[i] * chain.hold_ticks[states[i]];
  }
  return tokens / ticks;
}

/// Stationary distribution of a class by Gauss-Seidel sweeps in the order of enumeration, in which
/// most edges lead forward; mixed with the distribution before, so that a period can't keep it from
/// settling. False: it mixes too slowly.
bool iterate(const row_matrix& into, Eigen::VectorXd& visits) {
  visits = Eigen::VectorXd::Constant(into.rows(), 1.0 / static_cast<double>(into.rows()));
  Eigen::VectorXd before;
  for (int sweep = 0; sweep < sweeps_max; ++sweep) {
    before = visits;
    double change = 0;
    for (Eigen::Index j = 0; j < into.rows(); ++j) {
      double from_others = 0, stay = 0;
      for (row_matrix::InnerIterator from(into, j); from; ++from)
        if (from.col() == j)
          stay = from.value();
        else
          from_others += from.value() * visits[from.col()];
      visits[j] = from_others / (1 - stay);
      change += std::abs(visits[j] - before[j]);
    }
    visits = sweep_share * visits + (1 - sweep_share) * before;
    visits /= visits.sum();
    if (change <= tolerance)
      return true;
  }
  return false;
}

/// Rate of a class that is never left.
result<double> rate_of_class(const batching_chain& chain,
                             const std::vector<std::uint32_t>& states) {
  Eigen::VectorXd visits = Eigen::VectorXd::Ones(1);
  if (states.size() == 1 ||
      (states.size() > direct_states && iterate(incoming<row_matrix>(chain, states), visits)))
    return rate_under(chain, states, visits);
  // With the visits of one state set to 1, those of the others solve a regular system, whatever the
  // period.
  const std::vector<std::uint32_t> others(states.begin() + 1, states.end());
  const auto index = positions(chain, others);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(others.size()));
  const std::uint32_t fixed = states.front();
  for (std::size_t e = chain.first_edge[fixed]; e < chain.first_edge[fixed + 1]; ++e)
    if (const std::uint32_t j = index[chain.edge_state[e]]; j != none)
      b[j] += chain.edge_chance[e];
  const auto rest = solve_visits(chain, others, b);
  if (!rest)
    return tl::unexpected(rest.error());
  visits = Eigen::VectorXd::Ones(static_cast<Eigen::Index>(states.size()));
  visits.tail(rest->size()) = *rest;
  return rate_under(chain, states, visits);
}

/// How often a chain that starts in state 0 ends in each class: expected visits to the passing
/// states, and where these lead.
result<std::vector<double>> class_chances(const batching_chain& chain, const components& parts,
                                          const std::vector<std::uint32_t>& passing) {
  const auto index = positions(chain, passing);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(passing.size()));
  b[index[0]] = 1;
  const auto visits = solve_visits(chain, passing, b);
  if (!visits)
    return tl::unexpected(visits.error());
  std::vector<double> chances(parts.count(), 0);
  for (std::uint32_t i = 0; i < passing.size(); ++i)
    for (std::size_t e = chain.first_edge[passing[i]]; e < chain.first_edge[passing[i] + 1]; ++e)
      chances[parts.of(chain.edge_state[e])] += (*visits)[i] * chain.edge_chance[e];
  return chances;
}

} // namespace

result<double> long_run_tokens_per_tick(const batching_chain& chain) {
  const components parts(chain);
  std::vector<std::vector<std::uint32_t>> states(parts.count());
  std::vector<bool> closed(parts.count(), true);
  for (std::uint32_t s = 0; s < chain.states(); ++s) {
    states[parts.of(s)].push_back(s);
    for (std::size_t e = chain.first_edge[s]; e < chain.first_edge[s + 1]; ++e)
      if (parts.of(chain.edge_state[e]) != parts.of(s))
        closed[parts.of(s)] = false;
  }
  std::vector<double> chances(parts.count(), 1);
  if (std::count(closed.begin(), closed.end(), true) > 1) {
    std::vector<std::uint32_t> passing;
    for (std::uint32_t s = 0; s < chain.states(); ++s)
      if (!closed[parts.of(s)])
        passing.push_back(s);
    auto several = class_chances(chain, parts, passing);
    if (!several)
      return tl::unexpected(several.error());
    chances = std::move(*several);
  }
  double rate = 0;
  for (std::uint32_t c = 0; c < parts.count(); ++c) {
    if (!closed[c])
      continue;
    const auto own = rate_of_class(chain, states[c]);
    if (!own)
      return own;
    rate += chances[c] * *own;
  }
  return rate;
}

} // namespace tokenrouter
