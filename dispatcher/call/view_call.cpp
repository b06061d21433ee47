// Views: metadata work of the core, which never reaches a backend. The fast path and the slow one make the same
// view; the fast one leaves to the other whatever its conditions do not cover, every fault included that is not the
// shape rule's.
#include "call/view_call.hpp"

#include "call/fast_call.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/operand_checks.hpp"
#include "call/view_record.hpp"
#include "memory/tensors/new_tensor.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {
namespace {

// A view that remembers its base counts no reference to the storage, which the base holds.
[[gnu::always_inline]] inline TensorImpl* make_view(const OpEntry& op, const bp_value* args, int32_t n_args,
                                                    TensorImpl* base, const ShapeResult& shape) {
  TensorImpl* view = new_view(*base, shape);
  constexpr uint32_t kInexact = BP_MASK_FLOATING | BP_MASK_COMPLEX;
  const bool has_derivative = (BP_DTYPE_BIT(base->dtype) | BP_DTYPE_BIT(view->dtype)) & kInexact;
  const bool unrecorded = thread_state.grad_disabled || (shape.view_dtype != BP_DTYPE_NONE && is_constant_view(op));
  if (unrecorded && !has_derivative) {
    retain(base->storage);
    return view;
  }
  if (ViewRecord* same = base->view ? same_view(*view, *base) : nullptr) [[unlikely]]
    remember_view(*same->op, same->args(), same->n_args, same->base, view, unrecorded || same->unrecorded);
  else
    remember_view(op, args, n_args, base, view, unrecorded);
  if (has_derivative) view->set_keys(kViewKey);
  return view;
}

}  // namespace

template <>
[[gnu::always_inline]] inline bool call_fast<FastPath::kView>(const OpEntry& op, const Plan&, const bp_value* args,
                                                              bp_value* out, uint64_t, Operands operands) {
  const OpRecord& record = *op.record;
  auto* base = const_cast<TensorImpl*>(operands.first);
  if (args[0].tag != BP_TAG_TENSOR || !base->storage || out->flags != 0 || (base->flags & BP_TENSOR_NUMBER))
    return false;
  if (op.withdrawn.load(std::memory_order_acquire)) return false;
  if (!(BP_DTYPE_BIT(base->dtype) & record.alike_dtypes)) return false;
  check_usable(*base->storage->device);
  ShapeResult shape;
  record.shape_words[0]->fn(record, record.shapes[0], args, shape);
  if (!shape.is_view) return false;
  *out = tensor_value(make_view(op, args, op.n_args, base, shape));
  return true;
}

namespace {
[[gnu::constructor]] void register_view() { register_edges<FastPath::kView>(); }
}  // namespace

void call_view(const Call& call) {
  const OpRecord& record = *call.op.record;
  BP_CHECK(call.n_outs == 1 && !(call.outs[0].flags & (BP_VALUE_GIVEN | BP_VALUE_NOT_WANTED)), VALUE, record.name,
           ": gives a view and takes no output to write into");
  const bp_value& source = call.args[record.def.alias];
  BP_CHECK(source.tag == BP_TAG_TENSOR, TYPE, record.name, ": \"", record.args[record.def.alias].name,
           "\" must be a tensor, found a number");
  TensorImpl* base = impl(source.u.t);
  // One tensor says where the call is; a further one, or a transform's, is looked at in full.
  const bool alone = record.tensor_args == uint64_t{1} << record.def.alias && base->storage;
  check_usable(alone ? *base->storage->device : device_of_call(call));
  compute_dtype(record, call.args, call.n_args);
  ShapeResult shape;
  infer_shape(record, call.args, call.n_args, 0, shape);
  if (shape.is_view) {
    call.outs[0] = tensor_value(make_view(call.op, call.args, call.n_args, base, shape));
    return;
  }
  // A maybe-view whose strides do not allow one: a row-major copy has the elements in the order asked for.
  BP_CHECK(call.op.flags & BP_OP_MAYBE_VIEW, INTERNAL, record.name, ": its shape rule gives no view");
  const Tensor copy = roles::copy(base, 0);
  bp_storage* storage = copy.get()->storage;
  retain(storage);
  call.outs[0] = tensor_value(new_tensor_over(storage, copy.dtype(), shape.ndim, shape.sizes, nullptr, 0));
}

}  // namespace backplane::core
