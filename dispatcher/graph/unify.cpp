#include "graph/unify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/size_expressions.hpp"
#include "graph/size_fit.hpp"
#include "graph/sizes.hpp"
#include "record/plain_value.hpp"

namespace backplane::core::graph {
namespace {

// The whole number that gives `value`, to the last bit, as float_of computes it.
std::optional<int64_t> size_behind(double value, uint32_t dividend, bool root) {
  const double number = dividend == 0 ? value : dividend / value;
  const double size = std::round(root ? number * number : number);
  if (!(std::fabs(size) < 9e15) || (root && number < 0)) return {};
  const double again = root ? std::sqrt(size) : size;
  const bool exact =
      std::bit_cast<uint64_t>(dividend == 0 ? again : dividend / again) == std::bit_cast<uint64_t>(value);
  return exact ? std::optional(static_cast<int64_t>(size)) : std::nullopt;
}

// The traces have passed a comparison with the first.
class Unification {
 public:
  Unification(std::span<const std::shared_ptr<const Graph>> traces, std::span<const NamedSize> named,
              std::span<const std::vector<int64_t>> choices, std::span<const std::span<const SizeUse>> uses,
              bool within)
      : traces_(traces), first_(*traces[0]), named_(named), choices_(choices), uses_(uses), within_(within) {
    for (size_t s = 0; s < named.size(); ++s)
      made_->add_symbol(named[s].name, within ? kNone : first_.inputs()[named[s].places[0].input].value,
                        named[s].places[0].axis, choices[0][s]);
    fit_.emplace(*made_, choices);
    SizeExpressions(*made_, *fit_, uses);  // the fit knows them from now on
  }

  // Within another graph: the first trace where its sizes are numbers.
  std::shared_ptr<const Graph> run_within() && {
    std::shared_ptr<Graph> made = std::move(*this).run();
    return uses_symbols_ ? made : traces_[0];
  }

  std::shared_ptr<Graph> run() && {
    made_->copy_facts(first_);
    for (size_t i = 0; i < first_.graphs.size(); ++i) {
      std::vector<std::shared_ptr<const Graph>> inner;
      for (const auto& trace : traces_) inner.push_back(trace->graphs[i]);
      made_->graphs[i] = Unification(inner, named_, choices_, uses_, true).run_within();
      uses_symbols_ = uses_symbols_ || !made_->graphs[i]->symbols().empty();
    }
    for (size_t i = 0; i < first_.draws.size(); ++i) {
      const auto each = [&](Dim Draw::*member) {
        return dim("a count of random numbers", [&](const Graph& g) { return (g.draws[i].*member).number(); });
      };
      made_->draws[i].count = each(&Draw::count);
      made_->draws[i].offset = each(&Draw::offset);
    }
    for (ValueId v = 0; v < first_.values().size(); ++v) value(v);
    nodes(first_.nodes().size());
    made_->outputs = first_.outputs;
    made_->updates = first_.updates;
    return std::move(made_);
  }

 private:
  std::string at_choices() const {
    std::string text;
    for (size_t t = 0; t < choices_.size(); ++t)
      for (size_t s = 0; s < named_.size(); ++s)
        text += (text.empty() ? "" : ", ") + named_[s].name + " = " + std::to_string(choices_[t][s]);
    return text;
  }

  template <class Read>
  Dim dim(const std::string& of, Read read) {
    std::vector<int64_t> values;
    for (const auto& trace : traces_) values.push_back(read(*trace));
    const std::optional<Dim> found = fit_->fit(values);
    if (!found) {
      std::string numbers;
      for (const int64_t v : values) numbers += (numbers.empty() ? "" : ", ") + std::to_string(v);
      Location where;
      if (location_ != kNone) where = first_.locations()[location_];
      throw Unlike{
          {of + " is not an expression of the dynamic sizes: found " + numbers + " at " + at_choices(), where}};
    }
    uses_symbols_ = uses_symbols_ || !found->is_number();
    return *found;
  }

  std::vector<Dim> dims(const std::string& of, ValueId v) {
    std::vector<Dim> found;
    for (size_t axis = 0; axis < first_.dims(v).size(); ++axis)
      found.push_back(dim(of, [&](const Graph& g) { return g.dims(v)[axis].number(); }));
    return found;
  }

  void value(ValueId v) {
    const Value& value = first_.value(v);
    if (value.kind == Value::Kind::kInput) {
      std::vector<Dim> sizes = dims("a size of the input " + first_.inputs()[value.index].name, v);
      for (size_t s = 0; !within_ && s < named_.size(); ++s)
        for (const NamedSize::Place& place : named_[s].places)
          if (place.input == value.index) sizes[place.axis] = made_->sizes.symbol(static_cast<SymbolId>(s));
      made_->add_input(first_.inputs()[value.index].name, {value.dtype, value.device, sizes});
    } else if (value.kind == Value::Kind::kConstant) {
      const Constant& constant = first_.constants()[value.index];
      made_->add_constant(constant.tensor, constant.name, constant.live);
    } else {
      nodes(value.node + 1);
    }
  }
  void nodes(size_t end) {
    for (; next_ < end; ++next_) node(next_);
  }

