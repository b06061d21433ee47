// Runs an op's decomposition: its formula, over arguments of the compute dtype.
#include "call/formulas/decomposition.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "call/formulas/role_calls.hpp"
#include "call/formulas/run_formula.hpp"
#include "call/operand_checks.hpp"
#include "call/own_results.hpp"
#include "call/result_shapes.hpp"
#include "call/row.hpp"
#include "memory/tensors/history.hpp"
#include "record/builtin_numbers.hpp"
#include "record/dtype_rules.hpp"
#include "record/mapped_value.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {

namespace {

// The arguments in the form in which a kernel sees them, as far as dtypes go: those that promote, in the compute dtype.
class PromotedArguments {
 public:
  explicit PromotedArguments(const Call& call)
      : args_(call.args), promote_(call.op.record->def.promote), mask_(call.mask) {
    compute_ = compute_dtype(*call.op.record, call.args, call.n_args);
    if (compute_ == BP_DTYPE_NONE) return;
    bool differ = false;
    for (int32_t i = 0; i < call.n_args; ++i)
      if (promotes(i)) each_tensor(call.args + i, 1, [&](TensorImpl* t) { differ = differ || t->dtype != compute_; });
    if (differ) [[unlikely]]
      cast_all(call);
  }
  PromotedArguments(const PromotedArguments&) = delete;
  ~PromotedArguments() {
    for (TensorImpl* t : held_) release(t);
  }
  const bp_value* get() const { return args_; }

 private:
  bool promotes(int32_t i) const { return i < 64 && (promote_ >> i & 1); }

  bp_tensor* cast(bp_tensor* t) {
    if (t->dtype == compute_) return t;
    held_.push_back(impl(roles::cast(impl(t), compute_, mask_).detach_handle()));
    return held_.back();
  }

  void cast_all(const Call& call) {
    values_.assign(call.args, call.args + call.n_args);
    for (int32_t i = 0; i < call.n_args; ++i) {
      bp_value& v = values_[static_cast<size_t>(i)];
      if (promotes(i)) v = mapped(v, lists_, [this](bp_tensor* t) { return cast(t); });
    }
    args_ = values_.data();
  }

  const bp_value* args_;
  uint64_t promote_;
  uint64_t mask_;
  bp_dtype compute_;
  std::vector<bp_value> values_;
  TensorLists lists_;
  std::vector<TensorImpl*> held_;
};

bool is_attribute(uint16_t kind) {
  return kind == BP_NODE_SHAPE || kind == BP_NODE_NDIM || kind == BP_NODE_DTYPE || kind == BP_NODE_DEVICE;
}

// How an in-place call `x = op(x, …)` runs whose formula ends in a call: that may write x itself, once all other parts
// have been computed.
enum class LastWrite : uint8_t {
  kNone,         // the formula ends otherwise: its result is copied
  kElementwise,  // it ends in an elementwise op
  kInPlace,      // it ends in the in-place form of an op, of x
  kOnly          // that, and nothing else reads elements of x
};

LastWrite last_write(const Call& call) {
  const bool in_place = call.n_outs == 1 && (call.outs[0].flags & BP_VALUE_GIVEN) && call.n_args > 0 &&
                        call.args[0].tag == BP_TAG_TENSOR && call.args[0].u.t == call.outs[0].u.t;
  if (!in_place || call.op.decompose->n_roots != 1) return LastWrite::kNone;
  const FormulaPlan& plan = call.op.record->plan(*call.op.decompose);
  const PlanNode* last = final_call(plan);
  if (!last) return LastWrite::kNone;
  link_entry(const_cast<OpEntry&>(call.op));
  const uint64_t flags = op_entry(call.op.record->calls[static_cast<size_t>(last->imm)])->flags;
  const PlanNode& target = input_node(plan, *last, 0);
  if (target.kind != BP_NODE_ARG || target.imm != 0 || !(flags & BP_OP_INPLACE)) {
    const bool plain = !impl(call.outs[0].u.t)->wrapper && !thread_state.level;
    return plain && (flags & BP_OP_ELEMENTWISE) ? LastWrite::kElementwise : LastWrite::kNone;
  }
  for (const PlanNode& node : plan.nodes)
    for (uint32_t k = &node == last ? 1 : 0; k < node.n_inputs; ++k)
      if (&input_node(plan, node, k) == &target && !is_attribute(node.kind)) return LastWrite::kInPlace;
  return LastWrite::kOnly;
}

// The parts of an in-place call write its target last, but the values that they save for the tape may be the target:
// there they read a copy of it.
class TargetsBefore {
 public:
  TargetsBefore(const Call& call, LastWrite last) : args_(call.args) {
    if (thread_state.grad_disabled || !(call.mask & kTapeKey) || last == LastWrite::kOnly) return;
    for (int32_t j = 0; j < call.n_outs; ++j)
      if (call.outs[j].flags & BP_VALUE_GIVEN) replace(call, call.outs[j].u.t);
  }
  TargetsBefore(const TargetsBefore&) = delete;
  const bp_value* get() const { return args_; }

