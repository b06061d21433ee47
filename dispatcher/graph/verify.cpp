#include "graph/verify.hpp"

#include <algorithm>
#include <string>

#include "backplane/device.hpp"
#include "graph/sizes.hpp"
#include "graph/text/print.hpp"
#include "graph/verify_functions.hpp"
#include "memory/process/epoch.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core::graph {
namespace {

constexpr const char* kTypeWords[] = {"",
#define WORD(constant, number, word) word,
                                      BP_TYPES(WORD)
#undef WORD
};

bool is_number(uint16_t tag) { return tag >= BP_TAG_BOOL && tag <= BP_TAG_COMPLEX; }

bool is_index_list(const bp_value& v, bool optional_elements) {
  if (v.tag == BP_TAG_INT_LIST) return true;
  if (v.tag != BP_TAG_VALUE_LIST) return false;
  return std::all_of(v.u.values, v.u.values + v.count, [&](const bp_value& one) {
    return one.tag == BP_TAG_INT || (optional_elements && one.tag == BP_TAG_ABSENT);
  });
}

bool is_number_list(const bp_value& v) {
  if (v.tag != BP_TAG_VALUE_LIST)
    return v.tag == BP_TAG_INT_LIST || v.tag == BP_TAG_FLOAT_LIST || v.tag == BP_TAG_BOOL_LIST;
  return std::all_of(v.u.values, v.u.values + v.count, [](const bp_value& one) { return is_number(one.tag); });
}

// Is the argument of the parameter's type? References are looked at elsewhere.
bool has_type(const bp_value& v, const bp_arg_def& arg) {
  const bool list = (arg.flags & BP_ARG_LIST) != 0;
  if (v.tag == BP_TAG_ABSENT)
    return (arg.flags & BP_ARG_OPTIONAL) ||
           ((arg.flags & BP_ARG_HAS_DEFAULT) && arg.default_value.tag == BP_TAG_ABSENT);
  switch (arg.type) {
    case BP_TYPE_TENSOR:
      return list ? v.tag == BP_TAG_TENSOR_LIST
                  : v.tag == BP_TAG_TENSOR || (is_number(v.tag) && (v.flags & BP_VALUE_NUMBER));
    case BP_TYPE_SCALAR:
      return list ? is_number_list(v) : is_number(v.tag);
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      return list ? is_index_list(v, arg.flags & BP_ARG_OPTIONAL_ELEMENTS) : v.tag == BP_TAG_INT;
    case BP_TYPE_AXES:
      return !list && (v.tag == BP_TAG_INT || v.tag == BP_TAG_INT_LIST);
    case BP_TYPE_SHAPE:
      return !list && v.tag == BP_TAG_INT_LIST;
    case BP_TYPE_DTYPE:
      return v.tag == BP_TAG_DTYPE && v.u.i >= 0 && v.u.i < BP_DTYPE_COUNT;
    case BP_TYPE_DEVICE:
      return v.tag == BP_TAG_DEVICE;
    case BP_TYPE_GENERATOR:
      return v.tag == BP_TAG_GENERATOR;
    case BP_TYPE_BOOL:
      return list ? v.tag == BP_TAG_BOOL_LIST : v.tag == BP_TAG_BOOL;
    case BP_TYPE_STR:
      return v.tag == BP_TAG_STRING;
    case BP_TYPE_GRAPH:
      return v.tag == BP_TAG_GRAPH;
    default:
      return false;
  }
}

class Verifier {
 public:
  // `examples`: the symbols' numbers.
  Verifier(const Graph& graph, std::vector<int64_t> examples) : graph_(graph), examples_(std::move(examples)) {}
  void run();

 private:
  template <class... Parts>
  [[noreturn]] void fail(NodeId id, const Parts&... parts) const {
    detail::fail(BP_ERROR_VALUE, "graph ", graph_.name, ": node ", node_text(graph_, id), "\n  ", parts...);
  }
  void check_value(ValueId id) const;
  void check_node(NodeId id);
  void check_use(NodeId id, ValueId used) const;
  void check_argument(NodeId id, size_t index, const Argument& a) const;
  void check_results(NodeId id);
  std::vector<InferredResult> results_by_rules(NodeId id);
  void check_updates() const;
  void check_function(const Graph& inner);
  std::vector<int64_t> sizes(ValueId id) const;
  std::string shape_of(ValueId id) const { return shape_text(sizes(id)); }
  bp_tensor* handle(ValueId id);
  void fill(const Argument& a, bp_value& v, std::vector<std::vector<bp_tensor*>>& lists,
            std::deque<std::vector<int64_t>>& ints);