  void node(NodeId id) {
    const Node& node = first_.node(id);
    const std::string op(node.op->record->name);
    location_ = node.location;
    std::vector<Argument> arguments;
    for (size_t i = 0; i < node.n_arguments; ++i)
      arguments.push_back(argument(op + "'s argument \"" + node.op->record->args[i].name + "\"", id, i));
    std::vector<std::vector<Dim>> sizes;
    std::vector<Type> types;
    for (uint32_t i = 0; i < node.n_results; ++i) {
      sizes.push_back(dims("a size of a result of " + op, node.first_result + i));
      const Type type = first_.type(node.first_result + i);
      types.push_back({type.dtype, type.device, {}});
    }
    for (uint32_t i = 0; i < node.n_results; ++i) types[i].dims = sizes[i];
    const uint32_t location = node.location == kNone ? kNone : made_->add_location(first_.locations()[node.location]);
    made_->add_node(*node.op, arguments, types, location, node.flags);
    location_ = kNone;
  }

  Argument argument(const std::string& of, NodeId id, size_t index) {
    const auto read = [&](const Graph& g) -> const Argument& { return g.arguments(g.node(id))[index]; };
    const Argument& a = read(first_);
    if (a.is_value() || a.is_graph()) return a;
    if (a.is_values()) return made_->list(a.values());
    if (a.is_draw())
      return Argument::of_draw(a.draw(), dim(of, [&](const Graph& g) { return read(g).offset().number(); }));
    // A number may be one that a Dim does not hold, where it is the same in all.
    const auto same = [&](const auto& trace) { return same_plain(a.plain, read(*trace).plain); };
    if (std::all_of(traces_.begin(), traces_.end(), same)) return made_->copy(a.plain);
    if (a.plain.tag == BP_TAG_INT && !(a.plain.flags & ~BP_VALUE_NUMBER)) {
      Argument made = Argument::of_size(dim(of, [&](const Graph& g) { return read(g).plain.u.i; }));
      made.plain.flags |= a.plain.flags;
      return made;
    }
    if (a.plain.tag == BP_TAG_INT_LIST) {
      std::vector<Dim> list;
      for (uint32_t i = 0; i < a.plain.count; ++i)
        list.push_back(dim(of, [&](const Graph& g) { return read(g).plain.u.ints[i]; }));
      return made_->sizes_of(list);
    }
    if (a.plain.tag == BP_TAG_FLOAT) return floating(of, a, read);
    if (a.plain.tag == BP_TAG_VALUE_LIST) {
      std::vector<bp_value> list(a.plain.u.values, a.plain.u.values + a.plain.count);
      for (size_t i = 0; i < list.size(); ++i)
        if (list[i].tag == BP_TAG_INT)
          list[i].u.i = dim(of, [&](const Graph& g) { return read(g).plain.u.values[i].u.i; }).code();
      bp_value whole = a.plain;
      whole.u.values = list.data();
      whole.flags |= Argument::kSymbolic;
      return made_->copy(whole);
    }
    return made_->copy(a.plain);
  }

  // A size or its square root, or a whole number divided by that.
  template <class Read>
  Argument floating(const std::string& of, const Argument& a, Read read) {
    std::vector<double> values;
    for (const auto& trace : traces_) values.push_back(read(*trace).plain.u.f);
    constexpr uint32_t kMostDividend = 16;
    for (const uint32_t root : {0u, kRootOfSize})
      for (uint32_t dividend = 0; dividend <= kMostDividend; ++dividend) {
        std::vector<int64_t> sizes;
        for (const double v : values)
          if (const auto size = size_behind(v, dividend, root != 0)) sizes.push_back(*size);
        const std::optional<Dim> found = sizes.size() == values.size() ? fit_->fit(sizes) : std::nullopt;
        if (!found || found->is_number()) continue;
        uses_symbols_ = true;
        Argument made = Argument::of_float(*found, dividend | root);
        made.plain.flags |= a.plain.flags;
        return made;
      }
    Location where;
    if (location_ != kNone) where = first_.locations()[location_];
    throw Unlike{
        {of + " is a floating number that Python computed from a dynamic size. It is not the size, not a whole " +
             "number up to 16 divided by it, and not of its square root. Fix: compute it with tensors, from "
             "bp.full((), size)",
         where}};
  }

  std::span<const std::shared_ptr<const Graph>> traces_;
  const Graph& first_;
  std::span<const NamedSize> named_;
  std::span<const std::vector<int64_t>> choices_;
  std::span<const std::span<const SizeUse>> uses_;
  const bool within_;  // another graph
  std::shared_ptr<Graph> made_ = std::make_shared<Graph>();
  std::optional<SizeFit> fit_;
  uint32_t location_ = kNone;
  bool uses_symbols_ = false;
  NodeId next_ = 0;
};

}  // namespace

std::variant<std::shared_ptr<Graph>, TraceDifference> unify(std::span<const std::shared_ptr<const Graph>> traces,
                                                            std::span<const NamedSize> named,
                                                            std::span<const std::vector<int64_t>> choices,
                                                            std::span<const std::span<const SizeUse>> uses) {
  try {
    for (const auto& trace : traces.subspan(1)) compare(*traces[0], {}, *trace);
    return Unification(traces, named, choices, uses, false).run();
  } catch (Unlike& unlike) {
    return std::move(unlike.difference);
  }
}

}  // namespace backplane::core::graph