 private:
  void replace(const Call& call, const bp_tensor* target) {
    bool read = false, followed = false;
    each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
      read = read || t == target;
      followed = followed || (!t->wrapper && (keys_now(t) & kTapeKey));
    });
    if (!read || !followed) return;
    const Tensor& copy = copies_.emplace_back(roles::copy(impl(const_cast<bp_tensor*>(target)), call.mask));
    values_.assign(args_, args_ + call.n_args);
    for (bp_value& v : values_) v = mapped(v, lists_, [&](bp_tensor* t) { return t == target ? copy.get() : t; });
    args_ = values_.data();
  }

  const bp_value* args_;
  std::vector<bp_value> values_;
  std::vector<Tensor> copies_;
  TensorLists lists_;
};

// An inner op may have refused what this op's own rules refuse in the user's terms.
bool blames_arguments(bp_status code) {
  return code == BP_ERROR_SHAPE || code == BP_ERROR_VALUE || code == BP_ERROR_TYPE || code == BP_ERROR_INDEX ||
         code == BP_ERROR_DATA;
}

}  // namespace

// The shape rule is asked when an op further down has refused: asked first, a rule that is a formula would take up to
// three quarters of the call. A decomposition that would take what the rule refuses says `require` itself.
void call_decomposition(const Call& call) {
  try {
    decompose_checked(call);
  } catch (const Error& error) {
    if (blames_arguments(error.code())) ResultShapes(call).check();
    throw;
  }
}

namespace {

// What the formula gave and nobody has taken yet.
struct Results {
  bp_value values[kMaxResults] = {};
  Results() = default;
  Results(const Results&) = delete;
  ~Results() {
    for (bp_value& value : values) release_owned(value, [](bp_tensor* t) { release(impl(t)); });
  }
};

// As views are remembered, at any remove: one inside a transform has no memory of its own to compare.
bool is_view_of(const TensorImpl& tensor, const TensorImpl* base) {
  const TensorImpl* t = &tensor;
  while (t->view && t != base) t = t->view->base;
  return t == base;
}

bool is_handed_on(const Call& call, const TensorImpl& result) {
  bool found = false;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) {
    found = found || (result.storage && t->storage == result.storage) || is_view_of(result, t);
  });
  for (int32_t i = 0; i < call.n_outs; ++i)
    found = found || (call.outs[i].tag == BP_TAG_TENSOR && call.outs[i].u.t == &result);
  return found;
}

void replace(bp_tensor*& held, Tensor by) { release(impl(std::exchange(held, by.detach_handle()))); }

// A formula may return an argument, a view of one, or the same tensor twice. As the result of an op that is
// not a view, it would be written to, and get a history, as a new tensor.
void make_own(const Call& call, bp_tensor*& result) {
  if (!result || !is_handed_on(call, *impl(result))) [[likely]]
    return;
  replace(result, roles::copy(impl(result), call.mask));
}

