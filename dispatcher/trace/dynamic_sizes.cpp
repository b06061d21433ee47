#include "trace/dynamic_sizes.hpp"

#include <algorithm>
#include <bit>

#include "trace/size_ranges.hpp"

namespace backplane::core {
namespace {

using graph::NamedSize;

constexpr int kNear = 3;                             // traces beside the example
constexpr int64_t kMiddle = 260;                     // and sizes away from it, different for each name
constexpr int64_t kMostStep = 16;                    // of sizes that have to be multiples
constexpr int64_t kLeastReach = 8, kMostReach = 64;  // beside the example, for the remainders of divisions

class Search : SizeRanges {
 public:
  Search(std::shared_ptr<const graph::Graph> first, std::span<const NamedSize> named, Sizes example,
         const TraceAtSizes& trace, const SizeNotes& notes)
      : SizeRanges(std::move(first), named, std::move(example), trace, notes) {}

  GraphPointer run(SizeNotes* notes) {
    for (size_t i = 0; i < named_.size(); ++i) find_step(i);
    follow_leaders();
    find_graph();
    find_ranges();
    relate_uses(notes);
    return std::move(graph_);
  }

 private:
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
  // The step of the size with which the trace stays the same: 1, or the number that must divide it; -1
  // if the example is the largest size. If no step works, another name of the same size may have to change with it.
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
      if (unlike(all, &graph_)) continue;
      is_far_ = more.back() == kFar;
      return refine(std::move(all));
    }
    std::vector<Sizes> all = beside(kMostStep);
    all.insert(all.end(), near.begin(), near.end());
    if (!unlike(all, &graph_)) return refine(std::move(all));
    const std::optional<TraceDifference> why = unlike(near, &graph_);
    if (why) refuse(0, *why);
    is_near_ = true;
    refine(std::move(near));
  }

  // Each name takes every size that is up to so many steps away (a power of two), in an order of its own, or one with
  // the same remainder if there is no space.
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
  int64_t reach() const {
    std::vector<int64_t> periods;
    int64_t most = is_far_ ? 1 : kMostStep;
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
  void refine(std::vector<Sizes> all) {
    for (int64_t seen = 0; seen < reach();) {
      seen = reach();
      for (const Sizes& sizes : beside(seen)) {
        const bool is_wrong = wrong_at(sizes).has_value();
        all.push_back(sizes);
        GraphPointer better;
        if (is_wrong && unlike(all, &better)) all.pop_back();
        if (better) graph_ = std::move(better);
      }
    }
  }
};

}  // namespace

GraphPointer trace_dynamic(std::shared_ptr<const graph::Graph> first, std::span<const NamedSize> named,
                           const std::vector<int64_t>& example, const TraceAtSizes& trace, SizeNotes* notes) {
  return Search(std::move(first), named, example, trace, *notes).run(notes);
}

}  // namespace backplane::core
