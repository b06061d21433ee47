#include "graph/sizes.hpp"

#include <algorithm>
#include <cmath>

#include "graph/verify.hpp"

namespace backplane::core::graph {

// ---- Symbols

int64_t floor_divide(int64_t numerator, int64_t divisor) { return numerator / divisor - (numerator % divisor < 0); }

Dim Graph::quotient(Dim numerator, int64_t divisor) {
  constexpr size_t kMostSymbols = 4096;  // the search is linear
  BP_CHECK(divisor > 0, VALUE, "graph ", name, ": a size is divided by ", divisor, "; expected a number from 1 up");
  if (numerator.is_number()) return floor_divide(numerator.number(), divisor);
  if (divisor == 1) return numerator;
  std::vector<int64_t> examples;
  for (SymbolId s = 0; s < symbols_.size(); ++s) {
    if (symbols_[s].divisor == divisor && symbols_[s].numerator == numerator) return sizes.symbol(s);
    examples.push_back(symbols_[s].example);
  }
  BP_CHECK(symbols_.size() < kMostSymbols, VALUE, "graph ", name, ": more than ", kMostSymbols, " symbols");
  const DimTerms terms = sizes.terms(numerator);
  const bool alone = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].symbols.size() == 1;
  const std::string inner = alone ? text(numerator) : "(" + text(numerator) + ")";
  const SymbolId made = add_symbol("(" + inner + "//" + std::to_string(divisor) + ")", kNone, 0,
                                   floor_divide(sizes.evaluate(numerator, examples), divisor));
  symbols_[made].numerator = numerator;
  symbols_[made].divisor = divisor;
  return sizes.symbol(made);
}

std::vector<int64_t> Graph::bind(std::span<const Shape> shapes) const {
  BP_CHECK(shapes.size() == inputs_.size(), TYPE, "graph ", name, ": takes ", inputs_.size(), " tensors, found ",
           shapes.size());
  std::vector<int64_t> numbers(symbols_.size(), 0);
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const Symbol& symbol = symbols_[s];
    if (symbol.divisor != 0) numbers[s] = floor_divide(sizes.evaluate(symbol.numerator, numbers), symbol.divisor);
    if (symbol.value == kNone) {
      BP_CHECK(symbol.divisor != 0, VALUE, "graph ", name, ": its size \"", symbol_names_[s],
               "\" belongs to an outer graph, but it has none");
      continue;
    }
    const Value& source = values_[symbol.value];
    if (source.kind != Value::Kind::kInput) continue;
    const Shape shape = shapes[source.index];
    BP_CHECK(symbols_[s].axis < shape.size(), SHAPE, "graph ", name, ": input ", inputs_[source.index].name, " has ",
             shape.size(), " dimensions; its size \"", symbol_names_[s], "\" is that of axis ", symbols_[s].axis);
    numbers[s] = shape[symbols_[s].axis];
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::span<const Dim> expected = dims(inputs_[i].value);
    BP_CHECK(shapes[i].size() == expected.size(), SHAPE, "graph ", name, ": input ", inputs_[i].name, " has ",
             shapes[i].size(), " dimensions, expected ", expected.size());
    for (size_t axis = 0; axis < expected.size(); ++axis) {
      const int64_t wanted = sizes.evaluate(expected[axis], numbers);
      BP_CHECK(shapes[i][axis] == wanted, SHAPE, "graph ", name, ": input ", inputs_[i].name, " has size ",
               shapes[i][axis], " at axis ", axis, ", expected ", text(expected[axis]),
               expected[axis].is_number() ? "" : " = " + std::to_string(wanted));
    }
  }
  return numbers;
}

