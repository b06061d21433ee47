#include "trace/dynamic_sizes.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <random>
#include <variant>

#include "levels/level.hpp"

namespace backplane::core {
namespace {

using graph::Constraint;
using graph::Dim;
using graph::Location;
using graph::NamedSize;
using graph::TraceDifference;
using Sizes = std::vector<int64_t>;
using Relation = Constraint::Relation;
using GraphPointer = std::shared_ptr<graph::Graph>;

constexpr int kNear = 3;          // traces beside the example
constexpr int64_t kMiddle = 260;  // and sizes away from it, different for each name
constexpr int64_t kFar = 66000;
constexpr int64_t kMostStep = 16;   // of sizes that have to be multiples
constexpr int64_t kLeastReach = 8, kMostReach = 64;  // beside the example, for the remainders of divisions
constexpr int kProbes = 4;                           // anywhere within the limits
constexpr int64_t kShort = 64;                       // steps of a range that is tried as a whole
constexpr int kMostNarrowed = 30;

class Search {
 public:
  Search(std::shared_ptr<const graph::Graph> first, std::span<const NamedSize> named, Sizes example,
         const TraceAtSizes& trace)
      : named_(named), example_(std::move(example)), trace_(trace), step_(named.size(), 1), lowest_(named.size()),
        highest_(named.size()), leader_(named.size()) {
    for (size_t i = 0; i < leader_.size(); ++i) leader_[i] = i;
    known_[example_] = {std::move(first), "", {}};
  }

  GraphPointer run() {
    for (size_t i = 0; i < named_.size(); ++i) find_step(i);
    follow_leaders();
    find_graph();
    for (size_t i = 0; i < named_.size(); ++i)
      if (leader_[i] == i) find_range(i);
    find_equals();
    narrow();
    return std::move(graph_);
  }

 private:
  const TraceOfSizes& at(const Sizes& sizes) {
    const auto known = known_.find(sizes);
    return known != known_.end() ? known->second : known_[sizes] = trace_(sizes);
  }
  // The example with this size, and those that follow it, changed.
  Sizes with(size_t i, int64_t size) const { return with(example_, i, size); }
  Sizes with(Sizes sizes, size_t i, int64_t size) const {
    for (size_t k = 0; k < sizes.size(); ++k)
      if (leader_[k] == i) sizes[k] = size;
    return sizes;
  }
  std::string text(const Sizes& sizes) const {
    std::string all;
    for (size_t i = 0; i < sizes.size(); ++i)
      all += (i ? ", " : "") + named_[i].name + " = " + std::to_string(sizes[i]);
    return all;
  }

  static TraceDifference refusal_of(const TraceOfSizes& trace) {
    return {trace.refusal, {trace.line.file, trace.line.function, trace.line.line}};
  }
  // Why no graph is of the example and of these; nothing: one is.
  std::optional<TraceDifference> unlike(std::vector<Sizes> choices, GraphPointer* found = nullptr) {
    choices.insert(choices.begin(), example_);
    std::vector<std::shared_ptr<const graph::Graph>> traces;
    for (const Sizes& sizes : choices) {
      const TraceOfSizes& trace = at(sizes);
      if (!trace.graph) return said_at(sizes, refusal_of(trace));
      traces.push_back(trace.graph);
      if (found || traces.size() == 1) continue;
      try {
        graph::compare(*traces[0], {}, *trace.graph);
      } catch (const graph::Unlike& other) {
        return said_at(sizes, other.difference);
      }
    }
    if (!found) return {};
    auto made = graph::unify(traces, named_, choices);
    if (auto* why = std::get_if<TraceDifference>(&made)) return std::move(*why);
    *found = std::move(std::get<GraphPointer>(made));
    return {};
  }
  // Why the graph does not do what the function does there.
  std::optional<TraceDifference> wrong_at(const Sizes& sizes) {
    const TraceOfSizes& trace = at(sizes);
    if (!trace.graph) return said_at(sizes, refusal_of(trace));
    auto found = graph::difference(*graph_, graph::all_symbols(*graph_, sizes), *trace.graph);
    return found ? said_at(sizes, std::move(*found)) : found;
  }
  std::optional<TraceDifference> said_at(const Sizes& sizes, TraceDifference difference) const {
    difference.what = "at " + text(sizes) + ": " + difference.what;
    return difference;
  }

