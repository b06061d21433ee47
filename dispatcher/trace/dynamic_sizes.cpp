#include "trace/dynamic_sizes.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <variant>

#include "backplane/device.hpp"
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
constexpr int64_t kMostStep = 16;  // of sizes that have to be multiples

class Search {
 public:
  Search(std::shared_ptr<const graph::Graph> first, std::span<const NamedSize> named, Sizes example,
         const TraceAtSizes& trace)
      : named_(named), example_(std::move(example)), trace_(trace), step_(named.size(), 1), leader_(named.size()) {
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
    const std::vector<std::vector<int64_t>> farther = {{kMiddle, kFar}, {kMiddle, kMiddle * 4}, {kMiddle}, {}};
    for (const std::vector<int64_t>& more : farther) {
      std::vector<Sizes> all = near;
      for (const int64_t away : more) all.push_back(choice(away, 0));
      if (!more.empty()) all.push_back(with(all.back(), leader_[0], all.back()[leader_[0]] + step_[0]));
      if (!unlike(all, &graph_)) return;
    }
    const std::optional<TraceDifference> why = unlike(near, &graph_);
    if (why) refuse(0, *why);
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

  // The last size that is right on the way from one that is to one that is not, and why the next one is not.
  std::pair<int64_t, TraceDifference> edge(size_t i, int64_t right, int64_t wrong) {
    const int64_t step = std::abs(step_[i]);
    TraceDifference why = *wrong_at(with(i, wrong));
    while (std::abs(wrong - right) > step) {
      const int64_t middle = right + (wrong - right) / step / 2 * step;
      if (auto found = wrong_at(with(i, middle))) {
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
    find_lowest(i, rest, step);
    const int64_t far = example_[i] + (kFar / step + 1) * step;
    if (!wrong_at(with(i, far))) return;
    const auto [highest, why] = edge(i, example_[i], far);
    if (!is_other(i, highest, Relation::kLessEqual, why)) add(Relation::kLessEqual, symbol(i), highest, why);
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
    const auto [lowest, why] = edge(i, known, least);
    if (!is_other(i, lowest, Relation::kLess, why)) add(Relation::kLessEqual, lowest, symbol(i), why);
  }

  // Is the end of a range the example of another size, which it goes with?
  bool is_other(size_t i, int64_t end, Relation relation, const TraceDifference& why) {
    for (size_t k = 0; k < named_.size(); ++k) {
      if (leader_[k] == i || example_[k] != end) continue;
      const size_t other = leader_[k];
      const int64_t moved = end + 5 * std::abs(step_[i]) * std::abs(step_[other]);
      if (wrong_at(with(with(i, moved), other, moved))) continue;
      const bool below = relation == Relation::kLessEqual;
      add(Relation::kLessEqual, symbol(below ? i : k), symbol(below ? k : i), why);
      return true;
    }
    return false;
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

namespace backplane {

using namespace core;

namespace {

// A name that the text of a graph can hold.
void check_name(const std::string& name) {
  constexpr const char* kTaken[] = {"none", "true",   "false",   "inf",       "nan",   "draw",   "graph",
                                    "axis", "floats", "bools",   "values",    "float", "beyond", "complex",
                                    "of",   "device", "example", "divisible", "by"};
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
              std::all_of(name.begin(), name.end(), fits) &&
              std::find(std::begin(kTaken), std::end(kTaken), name) == std::end(kTaken);
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d) good = good && name != dtype_name(d);
  BP_CHECK(good, VALUE, "dynamic: found the name \"", name,
           "\" of a size; expected letters, digits and underscores, and no word of a graph's text, as \"batch\"");
}

}  // namespace

Graph with_dynamic_sizes(const Graph& traced, std::span<const DynamicSize> dynamic, const TraceAt& trace,
                         GraphOptions options) {
  const graph::Graph& first = *traced.get();
  std::vector<graph::NamedSize> named;
  std::vector<int64_t> example;
  for (const DynamicSize& size : dynamic) {
    check_name(size.name);
    BP_CHECK(!size.places.empty(), VALUE, "dynamic: the size \"", size.name, "\" is that of no tensor");
    for (const graph::NamedSize& other : named)
      BP_CHECK(other.name != size.name, VALUE, "dynamic: there are two sizes \"", size.name, "\"");
    graph::NamedSize& made = named.emplace_back();
    made.name = size.name;
    for (const auto& [input, axis] : size.places) {
      BP_CHECK(input < first.inputs().size() && axis < first.dims(first.inputs()[input].value).size(), INDEX,
               "dynamic: the size \"", size.name, "\" is said to be that of input ", input, " at axis ", axis,
               ", which there is not");
      const int64_t here = first.dims(first.inputs()[input].value)[axis].number();
      if (made.places.empty()) example.push_back(here);
      BP_CHECK(here == example.back(), SHAPE, "dynamic: the size \"", size.name, "\" is ", example.back(), " in ",
               first.inputs()[made.places.empty() ? input : made.places[0].input].name, ", and ", here, " in ",
               first.inputs()[input].name, " at axis ", axis);
      made.places.push_back({input, axis});
    }
  }
  const TraceAtSizes at = [&](const std::vector<int64_t>& sizes) {
    TracedAt found = trace(sizes);
    return TraceOfSizes{found.graph ? found.graph.get() : nullptr, std::move(found.refusal), std::move(found.line)};
  };
  return Graph(trace_dynamic(traced.get(), named, example, at), std::move(options));
}

Graph make_graph(const Function& function, std::span<const Tensor> examples, std::span<const DynamicSize> dynamic) {
  check_function(function, "make_graph");
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& t : examples) shapes.emplace_back(t.shape().begin(), t.shape().end());
  const auto trace = [&] {
    TraceScope scope("make_graph");
    std::vector<Tensor> entered;
    for (size_t i = 0; i < examples.size(); ++i)
      entered.push_back(scope.enter(examples[i], "x" + std::to_string(i), Shape(shapes[i])));
    return scope.leave(function(entered));
  };
  const Graph first = trace();
  if (dynamic.empty()) return first;
  return with_dynamic_sizes(first, dynamic, [&](std::span<const int64_t> sizes) {
    for (size_t s = 0; s < dynamic.size(); ++s)
      for (const auto& [input, axis] : dynamic[s].places) shapes[input][axis] = sizes[s];
    try {
      return TracedAt{trace(), "", {}};
    } catch (const Error& error) {
      return TracedAt{{}, error.what(), {}};
    }
  });
}

}  // namespace backplane