namespace {

bool holds(Constraint::Relation relation, int64_t left, int64_t right) {
  switch (relation) {
    case Constraint::Relation::kEqual:
      return left == right;
    case Constraint::Relation::kNotEqual:
      return left != right;
    case Constraint::Relation::kLess:
      return left < right;
    case Constraint::Relation::kLessEqual:
      return left <= right;
    case Constraint::Relation::kDivisible:
      return right == -1 || (right != 0 && left % right == 0);  // the least number has no quotient by -1
  }
  return false;
}

constexpr const char* kRelationWords[] = {" == ", " != ", " < ", " <= ", " divisible by "};

}  // namespace

void Graph::check(std::span<const int64_t> numbers) const {
  const auto known = [&](Dim dim) {
    for (const DimTerm& term : sizes.terms(dim))
      for (SymbolId s : term.symbols)
        if (symbols_[s].value != kNone && values_[symbols_[s].value].kind == Value::Kind::kResult && numbers[s] == 0)
          return false;
    return true;
  };
  for (const Constraint& c : constraints) {
    if (!known(c.left) || !known(c.right)) continue;
    const int64_t left = sizes.evaluate(c.left, numbers), right = sizes.evaluate(c.right, numbers);
    if (holds(c.relation, left, right)) continue;
    std::string where;
    if (c.location != kNone)
      where = " (" + locations_[c.location].file + ":" + std::to_string(locations_[c.location].line) + ")";
    detail::fail(BP_ERROR_SHAPE, "graph ", name, ": relies on ", text(c.left),
                 kRelationWords[static_cast<size_t>(c.relation)], text(c.right), ", found ", left, " and ", right, ": ",
                 c.reason, where);
  }
}

// ---- Arguments

Dim dim_of(const bp_value& element) { return *reinterpret_cast<const Dim*>(&element.u.i); }

double float_of(const Graph& graph, const Argument& argument, std::span<const int64_t> symbols) {
  const auto size = static_cast<double>(graph.sizes.evaluate(argument.dims()[0], symbols));
  const double number = argument.plain.count & kRootOfSize ? std::sqrt(size) : size;
  const uint32_t dividend = argument.plain.count & ~kRootOfSize;
  return dividend == 0 ? number : dividend / number;
}

bp_value evaluated(const Graph& graph, const Argument& argument, std::span<const int64_t> symbols,
                   std::deque<std::vector<int64_t>>& ints) {
  bp_value v = argument.plain;
  v.flags &= static_cast<uint16_t>(~Argument::kSymbolic);
  if (v.tag == BP_TAG_FLOAT) {
    v.u.f = float_of(graph, argument, symbols);
    v.count = 0;
    return v;
  }
  auto& list = ints.emplace_back();
  if (v.tag == BP_TAG_VALUE_LIST) {
    list.resize(v.count * sizeof(bp_value) / sizeof(int64_t));
    auto* const elements = reinterpret_cast<bp_value*>(list.data());
    std::copy(v.u.values, v.u.values + v.count, elements);
    for (uint32_t i = 0; i < v.count; ++i)
      if (elements[i].tag == BP_TAG_INT) elements[i].u.i = graph.sizes.evaluate(dim_of(elements[i]), symbols);
    v.u.values = elements;
    return v;
  }
  for (const Dim dim : argument.dims()) list.push_back(graph.sizes.evaluate(dim, symbols));
  if (v.tag == BP_TAG_INT)
    v.u.i = list[0];
  else
    v.u.ints = list.data();
  return v;
}

// ---- The whole graph

std::vector<int64_t> symbols_within(const Graph& outer, std::span<const int64_t> symbols, const Graph& inner) {
  std::vector<int64_t> numbers;
  const std::span<const std::string> names = outer.symbol_names();
  for (SymbolId s = 0; s < inner.symbols().size(); ++s) {
    const Symbol& symbol = inner.symbols()[s];
    if (symbol.divisor != 0) {
      numbers.push_back(floor_divide(inner.sizes.evaluate(symbol.numerator, numbers), symbol.divisor));
      continue;
    }
    const auto of_outer = std::find(names.begin(), names.end(), inner.symbol_names()[s]);
    BP_CHECK(of_outer != names.end(), VALUE, "graph ", inner.name, ": its size ", inner.symbol_names()[s],
             " does not exist in graph ", outer.name, ", the outer one");
    numbers.push_back(symbols[static_cast<size_t>(of_outer - names.begin())]);
  }
  return numbers;
}

