// Kernels and decompositions that make their results themselves: what the op's rules say of each, and the check of what
// came.
//
// Any thread. An OwnResults lives as long as the call that it borrows.
#include "call/own_results.hpp"

#include "call/dispatch.hpp"
#include "call/operand_checks.hpp"
#include "memory/devices/device.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_words.hpp"

namespace backplane::core {
namespace {

bool is_dynamic(const Call& call, int32_t result) {
  return call.op.record->shape_words[static_cast<size_t>(result)] == nullptr && (call.op.flags & BP_OP_DYNAMIC);
}

bool is_list(const Call& call, int32_t result) {
  return (call.op.record->results[static_cast<size_t>(result)].flags & BP_ARG_LIST) != 0;
}

std::string form(bp_dtype dtype, const int64_t* sizes, int32_t ndim) {
  return std::string(kDtypeNames[dtype]) + " of shape " + shape_text({sizes, static_cast<size_t>(ndim)});
}

// `who` made the tensor as result `i`.
void check_stated(const Call& call, const char* who, int32_t i, const bp_tensor& t, const ShapeResult& shape,
                  bp_dtype dtype) {
  const bool same =
      t.dtype == dtype && t.dl.ndim == shape.ndim && std::equal(t.dl.shape, t.dl.shape + t.dl.ndim, shape.sizes);
  BP_CHECK(same, SHAPE, call.op.record->name, ": its ", who, " made result ", i, " ",
           form(t.dtype, t.dl.shape, t.dl.ndim), "; its shape rule says ", form(dtype, shape.sizes, shape.ndim),
           ": correct one of them");
}

}  // namespace

OwnResults::OwnResults(const Call& call, Device& device, bp_dtype compute, ResultShapes& shapes)
    : call_(call), device_(device), expected_(static_cast<size_t>(call.n_outs)) {
  const OpRecord& record = *call.op.record;
  for (int32_t i = 0; i < call.n_outs; ++i) {
    const bp_value& slot = call.outs[i];
    if (slot.flags & BP_VALUE_NOT_WANTED) continue;
    const bool given = (slot.flags & BP_VALUE_GIVEN) != 0;
    if (is_list(call, i) || is_dynamic(call, i)) {
      BP_CHECK(!given, NOT_IMPLEMENTED, record.name, ": its kernel decides the ",
               is_list(call, i) ? "number of tensors" : "shape", " of result ", i,
               ", so it cannot be written into a given output");
      continue;
    }
    Expected& expected = expected_[static_cast<size_t>(i)];
    expected.shape = &shapes.of(i);
    expected.dtype = result_dtype(record, call.args, call.n_args, i, compute);
    if (given) check_given(call.op, *impl(slot.u.t), *expected.shape, expected.dtype, device);
  }
}

void OwnResults::check(const bp_value* outs) const {
  for (int32_t i = 0; i < call_.n_outs; ++i) {
    if (call_.outs[i].flags & BP_VALUE_NOT_WANTED) continue;
    const uint16_t wanted = is_list(call_, i) ? BP_TAG_TENSOR_LIST : BP_TAG_TENSOR;
    BP_CHECK(outs[i].tag == wanted && outs[i].u.p, TYPE, call_.op.record->name, ": its kernel stored ",
             outs[i].tag == BP_TAG_ABSENT ? "nothing" : "a value of another kind", " as result ", i, "; expected a ",
             wanted == BP_TAG_TENSOR ? "tensor" : "list of tensors");
    each_tensor(outs + i, 1, [&](TensorImpl* t) {
      BP_CHECK(&device_of(*t) == &device_, VALUE, call_.op.record->name, ": its kernel for ", name_of(device_),
               " made result ", i, " on ", name_of(device_of(*t)));
    });
    if (wanted == BP_TAG_TENSOR) check_tensor(i, outs[i]);
  }
}

void OwnResults::check_tensor(int32_t i, const bp_value& found) const {
  const Expected& expected = expected_[static_cast<size_t>(i)];
  if (expected.dtype == BP_DTYPE_NONE) return;
  check_stated(call_, "kernel", i, *found.u.t, *expected.shape, expected.dtype);
}

void check_decomposed(const Call& call, const bp_value* results) {
  const bp_dtype compute = compute_dtype(*call.op.record, call.args, call.n_args);
  ResultShapes shapes(call);
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (results[i].tag != BP_TAG_TENSOR || is_list(call, i) || is_dynamic(call, i)) continue;
    const bp_dtype dtype = result_dtype(*call.op.record, call.args, call.n_args, i, compute);
    if (dtype != BP_DTYPE_NONE) check_stated(call, "decomposition", i, *results[i].u.t, shapes.of(i), dtype);
  }
}

}  // namespace backplane::core
