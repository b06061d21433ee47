#include "graph/compare_traces.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>

#include "backplane/device.hpp"
#include "graph/sizes.hpp"
#include "record/plain_value.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core::graph {
namespace {

// Two graphs, from their inputs to their outputs. Without symbols, integers and floating numbers may differ.
class Comparison {
 public:
  Comparison(const Graph& graph, std::optional<std::span<const int64_t>> symbols, const Graph& trace)
      : graph_(graph), symbols_(symbols), trace_(trace) {}
  void run();

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    Location where;
    if (location_ != kNone) where = trace_.locations()[location_];
    std::ostringstream what;
    (what << ... << parts);
    throw Unlike{{what.str(), std::move(where)}};
  }
  void numbers(const std::string& of, std::span<const Dim> expected, std::span<const int64_t> found) const;
  void type(const std::string& of, ValueId value) const;
  void constants() const;
  void draws() const;
  void node(NodeId id);
  void argument(const std::string& of, const Argument& a, const Argument& b) const;
  void plain(const std::string& of, const Argument& a, const bp_value& b) const;

  const Graph& graph_;
  std::optional<std::span<const int64_t>> symbols_;
  const Graph& trace_;
  uint32_t location_ = kNone;
};

void Comparison::numbers(const std::string& of, std::span<const Dim> expected, std::span<const int64_t> found) const {
  if (expected.size() != found.size()) fail(of, " has ", found.size(), " numbers, expected ", expected.size());
  for (size_t i = 0; symbols_ && i < found.size(); ++i) {
    const int64_t wanted = graph_.sizes.evaluate(expected[i], *symbols_);
    if (wanted == found[i]) continue;
    fail(of, " is ", found[i], ", expected ", graph_.text(expected[i]), " = ", wanted);
  }
}

std::vector<int64_t> numbers_of(std::span<const Dim> dims) {
  std::vector<int64_t> found;
  for (const Dim dim : dims) found.push_back(dim.number());
  return found;
}

void Comparison::type(const std::string& of, ValueId value) const {
  const Value &a = graph_.value(value), &b = trace_.value(value);
  const bool same = a.kind == b.kind && a.dtype == b.dtype && a.device.backend == b.device.backend &&
                    a.device.ordinal == b.device.ordinal && a.ndim == b.ndim;
  if (!same) fail(of, " is another kind of tensor");
  numbers("a size of " + of, graph_.dims(value), numbers_of(trace_.dims(value)));
}

// A function may make the same constant of numbers at every run.
bool same_tensor(const Tensor& a, const Tensor& b) {
  const bp_tensor &x = *a.get(), &y = *b.get();
  if (&x == &y) return true;
  if (x.dtype != y.dtype || !std::ranges::equal(a.shape(), b.shape()) || (x.flags | y.flags) & BP_TENSOR_WRAPPER)
    return false;
  std::vector<char> of_a(x.nbytes), of_b(y.nbytes);
  to_host(a, of_a.data());
  to_host(b, of_b.data());
  return of_a == of_b;
}

void Comparison::constants() const {
  if (graph_.constants().size() != trace_.constants().size())
    fail("uses ", trace_.constants().size(), " tensors from outside, expected ", graph_.constants().size());
  for (size_t i = 0; i < graph_.constants().size(); ++i) {
    const Constant &a = graph_.constants()[i], &b = trace_.constants()[i];
    if (a.value == b.value && same_tensor(a.tensor, b.tensor)) continue;
    fail("a tensor that it makes of numbers, or takes from outside, is another one (shape ",
         shape_text(b.tensor.shape()), ", expected ", shape_text(a.tensor.shape()),
         "). Fix: make it with ops, as arange or full, of the sizes");
  }
}

void Comparison::draws() const {
  if (graph_.draws.size() != trace_.draws.size() || graph_.generators != trace_.generators)
    fail("draws random numbers another number of times");
  for (size_t i = 0; i < graph_.draws.size(); ++i) {
    const Draw &a = graph_.draws[i], &b = trace_.draws[i];
    const bool same = a.kind == b.kind && a.generator == b.generator && a.from == b.from && a.stream == b.stream &&
                      a.state.key == b.state.key && a.state.counter == b.state.counter;
    if (!same) fail("draws random numbers from elsewhere");
    numbers("a count of random numbers", {&a.count, 1}, numbers_of({&b.count, 1}));
    numbers("an offset of random numbers", {&a.offset, 1}, numbers_of({&b.offset, 1}));
  }
}