bool is_sized_by_inputs(const Graph& graph) {
  return !graph.symbols().empty() && std::all_of(graph.symbols().begin(), graph.symbols().end(), [&](const Symbol& s) {
    return s.value == kNone || graph.value(s.value).kind == Value::Kind::kInput;
  });
}

namespace {

class Specialization {
 public:
  Specialization(const Graph& whole, std::span<const int64_t> symbols) : whole_(whole), symbols_(symbols) {}

  std::shared_ptr<const Graph> run() {
    made_->copy_facts(whole_);
    for (Draw& draw : made_->draws) {
      draw.count = number(draw.count);
      draw.offset = number(draw.offset);
    }
    for (auto& inner : made_->graphs) {
      if (inner->symbols().empty()) continue;
      const std::vector<int64_t> numbers = symbols_within(whole_, symbols_, *inner);
      inner = Specialization(*inner, numbers).run();
    }
    for (ValueId v = 0; v < whole_.values().size(); ++v) add(v);
    add_nodes(whole_.nodes().size());
    made_->outputs = whole_.outputs;
    made_->updates = whole_.updates;
    return made_;
  }

 private:
  Dim number(Dim dim) const { return whole_.sizes.evaluate(dim, symbols_); }

  // Values keep their ids: each is added in its turn, a node with its first result.
  void add(ValueId v) {
    const Value& value = whole_.value(v);
    if (value.kind == Value::Kind::kInput) {
      made_->add_input(whole_.inputs()[value.index].name, type(v));
    } else if (value.kind == Value::Kind::kConstant) {
      const Constant& constant = whole_.constants()[value.index];
      made_->add_constant(constant.tensor, constant.name, constant.live);
    } else {
      add_nodes(value.node + 1);
    }
  }
  void add_nodes(size_t end) {
    for (; next_ < end; ++next_) add_node(whole_.node(next_));
  }

  Type type(ValueId v) {
    auto& dims = dims_.emplace_back();
    for (const Dim dim : whole_.dims(v)) {
      dims.push_back(number(dim));
      BP_CHECK(dims.back().number() >= 0, SHAPE, "graph ", whole_.name, ": the size ", whole_.text(dim), " would be ",
               dims.back().number());
    }
    const Type type = whole_.type(v);
    return {type.dtype, type.device, dims};
  }

  void add_node(const Node& node) {
    std::vector<Argument> arguments;
    std::deque<std::vector<int64_t>> ints;
    for (const Argument& a : whole_.arguments(node)) {
      if (a.is_value() || a.is_graph())
        arguments.push_back(a);
      else if (a.is_values())
        arguments.push_back(made_->list(a.values()));
      else if (a.is_draw())
        arguments.push_back(Argument::of_draw(a.draw(), number(a.offset())));
      else
        arguments.push_back(made_->copy(a.is_symbolic() ? evaluated(whole_, a, symbols_, ints) : a.plain));
    }
    std::vector<Type> types;
    for (uint32_t i = 0; i < node.n_results; ++i) types.push_back(type(node.first_result + i));
    const uint32_t location = node.location == kNone ? kNone : made_->add_location(whole_.locations()[node.location]);
    made_->add_node(*node.op, arguments, types, location, node.flags);
  }

  const Graph& whole_;
  std::span<const int64_t> symbols_;
  std::shared_ptr<Graph> made_ = std::make_shared<Graph>();
  std::deque<std::vector<Dim>> dims_;
  NodeId next_ = 0;
};

}  // namespace

std::shared_ptr<const Graph> specialize(const Graph& graph, std::span<const int64_t> symbols) {
  const std::shared_ptr<const Graph> made = Specialization(graph, symbols).run();
  verify(*made);
  return made;
}

}  // namespace backplane::core::graph
