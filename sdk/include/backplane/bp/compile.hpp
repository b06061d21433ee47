// compile(f): a function that traces f to a graph for each kind of arguments, and runs the graph.
//
// Tensors that f uses from outside are read by reference: a change in place is seen, as is Module::to, train and load.
// A variable that f captures by reference and that is assigned another tensor later is not. Not for several threads at
// once.
#pragma once

#include <atomic>
#include <memory>

#include "backplane/bp/transforms.hpp"
#include "backplane/graph.hpp"

namespace bp {

namespace detail {

// Moves on whenever a module is given other tensors or another mode: compiled functions may have captured it.
inline std::atomic<uint64_t>& module_changes() noexcept {
  static std::atomic<uint64_t> changes{0};
  return changes;
}

struct LeafKind {
  std::vector<int64_t> shape;
  bp_dtype dtype;
  bp_device device;
  explicit LeafKind(const backplane::Tensor& x)
      : shape(x.shape().begin(), x.shape().end()), dtype(x.dtype()), device(x.device()) {}
  bool matches(const backplane::Tensor& x) const {
    return dtype == x.dtype() && device.backend == x.device().backend && device.ordinal == x.device().ordinal &&
           std::equal(shape.begin(), shape.end(), x.shape().begin(), x.shape().end());
  }
};

// The arguments without their tensors, whose values a trace has fixed.
template <class T>
T without_leaves(const T& value) {
  return with_leaves(value, PlainTensors(leaves_of(value).size()));
}
template <class T>
bool same_constants(const T& a, const T& b) {
  if constexpr (std::is_base_of_v<Tensor, T> || std::is_same_v<T, backplane::Tensor>)
    return true;
  else if constexpr (requires {
                       a.size();
                       a.begin();
                     } &&
                     !std::is_convertible_v<T, std::string>) {
    if (a.size() != b.size()) return false;
    auto other = b.begin();
    for (const auto& value : a)
      if (!same_constants(value, *other++)) return false;
    return true;
  } else if constexpr (requires {
                         a.first;
                         a.second;
                       })
    return same_constants(a.first, b.first) && same_constants(a.second, b.second);
  else {
    static_assert(std::equality_comparable<T>, "compile: an argument that is not a tensor has to have operator==");
    return a == b;
  }
}

template <class Result, class Args>
struct Trace {
  std::vector<LeafKind> kinds;
  Args constants;
  bool records;
  uint64_t changes;
  std::vector<backplane::TensorRead> reads;
  backplane::TransformableGraph transformable;
  backplane::Graph graph;
  bool differentiable;
  Result skeleton;

  bool serves(const PlainTensors& leaves, const Args& args) const {
    if (changes != module_changes() || records != backplane::grad_enabled() || leaves.size() != kinds.size())
      return false;
    for (size_t i = 0; i < leaves.size(); ++i)
      if (!kinds[i].matches(leaves[i])) return false;
    for (const backplane::TensorRead& read : reads)
      if (backplane::version_of(read.tensor) != read.version) return false;
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return (same_constants(std::get<I>(args), std::get<I>(constants)) && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Args>>());
  }

  Result run(const PlainTensors& leaves, size_t generators) const {
    const std::vector<Generator*> drawn(generators, &default_generator());
    return with_leaves(skeleton, differentiable ? transformable.call(leaves, drawn) : graph.call(leaves, drawn));
  }
};

}  // namespace detail

template <class F>
class Compiled {
 public:
  explicit Compiled(F f) : f_(std::move(f)) {}

  template <class... A>
  auto operator()(const A&... args) {
    using Args = std::tuple<detail::Kept<A>...>;
    using Result = detail::Kept<decltype(f_(std::declval<detail::Kept<A>&>()...))>;
    static_assert(!std::is_void_v<Result>, "compile: the function has to return its results");
    using Entry = detail::Trace<Result, Args>;
    const Args all(args...);
    const detail::PlainTensors leaves = detail::leaves_of(all);
    auto& entries = entries_of<Entry>();
    for (const std::unique_ptr<Entry>& entry : entries)
      if (entry->serves(leaves, all)) return entry->run(leaves, entry->graph.generators().size());
    std::erase_if(entries, [](const auto& entry) { return entry->changes != detail::module_changes(); });
    if (entries.size() >= kMostTraces) entries.erase(entries.begin());
    entries.push_back(std::make_unique<Entry>(traced<Result>(all, leaves)));
    return entries.back()->run(leaves, entries.back()->graph.generators().size());
  }

  size_t traces() const noexcept { return traces_; }  // so far

 private:
  static constexpr size_t kMostTraces = 64;

  template <class Entry>
  std::vector<std::unique_ptr<Entry>>& entries_of() {
    using Entries = std::vector<std::unique_ptr<Entry>>;
    static const char kKind = 0;
    std::shared_ptr<void>& found = kinds_[&kKind];
    if (!found) found = std::make_shared<Entries>();
    return *static_cast<Entries*>(found.get());
  }

  template <class Result, class Args>
  detail::Trace<Result, Args> traced(const Args& args, const detail::PlainTensors& leaves) {
    std::vector<detail::LeafKind> kinds(leaves.begin(), leaves.end());
    const uint64_t changes = detail::module_changes();
    backplane::TraceScope scope("compile");
    detail::PlainTensors entered;
    for (size_t i = 0; i < leaves.size(); ++i) entered.push_back(scope.enter(leaves[i], "x" + std::to_string(i)));
    Args inside = detail::with_leaves(args, entered);
    Result result = std::apply(f_, inside);
    for (const Generator* generator : scope.generators())
      BP_CHECK(generator == &default_generator(), NOT_IMPLEMENTED,
               "compile: the function draws random numbers from a generator of its own, expected the default one. "
               "Fix: draw outside of the function, or leave the generator out");
    BP_CHECK(changes == detail::module_changes(), NOT_IMPLEMENTED,
             "compile: the function changes the mode, the device or the dtype of a module. Fix: do so outside of it");
    std::vector<backplane::TensorRead> reads = scope.reads();
    backplane::Graph graph = scope.leave(detail::leaves_of(result), {});
    ++traces_;
    return {std::move(kinds),
            detail::without_leaves(args),
            backplane::grad_enabled(),
            changes,
            std::move(reads),
            backplane::TransformableGraph(graph),
            graph,
            backplane::TransformableGraph::refusal(graph).empty(),
            detail::without_leaves(result)};
  }

  F f_;
  std::map<const void*, std::shared_ptr<void>> kinds_;  // traces by the types of arguments
  size_t traces_ = 0;
};

// Tensors among the arguments are inputs of the graph; other arguments are constants of it, and another value of one is
// another trace, as is another shape, dtype or device.
template <class F>
Compiled<F> compile(F f) {
  return Compiled<F>(std::move(f));
}

// Writes f as a graph, for inputs like `examples`, into a file that Model::load and Python's bp.load read.
template <class F>
void export_model(F f, const std::vector<Tensor>& examples, const std::string& path) {
  const auto function = [&f](std::span<const backplane::Tensor> inputs) {
    return detail::leaves_of(detail::call_with_list(f, std::vector<Tensor>(inputs.begin(), inputs.end())));
  };
  backplane::save_graph(backplane::make_graph(function, detail::plain(examples)), path);
}

}  // namespace bp
