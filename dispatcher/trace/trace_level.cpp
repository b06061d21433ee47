#include "trace/trace_level.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "call/formulas/decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/operand_checks.hpp"
#include "control/structured.hpp"
#include "graph/graph_body.hpp"
#include "graph/ruled_graph.hpp"
#include "levels/inplace.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/lock.hpp"
#include "record/builtin_numbers.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"
#include "trace/body_draws.hpp"
#include "trace/trace_updates.hpp"

namespace backplane::core {

using graph::Argument;
using graph::Dim;
using graph::Type;
using graph::ValueId;

namespace {

StaticLock names_lock{LockRank::kPool};

// The level's tensors show its name for as long as they live, which may be longer than the caller's text.
const char* lasting(const char* name) {
  static auto* names = new std::set<std::string>;  // never destroyed: tensors may outlive statics
  std::lock_guard guard(names_lock);
  return names->insert(name).first->c_str();
}

}  // namespace

TraceLevel::TraceLevel(const char* name, std::function<SourceLine()> where)
    : Level(lasting(name), Takes::kEveryCall),
      graph_(std::make_shared<graph::Graph>()),
      random_(*graph_, serial),
      where_(std::move(where)),
      outer_sites_(trace_sites) {
  graph_->name = name;
  trace_sites = this;
}

TraceLevel::~TraceLevel() {
  if (trace_sites == this) trace_sites = outer_sites_;
}

void TraceLevel::note(const Node& node) {
  if (!graph_->nodes().empty()) noted_[&node] = {node.op, graph_->nodes().back().location};
}

uint32_t TraceLevel::enter(const Node& node) {
  const auto noted = noted_.find(&node);
  const bool known = noted != noted_.end() && noted->second.op == node.op;
  return std::exchange(derived_, known ? noted->second.location : graph::kNone);
}

TensorImpl* TraceLevel::traced(ValueId value, Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes,
                               const int64_t* strides) {
  TensorImpl* inner = new_handle(device, dtype, ndim, sizes);
  inner->flags |= BP_TENSOR_WRAPPER;  // it promises no data
  inner->node_output = value;
  TensorImpl* t = wrap(*this, inner);
  for (int32_t i = 0; strides && i < ndim; ++i) {
    if (sizes[i] != 1 && strides[i] != t->dl.strides[i]) t->flags &= ~BP_TENSOR_CONTIGUOUS;
    t->dl.strides[i] = strides[i];
  }
  return t;
}

// What an op makes is row-major, and a view has the strides of its rule.
bool TraceLevel::knows_strides(const TensorImpl& whole) const {
  const auto is_it = [&](const Tensor& t) { return t.get() == &whole; };
  return wrapper_of(*this, &whole) && std::none_of(inputs_.begin(), inputs_.end(), is_it) &&
         std::none_of(of_control_flow_.begin(), of_control_flow_.end(), is_it);
}

namespace {

ValueId add_lifted(graph::Graph& graph, const Tensor& tensor, size_t index) {
  const std::vector<Dim> dims(tensor.shape().begin(), tensor.shape().end());
  return graph.add_input("lifted" + std::to_string(index), {tensor.dtype(), tensor.device(), dims});
}

}  // namespace

Tensor TraceLevel::enter(const Tensor& example, std::string name, std::optional<Shape> shape) {
  const bp_tensor& like = *example.held();
  const Shape sizes = shape.value_or(example.shape());
  const std::vector<Dim> dims(sizes.begin(), sizes.end());
  const ValueId value = graph_->add_input(std::move(name), {like.dtype, {like.backend, like.ordinal}, dims});
  inputs_.push_back(
      Tensor::adopt(traced(value, device_of(like), like.dtype, static_cast<int32_t>(sizes.size()), sizes.data())));
  return inputs_.back();
}

ValueId TraceLevel::value_of(TensorImpl* tensor) {
  if (const Wrapper* wrapper = wrapper_of(*this, tensor)) {
    const TensorImpl* inner = wrapper->inner;
    if (inner->flags & BP_TENSOR_WRAPPER && !inner->wrapper) return inner->node_output;
    tensor = wrapper->inner;  // an in-place change gave it a value from outside
  }
  if (differentiable_ && recording_ && !tensor->wrapper && wants_grad(tensor))
    differentiable_->push_back(Tensor::share(tensor));
  // Under a tape, which knows what is differentiated, a tensor over the memory of another is that one from the
  // beginning.
  if (TensorImpl* t = stand_in_for(tensor); t && (differentiable_ || t->wrapper->version != 0)) return value_of(t);
  const auto [place, is_new] = constants_.try_emplace(tensor, 0);
  if (!is_new) return place->second;
  if (lifted_ && !(keeps_constants_ && tensor->storage && !wants_grad(tensor))) {
    lifted_->push_back(Tensor::share(tensor));
    place->second = add_lifted(*graph_, lifted_->back(), lifted_->size() - 1);
  } else {
    place->second = graph_->add_constant(Tensor::share(tensor), {}, true);
  }
  return place->second;
}

ValueId TraceLevel::used_value(TensorImpl* tensor, bool by_loop) {
  const ValueId value = value_of(tensor);
  if (runs_only_ || !(recording_ ? unrecorded_.count(value) > 0 : by_loop && is_inexact(value))) return value;
  const auto [place, is_new] = constant_of_.try_emplace(value, graph::kNone);
  if (is_new) {
    const Argument x = Argument::of(value);
    const Type type = graph_->type(value);
    const std::vector<Dim> dims(type.dims.begin(), type.dims.end());  // which adding a node may move
    const Type types[] = {{type.dtype, type.device, dims}};
    place->second =
        graph_->node(graph_->add_node(role_op(Role::kReverseConstant), {&x, 1}, types, location())).first_result;
  }
  return place->second;
}

bool TraceLevel::is_inexact(ValueId value) const {
  return (BP_DTYPE_BIT(graph_->value(value).dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) != 0;
}

void TraceLevel::note_unrecorded(graph::NodeId id) {
  if (recording_) return;
  graph_->not_of_ops = "no_grad";
  const graph::Node& node = graph_->node(id);
  for (ValueId value = node.first_result; value < node.first_result + node.n_results; ++value)
    if (is_inexact(value)) unrecorded_.insert(value);
}

Argument TraceLevel::argument_of(const bp_value& value) {
  switch (value.tag) {
    case BP_TAG_TENSOR:
      return Argument::of(used_value(impl(value.u.t)));
    case BP_TAG_TENSOR_LIST: {
      std::vector<ValueId> ids;
      for (uint32_t k = 0; k < value.count; ++k)
        ids.push_back(value.u.tensors[k] ? used_value(impl(value.u.tensors[k])) : graph::kNone);
      return graph_->list(ids);
    }
    case BP_TAG_GENERATOR:
      return random_.argument(*value.u.g);
    default:
      return graph_->copy(value);
  }
}

void TraceLevel::lift(std::vector<Tensor>& lifted) {
  lifted_ = &lifted;
  for (size_t i = 0; i < lifted.size(); ++i) constants_.try_emplace(impl(lifted[i]), add_lifted(*graph_, lifted[i], i));
}

uint32_t TraceLevel::location() {
  if (derived_ != graph::kNone) return derived_;
  if (!where_) return graph::kNone;
  SourceLine line = where_();
  if (line.line == 0) return graph::kNone;
  return graph_->add_location({std::move(line.file), std::move(line.function), line.line});
}

std::string TraceLevel::line_of_program() const {
  const SourceLine at = where_ ? where_() : SourceLine{};
  if (at.line == 0) return {};
  return " (" + at.file + ":" + std::to_string(at.line) + (at.function.empty() ? "" : " in " + at.function) + ")";
}

// The entry's reason not to batch says what to call in its place, where there is such an op.
void TraceLevel::check_shapes_known(const OpEntry& op) const {
  if (!(op.flags & BP_OP_DYNAMIC) || (op.flags & BP_OP_HIGHER_ORDER)) return;
  const bp_formula* batch = op.batch.formula;
  const bool reason = batch && (batch->flags & BP_FORMULA_REFUSED) && batch->text;
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, op.record->name, ": the shape of its result depends on values, which ",
               transform, " does not know", reason ? " (" : "", reason ? batch->text : "", reason ? ")" : "",
               ". Fix: keep all elements and choose with where, or call it outside of the traced function");
}

void TraceLevel::handle(const Call& call) {
  const OpEntry& op = call.op;
  check_shapes_known(op);
  if (op.flags & BP_OP_COMPOSITE) return call_decomposition(call);
  for (const bp_result_def& result : op.record->results) {
    if (!(result.flags & BP_ARG_LIST)) continue;
    BP_CHECK(op.decompose, NOT_IMPLEMENTED, op.record->name, ": ", transform,
             " cannot record a result that is a list of tensors, and the op has no decomposition. Fix: give its "
             "entry one, or call it outside");
    return call_decomposition(call);
  }
  record(call);
}

void TraceLevel::record(const Call& call) {
  const OpRecord& record = *call.op.record;
  Device& device = device_of_operands(call);
  const bp_dtype compute = compute_dtype(record, call.args, call.n_args);
  std::vector<ShapeResult> shapes(static_cast<size_t>(call.n_outs));
  std::vector<std::vector<Dim>> dims(shapes.size());
  std::vector<Type> types;
  for (int32_t j = 0; j < call.n_outs; ++j) {
    ShapeResult& shape = shapes[static_cast<size_t>(j)];
    infer_shape(record, call.args, call.n_args, j, shape);
    bp_dtype dtype = result_dtype(record, call.args, call.n_args, j, compute);
    if (shape.is_view && shape.view_dtype != BP_DTYPE_NONE) dtype = shape.view_dtype;
    checked_count(shape.sizes, shape.ndim);
    dims[static_cast<size_t>(j)].assign(shape.sizes, shape.sizes + shape.ndim);
    types.push_back({dtype, id_of(device), dims[static_cast<size_t>(j)]});
  }
  Argument arguments[kMaxArgs];
  for (int32_t i = 0; i < call.n_args; ++i) {
    bp_value v = call.args[i];
    if ((record.tensor_args >> (i & 63) & 1) && is_number(v)) v.flags |= BP_VALUE_NUMBER;
    arguments[i] = argument_of(v);
  }
  const uint16_t flags = is_recomputing() ? graph::Node::kRecomputed : 0;
  const graph::NodeId node =
      graph_->add_node(call.op, {arguments, static_cast<size_t>(call.n_args)}, types, location(), flags);
  note_unrecorded(node);
  const ValueId first = graph_->node(node).first_result;
  for (int32_t j = 0; j < call.n_outs; ++j) {
    const ShapeResult& shape = shapes[static_cast<size_t>(j)];
    call.outs[j] = tensor_value(traced(first + static_cast<ValueId>(j), device, types[static_cast<size_t>(j)].dtype,
                                       shape.ndim, shape.sizes, shape.is_view ? shape.strides : nullptr));
  }
}

// Control flow is one node, and so is a function whose rules are kept. Of any other function its own ops are written
// down, at the levels that are active inside it.
std::vector<Tensor> TraceLevel::call_graph(const OpEntry& op, GraphFunction& function, std::span<const Tensor> args) {
  using Rule = GraphFunction::Rule;
  if (const auto* structured = dynamic_cast<const Structured*>(&function)) return record_structured(*structured, args);
  if (const auto* ruled = dynamic_cast<const graph::RuledGraph*>(&function))
    return record_function(op, ruled->graph(), args);
  if (!is_closed(function)) {
    if (keeps_rules_) {
      std::vector<Tensor> all(args.begin(), args.end());
      if (const auto graph = with_rules(function, all)) return record_function(op, graph, all);
    }
    if (function.recompute())
      graph_->not_of_ops = function.name();
    else if (function.has(Rule::kBackward) || function.has(Rule::kJvp))
      graph_->own_rules = graph_->not_of_ops = function.name();
    if (function.has(Rule::kBatch)) graph_->own_batch = graph_->not_of_ops = function.name();
  }
  return function.call(args);
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

namespace {

using MadeInside = std::function<bool(const bp_generator_state*)>;

// Tensors that it uses from outside, and that `bodies.lifted` lacks, are appended there.
std::shared_ptr<graph::Graph> trace_body(const BodyOf& body, Bodies& bodies, const std::function<SourceLine()>& where,
                                         const MadeInside& made_inside) {
  CallGuard guard;
  std::optional<TraceLevel> scope(std::in_place, body.name, where);
  TraceLevel& level = *scope;
  std::vector<Tensor> entered;
  for (size_t i = 0; i < body.examples.size(); ++i) {
    Tensor example = body.examples[i];
    const bool row = i >= body.first_row && i < body.first_row + body.n_rows;
    BP_CHECK(!row || example.ndim() > 0, SHAPE, body.name,
             ": argument xs: found a tensor without dimensions, expected axis 0 to loop over");
    if (row) example = example_of(example.shape().subspan(1), example);
    entered.push_back(level.enter(example, "x" + std::to_string(i)));
  }
  level.lift(bodies.lifted);
  level.keep_rules();
  const std::vector<Tensor> results = body.function(entered);
  const std::vector<bp_generator_state*> generators = level.random().generators();
  for (size_t i = 0; made_inside && i < generators.size(); ++i)
    if (made_inside(generators[i])) level.random().fix(i);
  auto graph = level.finish(results);
  scope.reset();
  check_no_updates(*graph, body.name);
  return draw_outside(std::move(graph), body, generators, bodies);
}

}  // namespace

TraceScope::TraceScope(const char* transform, std::function<SourceLine()> where)
    : level_(std::make_unique<TraceLevel>(transform, std::move(where))) {}
TraceScope::~TraceScope() = default;

Tensor TraceScope::enter(const Tensor& example, std::string name, std::optional<Shape> shape) {
  CallGuard guard;
  level_->check_active();
  return level_->enter(example, std::move(name), shape);
}

Graph TraceScope::leave(std::span<const Tensor> results, GraphOptions options) {
  CallGuard guard;
  return Graph(level_->finish(results), std::move(options));
}

void TraceScope::runs_only() { level_->runs_only(); }
std::span<bp_generator_state* const> TraceScope::generators() const { return level_->random().generators(); }
std::vector<TensorRead> TraceScope::reads() const { return level_->reads(); }
std::vector<Tensor> TraceScope::changed() const { return level_->changed_outside(); }
bool TraceScope::has_changed(const Tensor& entered) const { return level_->has_changed(entered); }
void TraceScope::fix_generator(size_t index) { level_->random().fix(index); }

Bodies make_bodies(std::span<const BodyOf> functions, std::span<const Tensor> lifted_so_far,
                   const std::function<SourceLine()>& where, const MadeInside& made_inside) {
  Bodies bodies;
  bodies.lifted.assign(lifted_so_far.begin(), lifted_so_far.end());
  // Each is traced once: a tensor that its function makes of numbers is another one at every run.
  std::vector<std::shared_ptr<graph::Graph>> graphs;
  std::vector<size_t> n_lifted;
  for (const BodyOf& body : functions) {
    graphs.push_back(trace_body(body, bodies, where, made_inside));
    n_lifted.push_back(bodies.lifted.size());
  }
  for (size_t b = 0; b < graphs.size(); ++b) {
    for (size_t i = n_lifted[b]; i < bodies.lifted.size(); ++i) add_lifted(*graphs[b], bodies.lifted[i], i);
    bodies.functions.push_back(std::make_shared<graph::GraphBody>(std::move(graphs[b])));
  }
  return bodies;
}

}  // namespace backplane
