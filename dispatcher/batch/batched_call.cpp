#include "batch/batched_call.hpp"

#include <algorithm>

#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"

namespace backplane::core {

BatchedCall::BatchedCall(const BatchLevel& of, const Call& the_call)
    : level(of), call(the_call), record(*the_call.op.record) {
  for (int32_t i = 0; i < call.n_args; ++i) {
    batched[i] = false;
    args[i] = mapped(call.args[i], lists_, [&](bp_tensor* t) -> bp_tensor* {
      const Wrapper* wrapper = wrapper_of(level, impl(t));
      batched[i] = batched[i] || (wrapper && wrapper->batched);
      return wrapper ? wrapper->inner : t;
    });
    any = any || batched[i];
  }
}

void BatchedCall::infer_row(int32_t index, ShapeResult& shape) const {
  infer_shape(record, call.args, call.n_args, index, shape);
}

void BatchedCall::set_ints(int32_t arg, const int64_t* list, size_t count) {
  bp_value& v = args[arg];
  v.tag = BP_TAG_INT_LIST;
  v.count = static_cast<uint32_t>(count);
  v.u.ints = list;
}

TensorImpl* BatchedCall::reshape(TensorImpl* x, const int64_t* shape, size_t ndim) {
  return made_.keep(roles::reshape(x, {shape, ndim}, call.mask));
}
TensorImpl* BatchedCall::expand(TensorImpl* x, const int64_t* shape, size_t ndim) {
  return made_.keep(roles::expand(x, {shape, ndim}, call.mask));
}
TensorImpl* BatchedCall::permute(TensorImpl* x, const int64_t* axes, size_t ndim) {
  return made_.keep(roles::permute(x, {axes, ndim}, call.mask));
}

TensorImpl* BatchedCall::padded(TensorImpl* x, int32_t rank) {
  const int32_t missing = rank + 1 - x->dl.ndim;
  if (missing <= 0) return x;
  int64_t* shape = ints(static_cast<size_t>(rank) + 1);
  shape[0] = x->dl.shape[0];
  std::fill_n(shape + 1, missing, 1);
  std::copy_n(x->dl.shape + 1, x->dl.ndim - 1, shape + 1 + missing);
  return reshape(x, shape, static_cast<size_t>(rank) + 1);
}

TensorImpl* BatchedCall::repeated(TensorImpl* x) {
  const auto ndim = static_cast<size_t>(x->dl.ndim);
  int64_t* shape = ints(ndim + 1);
  shape[0] = size();
  std::copy_n(x->dl.shape, ndim, shape + 1);
  return expand(x, shape, ndim + 1);
}

void BatchedCall::batch_list(int32_t arg) {
  const bp_value& given = call.args[arg];
  auto** list = const_cast<bp_tensor**>(args[arg].u.tensors);  // the array that the constructor made
  for (uint32_t k = 0; k < given.count; ++k) {
    if (!given.u.tensors[k]) continue;
    const Wrapper* wrapper = wrapper_of(level, impl(given.u.tensors[k]));
    if (!wrapper || !wrapper->batched) list[k] = repeated(impl(list[k]));
  }
}

void BatchedCall::reshape_result(int32_t index, const int64_t* shape, size_t ndim) {
  TensorImpl* result = made_.keep(impl(call.outs[index].u.t));
  call.outs[index] = bp_value{};
  call.outs[index] = owned_value(roles::reshape(result, {shape, ndim}, call.mask));
}

}  // namespace backplane::core