void make_own(const Call& call, bp_value& result) {
  if (call.op.flags & (BP_OP_COMPOSITE | BP_OP_VIEW | BP_OP_MAYBE_VIEW)) return;
  if (result.tag == BP_TAG_TENSOR) make_own(call, result.u.t);
  if (result.tag != BP_TAG_TENSOR_LIST) return;
  for (uint32_t k = 0; k < result.count; ++k) make_own(call, owned_tensors(result)[k]);
}

// Has the tensor another shape, which broadcasts to this one?
bool expands_to(const TensorImpl& t, const ShapeResult& shape) {
  const int32_t missing = shape.ndim - t.dl.ndim;
  bool differs = missing != 0;
  for (int32_t d = 0; d < t.dl.ndim && missing >= 0; ++d) {
    if (t.dl.shape[d] == shape.sizes[missing + d]) continue;
    if (t.dl.shape[d] != 1) return false;
    differs = true;
  }
  return differs && missing >= 0;
}

// Of several results: one that lies in the memory of an output that another result is written to is copied first, and
// a result of an elementwise op that depends on only some arguments gets the shape of all.
void set_apart(const Call& call, bp_value* results) {
  std::optional<ResultShapes> shapes;
  if (call.op.flags & BP_OP_ELEMENTWISE) shapes.emplace(call);
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (results[i].tag != BP_TAG_TENSOR) continue;
    if (shapes && expands_to(*impl(results[i].u.t), shapes->of(i))) {
      const ShapeResult& shape = shapes->of(i);
      const Tensor whole =
          roles::expand(impl(results[i].u.t), Shape(shape.sizes, static_cast<size_t>(shape.ndim)), call.mask);
      replace(results[i].u.t, roles::copy(impl(whole), call.mask));
    } else if (lies_in_another_output(call, *impl(results[i].u.t), i)) {
      replace(results[i].u.t, roles::copy(impl(results[i].u.t), call.mask));
    }
  }
}

}  // namespace

bool lies_in_another_output(const Call& call, const TensorImpl& result, int32_t own) {
  for (int32_t j = 0; j < call.n_outs; ++j)
    if (j != own && (call.outs[j].flags & BP_VALUE_GIVEN) && result.storage &&
        impl(call.outs[j].u.t)->storage == result.storage)
      return true;
  return false;
}

void decompose_checked(const Call& call) {
  const OpEntry& op = call.op;
  BP_CHECK(op.decompose, INTERNAL, op.record->name, ": has no decomposition");
  const LastWrite last = last_write(call);
  const TargetsBefore before(call, last);
  PromotedArguments promoted({call.op, before.get(), call.n_args, call.outs, call.n_outs, call.mask});
  FormulaInputs inputs;
  inputs.args = promoted.get();
  if (last != LastWrite::kNone && inputs.args[0].u.t == call.outs[0].u.t) inputs.into = call.outs[0].u.t;
  Results results;
  run_formula(op, *op.decompose, inputs, results.values, call.mask);
  if (inputs.into) return;
  for (int32_t i = 0; i < call.n_outs; ++i) {
    bp_value& result = results.values[i];
    if (is_number(result)) {  // a number in the position of a tensor, which the formula hands on
      const bp_dtype dtype = result_dtype(*op.record, call.args, call.n_args, i, number_dtype(result.tag));
      result = owned_value(tensor_of_number(result, dtype, device_of_call(call), call.mask));
    }
  }
  if (call.n_outs > 1) set_apart(call, results.values);
  if (op.owner != core_plugin()) check_decomposed(call, results.values);  // ours are held against their rules by tests
  for (int32_t i = 0; i < call.n_outs; ++i) {
    bp_value &out = call.outs[i], &result = results.values[i];
    if (out.flags & BP_VALUE_GIVEN) {
      roles::copy_into(result, out, call.mask);
    } else if (!(out.flags & BP_VALUE_NOT_WANTED)) {
      make_own(call, result);
      out = std::exchange(result, {});
    }
  }
}

}  // namespace backplane::core
