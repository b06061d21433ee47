#include "bindings/sizes/number_operands.hpp"

#include "backplane/autograd.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/default_float.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

struct TensorsOfCall {
  const bp_tensor* first = nullptr;
  bool have_one_dtype = true;

  void add(const bp_tensor* tensor) {
    if (!tensor) return;
    if (!first) first = tensor;
    have_one_dtype &= tensor->dtype == first->dtype;
  }
};

// Those that share the compute dtype.
TensorsOfCall promoted_tensors(uint64_t promoted, const bp_value* values, int32_t count) {
  TensorsOfCall found;
  for (int32_t i = 0; i < count && i < 64; ++i) {
    if (!(promoted >> i & 1)) continue;
    if (values[i].tag == BP_TAG_TENSOR) found.add(values[i].u.t);
    if (values[i].tag == BP_TAG_TENSOR_LIST)
      for (uint32_t k = 0; k < values[i].count; ++k) found.add(values[i].u.tensors[k]);
  }
  return found;
}

// Does the op compute with a number as with a tensor of its compute dtype? Formulas of a composite op compute with
// numbers alone, and on half floats in a wider dtype.
bool takes_numbers_as_tensors(const bp_op_def& def) {
  return !(def.flags & BP_OP_COMPOSITE) && !(def.dtype_flags & BP_DTYPE_BITS);
}

constexpr bp_dtype_mask kHalves = BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16);

// The dtype in which an op computes with tensors of one dtype and the number. BP_DTYPE_NONE: another one decides.
bp_dtype dtype_beside(bp_dtype tensors, bool is_float) {
  const bp_dtype_mask bit = BP_DTYPE_BIT(tensors);
  if (bit & kHalves) return BP_DTYPE_NONE;
  if (bit & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) return tensors;
  if (is_float) return default_float();
  return bit & BP_MASK_INTEGER ? tensors : bp_dtype{BP_DTYPE_NONE};
}

}  // namespace

void follow_operands(OpHandle op, PyObject* const* given, bp_value* values, int32_t count) noexcept {
  NumberLog* log = NumberLog::current();
  if (!log || op == BP_NO_OP) return;
  const bp_op_def& def = op_def(op);
  const TensorsOfCall tensors = promoted_tensors(def.promote, values, count);
  for (int32_t i = 0; i < count; ++i) {
    if (!given[i] || !is_traced_number(given[i])) continue;
    const bool is_operand = i < 64 && (def.promote >> i & 1) && (values[i].flags & BP_VALUE_NUMBER) && tensors.first &&
                            tensors.have_one_dtype && takes_numbers_as_tensors(def);
    const bp_dtype dtype =
        is_operand ? dtype_beside(tensors.first->dtype, PyFloat_Check(given[i])) : bp_dtype{BP_DTYPE_NONE};
    Tensor tensor;
    try {
      if (dtype != BP_DTYPE_NONE && log->step_of(given[i]) != NumberProgram::Operand::kConstant)
        tensor = log->tensor_of(given[i], dtype, {tensors.first->backend, tensors.first->ordinal});
    } catch (const Error&) {  // then it is a constant
    }
    if (tensor)
      values[i] = tensor_value(tensor.get());
    else
      log->look_at(given[i]);
  }
}

}  // namespace backplane::python