  const Graph& graph_;
  std::vector<int64_t> examples_;
  std::vector<Tensor> handles_;  // without data, by value
  std::vector<std::shared_ptr<StatedFunction>> functions_;
  bp_generator_state state_{};
};

std::vector<int64_t> Verifier::sizes(ValueId id) const {
  std::vector<int64_t> numbers;
  for (const Dim dim : graph_.dims(id)) {
    numbers.push_back(graph_.sizes.evaluate(dim, examples_));
    BP_CHECK(numbers.back() >= 0, VALUE, "graph ", graph_.name, ": %", id, " has the size ", graph_.text(dim), " = ",
             numbers.back(), "; sizes are 0 or more");
  }
  return numbers;
}

// Of a size that no memory holds this throws.
bp_tensor* Verifier::handle(ValueId id) {
  if (!handles_[id]) {
    const Value& v = graph_.value(id);
    const std::vector<int64_t> shape = sizes(id);
    handles_[id] = Tensor::adopt(new_handle(device_at(v.device), v.dtype, v.ndim, shape.data()));
  }
  return handles_[id].get();
}

void Verifier::check_use(NodeId id, ValueId used) const {
  if (used >= graph_.values().size()) fail(id, "uses %", used, ", which does not exist");
  if (used >= graph_.node(id).first_result)
    fail(id, "uses %", used, ", which it or a later node makes; nodes stand in the order in which they run");
  const Value& v = graph_.value(used);
  if (v.kind == Value::Kind::kResult && graph_.is_erased(v.node)) fail(id, "uses %", used, ", whose node is erased");
}

void Verifier::check_argument(NodeId id, size_t index, const Argument& a) const {
  const OpRecord& record = *graph_.node(id).op->record;
  const bp_arg_def& arg = record.args[index];
  if (!has_type(a.plain, arg))
    fail(id, "argument ", index + 1, " \"", arg.name, "\": found ", argument_text(graph_, a), ", expected ",
         arg.type < BP_TYPE_COUNT ? kTypeWords[arg.type] : "?", arg.flags & BP_ARG_LIST ? "[]" : "");
  if (a.is_value()) check_use(id, a.value());
  if (a.is_values())
    for (const ValueId v : Argument(a).values()) {
      if (v != kNone)
        check_use(id, v);
      else if (!(arg.flags & BP_ARG_OPTIONAL_ELEMENTS))
        fail(id, "argument ", index + 1, " \"", arg.name, "\": an element is absent");
    }
  if (a.is_draw() && a.draw() >= graph_.draws.size()) fail(id, "uses draw ", a.draw(), ", which does not exist");
  if (a.is_graph() && a.graph() >= graph_.graphs.size()) fail(id, "uses graph ", a.graph(), ", which does not exist");
}

// The argument as a call takes it, with the examples' sizes.
void Verifier::fill(const Argument& a, bp_value& v, std::vector<std::vector<bp_tensor*>>& lists,
                    std::deque<std::vector<int64_t>>& ints) {
  v = a.plain;
  if (a.is_value()) v.u.t = handle(a.value());
  if (a.is_values()) {
    auto& list = lists.emplace_back();
    for (const ValueId one : Argument(a).values()) list.push_back(one == kNone ? nullptr : handle(one));
    v.u.tensors = list.data();
  }
  if (a.is_draw()) {
    v.count = 0;
    v.u.g = &state_;
  }
  if (a.is_graph()) v = backplane::value(*functions_[a.graph()]);
  if (a.is_symbolic()) v = evaluated(graph_, a, examples_, ints);
}

std::vector<InferredResult> Verifier::results_by_rules(NodeId id) {
  const Node& node = graph_.node(id);
  const std::span<const Argument> arguments = graph_.arguments(node);
  const auto n_args = static_cast<int32_t>(arguments.size());
  bp_value args[kMaxArgs];
  std::vector<std::vector<bp_tensor*>> tensors;
  std::deque<std::vector<int64_t>> ints;
  try {
    for (size_t i = 0; i < arguments.size(); ++i) fill(arguments[i], args[i], tensors, ints);
    if (!(node.op->flags & BP_OP_HIGHER_ORDER)) return infer(node.op->handle, args, n_args);
    std::vector<InferredResult> results;
    for (const Tensor& t : result_forms(*node.op, args, n_args))
      results.push_back({t.dtype(), {t.shape().begin(), t.shape().end()}});
    return results;
  } catch (const Error& error) {
    throw Error(error.code(), "graph " + graph_.name + ": node " + node_text(graph_, id) + "\n  " + error.what());
  }
}

void Verifier::check_results(NodeId id) {
  const Node& node = graph_.node(id);
  const OpRecord& record = *node.op->record;
  const bool takes_functions = (node.op->flags & BP_OP_HIGHER_ORDER) != 0;
  const bool lists = std::any_of(record.results.begin(), record.results.end(),
                                 [](const bp_result_def& r) { return (r.flags & BP_ARG_LIST) != 0; });
  if (!lists && node.n_results != record.results.size())
    fail(id, "has ", node.n_results, " results, the op ", record.results.size());
  if (!takes_functions && (lists || (node.op->flags & BP_OP_DYNAMIC))) return;
  const std::vector<InferredResult> inferred = results_by_rules(id);
  if (node.n_results != inferred.size())
    fail(id, "has ", node.n_results, " results; its functions give ", inferred.size());
  for (uint32_t i = 0; i < node.n_results; ++i) {
    const ValueId result = node.first_result + i;
    if (inferred[i].dtype != graph_.value(result).dtype || inferred[i].shape != sizes(result))
      fail(id, "result ", i, " is ", type_text(graph_, graph_.type(result)), "; by ",
           takes_functions ? "its functions" : "the op's rules", " it has dtype ",
           backplane::dtype_name(inferred[i].dtype), " and shape ", shape_text(inferred[i].shape));
  }
}

void Verifier::check_node(NodeId id) {
  const Node& node = graph_.node(id);
  BP_CHECK(node.op && !node.op->withdrawn, VALUE, "graph ", graph_.name, ": node ", id, ": its op ",
           node.op ? std::string(node.op->record->name) : "",
           " is not registered. Fix: load the plugin that brings it");
  const size_t n_args = node.op->record->args.size();
  if (node.n_arguments != n_args) fail(id, "has ", node.n_arguments, " arguments, the op ", n_args);
  for (size_t i = 0; i < n_args; ++i) check_argument(id, i, graph_.arguments(node)[i]);
  check_results(id);
}

void Verifier::check_value(ValueId id) const {
  const Value& v = graph_.value(id);
  const bool held = v.kind == Value::Kind::kInput
                        ? v.index < graph_.inputs().size() && graph_.inputs()[v.index].value == id
                    : v.kind == Value::Kind::kConstant
                        ? v.index < graph_.constants().size() && graph_.constants()[v.index].value == id
                        : v.node < graph_.nodes().size() && graph_.node(v.node).first_result + v.index == id;
  BP_CHECK(held, INTERNAL, "graph ", graph_.name, ": %", id, " is not where its record says");
}

void Verifier::check_updates() const {
  BP_CHECK(graph_.updates.size() <= graph_.outputs.size(), INTERNAL, "graph ", graph_.name, ": has ",
           graph_.updates.size(), " updates and ", graph_.outputs.size(), " outputs, the last of which are theirs");
  for (size_t i = 0; i < graph_.updates.size(); ++i) {
    const ValueId target = graph_.updates[i].target, value = graph_.outputs[graph_.n_results() + i];
    BP_CHECK(target < graph_.values().size() && graph_.value(target).kind != Value::Kind::kResult, VALUE, "graph ",
             graph_.name, ": updates %", target, ", which is not an input or a constant");
    for (size_t k = 0; k < i; ++k)
      BP_CHECK(graph_.updates[k].target != target, VALUE, "graph ", graph_.name, ": updates %", target, " twice");
    const Type was = graph_.type(target), is = graph_.type(value);
    BP_CHECK(was.dtype == is.dtype && was.device.backend == is.device.backend &&
                 was.device.ordinal == is.device.ordinal && sizes(target) == sizes(value),
             VALUE, "graph ", graph_.name, ": updates %", target, ", which is ", type_text(graph_, was), ", with %",
             value, ", which is ", type_text(graph_, is));
  }
}

// Its sizes are numbers, or follow from its inputs, or belong to the outer graph.
void Verifier::check_function(const Graph& inner) {
  std::vector<int64_t> of_outer, examples;
  BP_CHECK(inner.updates.empty(), VALUE, "graph ", graph_.name, ": the graph ", inner.name,
           " within it updates a tensor in place, which only the outermost may. Fix: return the new value");
  if (!graph_.symbols().empty()) of_outer = symbols_within(graph_, examples_, inner);
  for (const Symbol& s : inner.symbols()) examples.push_back(s.example);
  Verifier(inner, of_outer.empty() ? examples : of_outer).run();
  functions_.push_back(std::make_shared<StatedFunction>(inner, std::move(of_outer)));
}

void Verifier::run() {
  CallGuard guard;
  handles_.resize(graph_.values().size());
  for (const auto& inner : graph_.graphs) check_function(*inner);
  for (ValueId id = 0; id < graph_.values().size(); ++id) check_value(id);
  for (const Input& input : graph_.inputs()) handle(input.value);
  for (NodeId id = 0; id < graph_.nodes().size(); ++id)
    if (!graph_.is_erased(id)) check_node(id);
  for (const ValueId id : graph_.outputs) {
    BP_CHECK(id < graph_.values().size(), VALUE, "graph ", graph_.name, ": gives %", id, ", which does not exist");
    const Value& v = graph_.value(id);
    BP_CHECK(v.kind != Value::Kind::kResult || !graph_.is_erased(v.node), VALUE, "graph ", graph_.name, ": gives %", id,
             ", whose node is erased");
  }
  check_updates();
  for (size_t i = 0; i < graph_.draws.size(); ++i) {
    const Draw& draw = graph_.draws[i];
    const bool good = draw.kind == Draw::Kind::kReserved ? draw.generator < graph_.generators.size() &&
                                                               graph_.sizes.evaluate(draw.count, examples_) >= 0
                                                         : draw.kind != Draw::Kind::kDerived || draw.from < i;
    BP_CHECK(good, VALUE, "graph ", graph_.name, ": draw ", i,
             " belongs to a generator or a draw that does not exist, or takes a negative number of counters");
  }
}

}  // namespace

void verify(const Graph& graph) {
  std::vector<int64_t> examples;
  for (const Symbol& s : graph.symbols()) examples.push_back(s.example);
  Verifier(graph, std::move(examples)).run();
}

}  // namespace backplane::core::graph