  // ---- Which sizes are like the example?

  // Sizes that are another one's as well may be a case of their own: find_equals.
  bool moves(size_t i, int64_t step) {
    std::vector<Sizes> two;
    for (int64_t size = example_[i] + step; two.size() < 2; size += step) {
      if (size < 0) return false;
      Sizes sizes = with(i, size);
      if (!has_new_equals(sizes)) two.push_back(std::move(sizes));
    }
    return !unlike(std::move(two));
  }
  // Are two sizes equal that the example tells apart?
  bool has_new_equals(const Sizes& sizes) const {
    for (size_t i = 0; i < sizes.size(); ++i)
      for (size_t k = i + 1; k < sizes.size(); ++k)
        if (sizes[i] == sizes[k] && example_[i] != example_[k]) return true;
    return false;
  }

  // What to change the size by, so that the function is traced as it was: 1, or what it has to be a multiple of; -1
  // where the example is the largest size. Where none is, another name of the same size may have to change with it.
  void find_step(size_t i) {
    if (leader_[i] != i || moves(i, 1)) return;
    std::vector<int64_t> steps;
    for (int64_t step = 2; step <= kMostStep; ++step) steps.push_back(step);
    steps.push_back(-1);
    if (example_[i] > kMostStep) steps.push_back(example_[i]);
    for (const int64_t step : steps) {
      if (!moves(i, step)) continue;
      step_[i] = step;
      return;
    }
    for (size_t k = i + 1; k < named_.size(); ++k) {
      if (example_[k] != example_[i] || leader_[k] != k) continue;
      leader_[k] = i;
      if (moves(i, 1)) return;
      leader_[k] = k;
    }
    refuse(i, *unlike({with(i, example_[i] + 1), with(i, example_[i] + 2)}));
  }

  [[noreturn]] void refuse(size_t i, const TraceDifference& why) const {
    const std::string at =
        why.where.line == 0 ? "" : " (" + why.where.file + ":" + std::to_string(why.where.line) + ")";
    const char* small =
        example_[i] > 1 ? "" : "; an example of size 0 or 1 is a special case for many ops, so try 2 or more";
    detail::fail(BP_ERROR_SHAPE, known_.at(example_).graph->name, ": the size \"", named_[i].name,
                 "\" cannot be dynamic, the function has to know that it is ", example_[i], ". ", why.what, at,
                 ". Fix: leave it out of `dynamic`, or write the function for any size", small);
  }

  void follow_leaders() {
    for (size_t i = 0; i < named_.size(); ++i) step_[i] = step_[leader_[i]];
  }

  // Sizes that no simple law joins: each name goes its own way.
  Sizes choice(int64_t away, int turn) const {
    Sizes sizes = example_;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto lead = static_cast<int64_t>(leader_[i]);
      const int64_t steps =
          away ? (away + 37 * lead) / std::abs(step_[i]) + 1 : 1 + (turn * (2 * lead + 1) + lead * lead) % 7;
      sizes[i] += steps * (away ? std::abs(step_[i]) : step_[i]);
    }
    return sizes;
  }

  void find_graph() {
    std::vector<Sizes> near;
    for (int turn = 0; turn < kNear; ++turn) near.push_back(choice(0, turn));
    std::erase_if(near, [this](const Sizes& sizes) {
      return *std::min_element(sizes.begin(), sizes.end()) < 0 || has_new_equals(sizes);
    });
    const std::vector<std::vector<int64_t>> farther = {{kMiddle, kFar}, {kMiddle, kMiddle * 4}, {kMiddle}};
    for (const std::vector<int64_t>& more : farther) {
      std::vector<Sizes> all = near;
      for (const int64_t away : more) all.push_back(choice(away, 0));
      all.push_back(with(all.back(), leader_[0], all.back()[leader_[0]] + step_[0]));
      if (!unlike(all, &graph_)) return refine(std::move(all), more.back() == kFar);
    }
    std::vector<Sizes> all = beside(kMostStep);
    all.insert(all.end(), near.begin(), near.end());
    if (!unlike(all, &graph_)) return refine(std::move(all), false);
    const std::optional<TraceDifference> why = unlike(near, &graph_);
    if (why) refuse(0, *why);
    refine(std::move(near), false);
  }

