// Views: metadata work of the core, which never reaches a backend.
#include "core/device_call.hpp"
#include "core/dtype_rules.hpp"
#include "core/shape_rules.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {

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
    bp_dtype dtype = shape.view_dtype == BP_DTYPE_NONE ? base->dtype : shape.view_dtype;
    // A view that remembers its base counts no reference to the storage, which the base holds.
    const bool remembered = !thread_state.grad_disabled && (call.op.flags & BP_OP_VIEW);
    if (!remembered) retain(base->storage);
    TensorImpl* view =
        new_tensor_over(base->storage, dtype, shape.ndim, shape.sizes, shape.strides,
                        static_cast<uint64_t>(static_cast<int64_t>(base->dl.byte_offset) + shape.byte_offset));
    call.outs[0] = tensor_value(view);
    if (remembered) remember_view(call, view);
    return;
  }
  // A maybe-view whose strides do not allow one: a row-major copy has the elements in the order asked for.
  BP_CHECK(call.op.flags & BP_OP_MAYBE_VIEW, INTERNAL, record.name, ": its shape rule gives no view");
  bp_value arg = tensor_value(base);
  TensorImpl* copy = call_one(role_op(Role::kCopy), &arg, 1, 0);
  retain(copy->storage);
  call.outs[0] = tensor_value(new_tensor_over(copy->storage, copy->dtype, shape.ndim, shape.sizes, nullptr, 0));
  release(copy);
}

}  // namespace backplane::core
