#include "trace/size_ranges.hpp"

#include <algorithm>
#include <random>

#include "graph/size_expressions.hpp"
#include "levels/level.hpp"

namespace backplane::core {
namespace {

using graph::Constraint;

constexpr int kProbes = 4;       // for each name, anywhere within the limits
constexpr int kNearProbes = 24;  // and beside the example, where sizes far from it are another case
constexpr int64_t kBeside = 4;
constexpr int64_t kShort = 64;  // steps of a range that is tried as a whole
constexpr int kMostNarrowed = 30;

graph::Location location_of(const SizeUse& use) { return {use.line.file, use.line.function, use.line.line}; }

}  // namespace

void SizeRanges::find_ranges() {
  lowest_.resize(named_.size());
  highest_.resize(named_.size());
  for (size_t i = 0; i < named_.size(); ++i)
    if (leader_[i] == i) find_range(i);
  find_equals();
  narrow();
  if (is_near_) check_quotients();
}

void SizeRanges::check_quotients() {
  for (const SizeUse& use : known_.at(example_).uses)
    if (use.kind == SizeUse::Kind::kOther) return;  // of which `relate_uses` tells
  for (const graph::Symbol& symbol : graph_->symbols()) {
    if (symbol.divisor <= 1) continue;
    for (const graph::DimTerm& term : graph_->sizes.terms(symbol.numerator))
      for (const graph::SymbolId s : term.symbols) {
        if (s >= named_.size() || steps(s) >= 2 * symbol.divisor) continue;
        const int64_t step = std::abs(step_[s]);
        auto why = wrong_at(with(s, highest_[s] + step));
        if (!why && lowest_[s] >= step) why = wrong_at(with(s, lowest_[s] - step));
        if (why) refuse(s, *why);
      }
  }
}

void SizeRanges::add(Relation relation, Dim left, Dim right, const TraceDifference& why) {
  for (const Constraint& known : graph_->constraints)
    if (known.relation == relation && known.left == left && known.right == right) return;
  uint32_t location = graph::kNone;
  if (why.where.line != 0) location = graph_->add_location(why.where);
  std::string reason = why.what.substr(0, why.what.find('\n'));
  if (reason.size() > 300) reason = reason.substr(0, 297) + "...";
  graph_->constraints.push_back({relation, left, right, location, std::move(reason)});
}

void SizeRanges::limit(size_t i, bool is_highest, int64_t end, const TraceDifference& why) {
  const Dim size = symbol(i);
  std::erase_if(graph_->constraints, [&](const Constraint& known) {
    return known.relation == Relation::kLessEqual && (is_highest ? known.left : known.right) == size &&
           (is_highest ? known.right : known.left).is_number();
  });
  add(Relation::kLessEqual, is_highest ? size : end, is_highest ? end : size, why);
  (is_highest ? highest_ : lowest_)[i] = end;
  if (lowest_[i] == highest_[i]) refuse(i, why);
}

std::pair<int64_t, TraceDifference> SizeRanges::edge(const Sizes& at, size_t i, int64_t right, int64_t wrong) {
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

void SizeRanges::find_range(size_t i) {
  const int64_t step = std::abs(step_[i]), rest = example_[i] % step;
  for (size_t k = i + 1; k < named_.size(); ++k)
    if (leader_[k] == i) add_equal(i, k);
  if (step > 1) {
    const Sizes next = with(i, example_[i] + 1);
    const auto why = unlike({next});
    add(Relation::kDivisible, graph_->sizes.add(symbol(i), rest, -1), step,
        why ? *why : TraceDifference{"the sizes between were not traced", {}});
  }
  const int64_t far = example_[i] + (kFar / step + 1) * step;
  lowest_[i] = rest;
  highest_[i] = far;
  find_lowest(i, rest, step);
  if (!wrong_at(with(i, far))) return;
  const auto [highest, why] = edge(example_, i, example_[i], far);
  if (!is_other(i, highest, true, why)) limit(i, true, highest, why);
}

void SizeRanges::find_lowest(size_t i, int64_t least, int64_t step) {
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

bool SizeRanges::is_other(size_t i, int64_t end, bool is_highest, const TraceDifference& why) {
  for (size_t k = 0; k < named_.size(); ++k) {
    if (leader_[k] == i) continue;
    const size_t other = leader_[k];
    const int64_t step = std::abs(step_[i]);
    bool moves_along = true;
    for (const int64_t steps : {5, 12}) {
      const int64_t moved = steps * step * std::abs(step_[other]);
      const Sizes within = with(with(i, end + moved), other, example_[k] + moved);
      const Sizes beyond = with(within, i, within[i] + (is_highest ? 2 : -2) * step);
      moves_along = moves_along && !wrong_at(within) && wrong_at(beyond);
    }
    if (!moves_along) continue;
    const int64_t apart = is_highest ? example_[k] - end : end - example_[k];
    const auto plus = [&](size_t s, int64_t number) {
      return graph_->sizes.add(symbol(s), std::max<int64_t>(number, 0));
    };
    add(Relation::kLessEqual, plus(is_highest ? i : k, apart), plus(is_highest ? k : i, -apart), why);
    return true;
  }
  return false;
}

// ---- Is it right within its range?

bool SizeRanges::is_allowed(const Sizes& sizes) const {
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

std::vector<Sizes> SizeRanges::probes() const {
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
    for (int turn = 0; turn < (is_far_ ? 1 : 3) * kProbes; ++turn) probe(i, anywhere(i));
    for (int64_t step = 0; steps(i) <= kShort && step <= steps(i); ++step)
      probe(i, lowest_[i] + step * std::abs(step_[i]));
  }
  for (int turn = 0; turn < (is_far_ ? 0 : kNearProbes); ++turn)
    fill([&](size_t i) {
      return std::clamp(example_[i] + (below(2 * kBeside + 1) - kBeside) * step_[i], lowest_[i], highest_[i]);
    });
  return found;
}

void SizeRanges::narrow() {
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

void SizeRanges::exclude(const Sizes& wrong) {
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

void SizeRanges::find_equals() {
  for (size_t i = 0; i < named_.size(); ++i)
    for (size_t k = i + 1; k < named_.size(); ++k) {
      if (leader_[i] != i || leader_[k] != k || example_[i] == example_[k]) continue;
      const std::optional<int64_t> size = common_size(i, k);
      if (!size) continue;
      if (auto why = wrong_at(with(with(i, *size), k, *size))) add(Relation::kNotEqual, symbol(i), symbol(k), *why);
    }
}

// ---- What the function's own code made of sizes

void SizeRanges::relate_uses(SizeNotes* notes) {
  const std::vector<SizeUse>& uses = known_.at(example_).uses;
  if (uses.empty()) return;
  std::vector<Sizes> tried{example_};
  for (const auto& known : known_)
    if (known.first != example_) tried.push_back(known.first);
  std::erase_if(tried, [&](const Sizes& sizes) { return !is_allowed(sizes) || wrong_at(sizes); });
  std::vector<std::vector<int64_t>> choices;
  std::vector<std::span<const SizeUse>> runs;
  for (const Sizes& sizes : tried) {
    choices.push_back(graph::all_symbols(*graph_, sizes));
    runs.emplace_back(known_.at(sizes).uses);
  }
  graph::SizeFit fit(*graph_, choices);
  const graph::SizeExpressions expressions(*graph_, fit, runs);
  std::vector<bool> is_operand(uses.size());
  for (const SizeUse& use : uses)
    for (const SizeUse::Operand& operand : {use.left, use.right})
      if (operand.use != SizeUse::Operand::kNone) is_operand[operand.use] = true;
  for (size_t i = 0; i < uses.size(); ++i) {
    const SizeUse& use = uses[i];
    const std::optional<Dim> own = expressions.of(i);
    notes->expressions.push_back(own ? std::optional(own->code()) : std::nullopt);
    if (use.kind == SizeUse::Kind::kFloat) continue;
    const std::optional<Dim> left = expressions.of(use.left), right = expressions.of(use.right);
    if (use.is_comparison() && left && right) {
      relate(use, *left, *right);
    } else if (own) {
      // A number that is the same at all sizes so far may stand in the graph as it is.
      const auto has_value = [&](const auto& run) { return run[i].value == use.value; };
      if (!own->is_number() && !is_operand[i] && std::all_of(runs.begin(), runs.end(), has_value))
        add(Relation::kEqual, *own, use.value, {"the function computes this of a size", location_of(use)});
    } else if (notes->unknown.empty() &&
               !(expressions.is_steady(use.left) && expressions.is_steady(use.right) && expressions.is_steady(i))) {
      notes->unknown = (use.what.empty() ? "computes something of a size" : use.what) + " (" + use.line.file + ":" +
                       std::to_string(use.line.line) + ")";
    }
  }
}

void SizeRanges::relate(const SizeUse& use, Dim left, Dim right) {
  if (left.is_number() && right.is_number()) return;
  const TraceDifference why{"the function compares sizes", location_of(use)};
  using Kind = SizeUse::Kind;
  if (use.kind == Kind::kEqual) return add(use.value ? Relation::kEqual : Relation::kNotEqual, left, right, why);
  Dim least = use.value ? left : right, most = use.value ? right : left;
  if ((use.kind == Kind::kLess) == (use.value != 0)) {  // strictly
    if (most.is_number())
      most = most.number() - 1;
    else
      least = graph_->sizes.add(least, 1);
  }
  add(Relation::kLessEqual, least, most, why);
}

std::optional<int64_t> SizeRanges::common_size(size_t i, size_t k) const {
  const int64_t step = std::abs(step_[i]), other = std::abs(step_[k]);
  const int64_t from = std::max(example_[i], example_[k]);
  for (int64_t size = from; size <= from + step * other; ++size)
    if ((size - example_[i]) % step == 0 && (size - example_[k]) % other == 0) return size;
  return {};
}

void SizeRanges::add_equal(size_t i, size_t k) {
  Sizes apart = example_;
  ++apart[k];
  const auto why = unlike({apart});
  add(Relation::kEqual, symbol(k), symbol(i), why ? *why : TraceDifference{"they were traced together", {}});
}

}  // namespace backplane::core