  // Each name takes every size that is up to so many steps away (a power of two), in an order of its own, or one with
  // the same remainder where there is no room.
  std::vector<Sizes> beside(int64_t reach) const {
    std::vector<Sizes> found;
    for (int64_t turn = 0; turn < reach; ++turn)
      for (const int64_t way : {1, -1}) {
        Sizes sizes = example_;
        for (size_t i = 0; i < sizes.size(); ++i) {
          if (leader_[i] != i) continue;
          const int64_t away = way * step_[i] * (1 + turn * (2 * static_cast<int64_t>(i) + 1) % reach);
          int64_t size = example_[i] + away;
          while (size < 0 || has_new_equals(with(sizes, i, size))) size += reach * std::abs(step_[i]);
          sizes = with(sizes, i, size);
        }
        found.push_back(std::move(sizes));
      }
    return found;
  }
  // How far beside the example all remainders of the graph's divisions are seen; 0: it has none.
  int64_t reach(bool is_far) const {
    std::vector<int64_t> periods;
    int64_t most = is_far ? 1 : kMostStep;
    for (const graph::Symbol& symbol : graph_->symbols()) {
      int64_t period = 1;
      for (const graph::DimTerm& term : graph_->sizes.terms(symbol.numerator))
        for (const graph::SymbolId s : term.symbols) period = std::max(period, periods[s]);
      periods.push_back(std::min(kMostReach, period * std::max<int64_t>(symbol.divisor, 1)));
      most = std::max(most, periods.back());
    }
    return most == 1 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(most, kLeastReach))));
  }
  // What the sizes so far leave open, as the number that is added before a division, those beside the example decide.
  // One at which no expression is right stays for `narrow`.
  void refine(std::vector<Sizes> all, bool is_far) {
    for (int64_t seen = 0; seen < reach(is_far);) {
      seen = reach(is_far);
      for (const Sizes& sizes : beside(seen)) {
        const bool is_wrong = wrong_at(sizes).has_value();
        all.push_back(sizes);
        GraphPointer better;
        if (is_wrong && unlike(all, &better)) all.pop_back();
        if (better) graph_ = std::move(better);
      }
    }
  }

  // ---- Its range

  Dim symbol(size_t i) { return graph_->sizes.symbol(static_cast<graph::SymbolId>(i)); }

  void add(Relation relation, Dim left, Dim right, const TraceDifference& why) {
    for (const Constraint& known : graph_->constraints)
      if (known.relation == relation && known.left == left && known.right == right) return;
    uint32_t location = graph::kNone;
    if (why.where.line != 0) location = graph_->add_location(why.where);
    std::string reason = why.what.substr(0, why.what.find('\n'));
    if (reason.size() > 300) reason = reason.substr(0, 297) + "...";
    graph_->constraints.push_back({relation, left, right, location, std::move(reason)});
  }

  // In place of a wider limit, where there is one.
  void limit(size_t i, bool is_highest, int64_t end, const TraceDifference& why) {
    const Dim size = symbol(i);
    std::erase_if(graph_->constraints, [&](const Constraint& known) {
      return known.relation == Relation::kLessEqual && (is_highest ? known.left : known.right) == size &&
             (is_highest ? known.right : known.left).is_number();
    });
    add(Relation::kLessEqual, is_highest ? size : end, is_highest ? end : size, why);
    (is_highest ? highest_ : lowest_)[i] = end;
    if (lowest_[i] == highest_[i]) refuse(i, why);
  }

  // The last size that is right on the way from one that is to one that is not, the others as in `at`, and why the next
  // one is not.
  std::pair<int64_t, TraceDifference> edge(const Sizes& at, size_t i, int64_t right, int64_t wrong) {
    const int64_t step = std::abs(step_[i]);
    TraceDifference why = *wrong_at(with(at, i, wrong));
    while (std::abs(wrong - right) > step) {
      const int64_t middle = right + (wrong - right) / step / 2 * step;
      if (auto found = wrong_at(with(at, i, middle))) {
        wrong = middle;
        why = std::move(*found);
      } else {
        right = middle;
      }
    }
    return {right, std::move(why)};
  }

  void find_range(size_t i) {
    const int64_t step = std::abs(step_[i]), rest = example_[i] % step;
    for (size_t k = i + 1; k < named_.size(); ++k)
      if (leader_[k] == i) add_equal(i, k);
    if (step > 1) {
      const Sizes next = with(i, example_[i] + 1);
      const auto why = unlike({next});
      add(Relation::kDivisible, graph_->sizes.add(symbol(i), rest, -1), step,
          why ? *why : TraceDifference{"what lies between was not traced", {}});
    }
    const int64_t far = example_[i] + (kFar / step + 1) * step;
    lowest_[i] = rest;
    highest_[i] = far;
    find_lowest(i, rest, step);
    if (!wrong_at(with(i, far))) return;
    const auto [highest, why] = edge(example_, i, example_[i], far);
    if (!is_other(i, highest, true, why)) limit(i, true, highest, why);
  }

  void find_lowest(size_t i, int64_t least, int64_t step) {
    const int64_t known = example_[i];
    if (known <= least) return;
    if (!wrong_at(with(i, least))) {
      const int64_t next = least + step;
      const auto why = next < known ? wrong_at(with(i, next)) : std::nullopt;
      if (why) add(Relation::kNotEqual, symbol(i), next, *why);
      return;
    }
    const auto [lowest, why] = edge(example_, i, known, least);
    if (!is_other(i, lowest, false, why)) limit(i, false, lowest, why);
  }

  // Does the end of a range move with another size, by as much?
  bool is_other(size_t i, int64_t end, bool is_highest, const TraceDifference& why) {
    for (size_t k = 0; k < named_.size(); ++k) {
      if (leader_[k] == i) continue;
      const size_t other = leader_[k];
      const int64_t step = std::abs(step_[i]), moved = 5 * step * std::abs(step_[other]);
      const Sizes within = with(with(i, end + moved), other, example_[k] + moved);
      const Sizes beyond = with(within, i, within[i] + (is_highest ? 2 : -2) * step);
      if (wrong_at(within) || !wrong_at(beyond)) continue;
      const int64_t apart = is_highest ? example_[k] - end : end - example_[k];
      const auto plus = [&](size_t s, int64_t number) { return graph_->sizes.add(symbol(s), std::max<int64_t>(number, 0)); };
      add(Relation::kLessEqual, plus(is_highest ? i : k, apart), plus(is_highest ? k : i, -apart), why);
      return true;
    }
    return false;
  }

  // ---- Is it right within its range?

  bool is_allowed(const Sizes& sizes) const {
    for (size_t i = 0; i < sizes.size(); ++i)
      if (leader_[i] == i && (sizes[i] < lowest_[i] || sizes[i] > highest_[i])) return false;
    if (has_new_equals(sizes)) return false;
    try {
      graph_->check(graph::all_symbols(*graph_, sizes));
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // The ends of all ranges, each with each; some between them, more of them small than large; all of a short range. Of
  // these, also some at which all names have moved by about as much, as a constraint may have it.
  std::vector<Sizes> probes() const {
    std::vector<Sizes> found;
    std::minstd_rand random;
    const auto below = [&](int64_t end) { return static_cast<int64_t>(random()) % end; };
    const auto fill = [&](auto size_of) {
      Sizes sizes = example_;
      for (size_t i = 0; i < sizes.size(); ++i)
        if (leader_[i] == i) sizes = with(sizes, i, size_of(i));
      found.push_back(std::move(sizes));
    };
    const auto anywhere = [&](size_t i) {
      const int64_t most = steps(i) >> below(17);
      return lowest_[i] + (most - below(most / 2 + 1)) * std::abs(step_[i]);
    };
    const auto probe = [&](size_t i, int64_t size) {
      fill([&](size_t k) { return k == i ? size : anywhere(k); });
      fill([&](size_t k) {
        const int64_t away = (size - example_[i] + below(5) - 2) / step_[k] * step_[k];
        return k == i ? size : std::clamp(example_[k] + away, lowest_[k], highest_[k]);
      });
    };
    const size_t ends = std::min<size_t>(named_.size(), 4);
    for (size_t turn = 0; turn < size_t{1} << ends; ++turn)
      fill([&](size_t i) { return turn >> i % ends & 1 ? highest_[i] : lowest_[i]; });
    for (size_t i = 0; i < named_.size(); ++i) {
      if (leader_[i] != i) continue;
      for (int turn = 0; turn < (reach(true) ? 3 : 1) * kProbes; ++turn) probe(i, anywhere(i));
      for (int64_t step = 0; steps(i) <= kShort && step <= steps(i); ++step)
        probe(i, lowest_[i] + step * std::abs(step_[i]));
    }
    return found;
  }
  int64_t steps(size_t i) const { return (highest_[i] - lowest_[i]) / std::abs(step_[i]); }

  // Narrower limits, until the graph is right at all sizes that were tried within them.
  void narrow() {
    for (int turn = 0;; ++turn) {
      std::vector<Sizes> tried = probes();
      for (const auto& known : known_) tried.push_back(known.first);
      std::erase_if(tried, [&](const Sizes& sizes) { return !is_allowed(sizes) || !wrong_at(sizes); });
      if (tried.empty()) return;
      if (turn == kMostNarrowed) refuse(0, *wrong_at(tried[0]));
      const auto away = [&](const Sizes& sizes) {
        int64_t sum = 0;
        for (size_t i = 0; i < sizes.size(); ++i) sum += std::abs(sizes[i] - example_[i]);
        return sum;
      };
      exclude(*std::min_element(tried.begin(), tried.end(),
                                [&](const Sizes& a, const Sizes& b) { return away(a) < away(b); }));
    }
  }

  // One name after the other takes these sizes, until the graph is wrong: there that name's range ends.
  void exclude(const Sizes& wrong) {
    Sizes right = example_;
    while (true) {
      std::optional<size_t> next;
      for (size_t i = 0; i < wrong.size(); ++i) {
        if (leader_[i] != i || right[i] == wrong[i]) continue;
        if (!next || (!is_allowed(with(right, *next, wrong[*next])) && is_allowed(with(right, i, wrong[i])))) next = i;
      }
      const Sizes tried = with(right, *next, wrong[*next]);
      if (!wrong_at(tried)) {
        right = tried;
        continue;
      }
      const auto [end, why] = edge(right, *next, right[*next], wrong[*next]);
      return limit(*next, wrong[*next] > example_[*next], end, why);
    }
  }

  // Two sizes that the example tells apart are equal: is that a case of its own?
  void find_equals() {
    for (size_t i = 0; i < named_.size(); ++i)
      for (size_t k = i + 1; k < named_.size(); ++k) {
        if (leader_[i] != i || leader_[k] != k || example_[i] == example_[k]) continue;
        const std::optional<int64_t> size = common_size(i, k);
        if (!size) continue;
        if (auto why = wrong_at(with(with(i, *size), k, *size))) add(Relation::kNotEqual, symbol(i), symbol(k), *why);
      }
  }
  // A size that both may have, by their steps.
  std::optional<int64_t> common_size(size_t i, size_t k) const {
    const int64_t step = std::abs(step_[i]), other = std::abs(step_[k]);
    const int64_t from = std::max(example_[i], example_[k]);
    for (int64_t size = from; size <= from + step * other; ++size)
      if ((size - example_[i]) % step == 0 && (size - example_[k]) % other == 0) return size;
    return {};
  }

  void add_equal(size_t i, size_t k) {
    Sizes apart = example_;
    ++apart[k];
    const auto why = unlike({apart});
    add(Relation::kEqual, symbol(k), symbol(i), why ? *why : TraceDifference{"they were traced together", {}});
  }

  std::span<const NamedSize> named_;
  const Sizes example_;
  const TraceAtSizes& trace_;
  Sizes step_;                  // per name
  Sizes lowest_, highest_;      // per name: where the graph was found to be right
  std::vector<size_t> leader_;  // per name: the first of those that change together
  std::map<Sizes, TraceOfSizes> known_;
  GraphPointer graph_;
};

}  // namespace

GraphPointer trace_dynamic(std::shared_ptr<const graph::Graph> first, std::span<const NamedSize> named,
                           const std::vector<int64_t>& example, const TraceAtSizes& trace) {
  return Search(std::move(first), named, example, trace).run();
}

}  // namespace backplane::core