void Comparison::plain(const std::string& of, const Argument& a, const bp_value& b) const {
  const bp_value& v = a.plain;
  if (!a.is_symbolic() && same_plain(v, b)) return;
  const auto differ = [&] { fail(of, " is another value"); };
  if (v.tag != b.tag || (v.flags & ~Argument::kSymbolic) != b.flags) differ();
  switch (v.tag) {
    case BP_TAG_INT:
      if (b.flags & ~BP_VALUE_NUMBER) differ();
      return numbers(of, a.dims(), {&b.u.i, 1});
    case BP_TAG_INT_LIST:
      return numbers(of, a.dims(), {b.u.ints, b.count});
    case BP_TAG_VALUE_LIST:
      if (v.count != b.count) differ();
      for (uint32_t i = 0; i < v.count; ++i) {
        const bp_value &x = v.u.values[i], &y = b.u.values[i];
        if (x.tag != y.tag || x.flags != y.flags || (x.tag != BP_TAG_INT && !same_plain(x, y))) differ();
        const Dim expected = a.is_symbolic() ? dim_of(x) : Dim(x.u.i);
        if (x.tag == BP_TAG_INT) numbers(of, {&expected, 1}, {&y.u.i, 1});
      }
      return;
    case BP_TAG_FLOAT: {
      if (!symbols_) return;
      const double wanted = a.is_symbolic() ? float_of(graph_, a, *symbols_) : v.u.f;
      if (std::bit_cast<uint64_t>(wanted) != std::bit_cast<uint64_t>(b.u.f))
        fail(of, " is ", b.u.f, ", expected ", wanted);
      return;
    }
    default:
      differ();
  }
}

void Comparison::argument(const std::string& of, const Argument& a, const Argument& b) const {
  if (a.is_values() && b.is_values()) {
    if (!std::ranges::equal(a.values(), b.values())) fail(of, " is another list of tensors");
  } else if (a.is_draw() && b.is_draw()) {
    if (a.draw() != b.draw()) fail(of, " is another draw");
    const Dim offset = b.offset();
    numbers(of, {reinterpret_cast<const Dim*>(&a.plain.u.i), 1}, numbers_of({&offset, 1}));
  } else if ((a.is_value() && b.is_value()) || (a.is_graph() && b.is_graph())) {
    if (a.plain.u.i != b.plain.u.i || a.plain.count != b.plain.count) fail(of, " is another one");
  } else {
    plain(of, a, b.plain);
  }
}

void Comparison::node(NodeId id) {
  const Node &a = graph_.node(id), &b = trace_.node(id);
  location_ = b.location;
  if (a.op != b.op) fail("calls ", b.op->record->name, ", expected ", a.op->record->name);
  const std::string op(a.op->record->name);
  if (a.n_results != b.n_results || a.flags != b.flags || a.n_arguments != b.n_arguments ||
      a.first_result != b.first_result)
    fail("another call of ", op);
  for (size_t i = 0; i < a.n_arguments; ++i)
    argument(op + "'s argument \"" + a.op->record->args[i].name + "\"", graph_.arguments(a)[i], trace_.arguments(b)[i]);
  for (uint32_t i = 0; i < a.n_results; ++i) type("a result of " + op, a.first_result + i);
}

void Comparison::run() {
  if (graph_.inputs().size() != trace_.inputs().size()) fail("takes another number of tensors");
  for (const Input& input : graph_.inputs()) type("the input " + input.name, input.value);
  if (graph_.graphs.size() != trace_.graphs.size()) fail("another number of functions of control flow");
  for (size_t i = 0; i < graph_.graphs.size(); ++i) {
    const Graph& inner = *graph_.graphs[i];
    std::vector<int64_t> of_inner;
    if (symbols_ && !inner.symbols().empty()) of_inner = all_symbols(inner, *symbols_);
    Comparison(inner, symbols_ ? std::optional(std::span<const int64_t>(of_inner)) : std::nullopt, *trace_.graphs[i])
        .run();
  }
  draws();
  const size_t common = std::min(graph_.nodes().size(), trace_.nodes().size());
  for (NodeId id = 0; id < common; ++id) node(id);
  if (trace_.nodes().size() > common) {
    location_ = trace_.node(static_cast<NodeId>(common)).location;
    fail("calls ", trace_.node(static_cast<NodeId>(common)).op->record->name, ", expected no further call");
  }
  if (graph_.nodes().size() > common)
    fail("makes ", common, " calls, expected ", graph_.nodes().size(), ": ",
         graph_.node(static_cast<NodeId>(common)).op->record->name, " is lacking");
  location_ = kNone;
  constants();
  if (graph_.updates != trace_.updates) fail("changes other tensors in place");
  if (graph_.outputs != trace_.outputs) fail("gives other results");
  if (graph_.own_rules != trace_.own_rules || graph_.own_batch != trace_.own_batch ||
      graph_.not_of_ops != trace_.not_of_ops)
    fail("calls another function with rules of its own");
}

}  // namespace

std::vector<int64_t> all_symbols(const Graph& graph, std::span<const int64_t> named) {
  std::vector<int64_t> all;
  for (SymbolId s = 0; s < graph.symbols().size(); ++s) {
    const Symbol& symbol = graph.symbols()[s];
    all.push_back(symbol.divisor ? floor_divide(graph.sizes.evaluate(symbol.numerator, all), symbol.divisor)
                                 : named[s]);
  }
  return all;
}

void compare(const Graph& graph, std::optional<std::span<const int64_t>> symbols, const Graph& trace) {
  Comparison(graph, symbols, trace).run();
}

std::optional<TraceDifference> difference(const Graph& graph, std::span<const int64_t> symbols, const Graph& trace) {
  try {
    compare(graph, symbols, trace);
    return {};
  } catch (Unlike& unlike) {
    return std::move(unlike.difference);
  }
}

}  // namespace backplane::core::graph
