// Where a call takes the default: its promoted operands have no floating dtype, and a float among them or the op asks
// for one; or a result's dtype is an argument that was left out.
#include "bindings/tensor/default_float.hpp"

#include <algorithm>
#include <bit>

#include "backplane/device.hpp"
#include "bindings/tensor/slots.hpp"

namespace backplane::python {
namespace {

template <class T>
const T& element(const bp_array& array, uint32_t index) noexcept {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + size_t{index} * array.stride);
}

bool is_number(const bp_value& value) noexcept { return value.tag >= BP_TAG_BOOL && value.tag <= BP_TAG_COMPLEX; }

// What the operands of a promotion say.
struct Operands {
  uint64_t dtypes = 0;  // of the tensors, a bit each
  uint16_t number = 0;  // the tag of the widest number

  bool inexact() const { return (dtypes & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) != 0; }
  // uint64 with signed integers: the core says so.
  bool apart() const { return (dtypes & BP_DTYPE_BIT(BP_UINT64)) != 0 && (dtypes & BP_MASK_SIGNED) != 0; }

  void add(const bp_value& value) {
    if (value.tag == BP_TAG_TENSOR) {
      dtypes |= BP_DTYPE_BIT(value.u.t->dtype);
    } else if (is_number(value)) {
      number = std::max(number, value.tag);
    } else if (value.tag == BP_TAG_TENSOR_LIST) {
      for (uint32_t i = 0; i < value.count; ++i)
        if (value.u.tensors[i]) dtypes |= BP_DTYPE_BIT(value.u.tensors[i]->dtype);
    }
  }
};

// The arguments that share the compute dtype; of an op that names none, its first tensor.
uint64_t promoted_arguments(const bp_op_def& def, const std::vector<bp_value>& values) {
  if (def.promote) return def.promote;
  for (uint32_t i = 0; i < values.size(); ++i)
    if (element<bp_arg_def>(def.args, i).type == BP_TYPE_TENSOR && values[i].tag != BP_TAG_ABSENT)
      return uint64_t{1} << i;
  return 0;
}

// Where a result's dtype is the argument `place`, which was left out: that place, else -1.
int32_t dtype_argument(const bp_result_dtype& rule, const std::vector<bp_value>& values) {
  const bool absent = rule.kind == BP_RESULT_DTYPE_FROM_ARG && values[rule.param].tag == BP_TAG_ABSENT;
  return absent ? static_cast<int32_t>(rule.param) : -1;
}

Tensor in_dtype(const Tensor& tensor, bp_dtype dtype) {
  return tensor.dtype() == dtype ? tensor : call(op_of(Slot::Cast), {value(tensor), dtype_value(dtype)});
}

// Of a bool, an int of any size or a float.
double real_of(const bp_value& number) noexcept {
  if (number.tag == BP_TAG_FLOAT || (number.flags & BP_VALUE_BEYOND)) return number.u.f;
  return number.flags & BP_VALUE_UINT64 ? static_cast<double>(static_cast<uint64_t>(number.u.i))
                                        : static_cast<double>(number.u.i);
}

// A number with all its digits.
Tensor tensor_of_number(const bp_value& number) {
  const bool complex = number.tag == BP_TAG_COMPLEX;
  const double pair[] = {complex ? number.u.c[0] : real_of(number), complex ? number.u.c[1] : 0};
  const Tensor wide = from_host(pair, {}, {}, complex ? BP_COMPLEX128 : BP_FLOAT64, default_device());
  return in_dtype(wide, complex ? default_complex() : default_float());
}

}  // namespace

StatedArguments::StatedArguments(OpHandle op, const bp_value* args, int32_t n_args) : values_(args, args + n_args) {
  const std::shared_ptr<const bp_op_def> def = hold_op_def(op);
  for (auto i = static_cast<uint32_t>(n_args); i < def->args.count; ++i)
    values_.push_back(element<bp_arg_def>(def->args, i).default_value);
  const uint64_t promoted = promoted_arguments(*def, values_);
  Operands operands;
  for (uint64_t rest = promoted; rest; rest &= rest - 1)
    operands.add(values_[static_cast<size_t>(std::countr_zero(rest))]);
  const bool takes_float = promoted && !operands.inexact() && !operands.apart() &&
                           (operands.number >= BP_TAG_FLOAT || (def->dtype_flags & BP_DTYPE_TO_FLOATING) != 0);
  const bool complex = operands.number == BP_TAG_COMPLEX;
  bool stated = false;
  for (uint32_t i = 0; i < def->dtypes.count; ++i)
    stated |= state_result(element<bp_result_dtype>(def->dtypes, i), takes_float && operands.dtypes == 0, complex);
  if (takes_float && !stated) state_operands(*def, promoted);
}

// Sets the dtype argument if it stands for the default dtype. Returns whether it did.
bool StatedArguments::state_result(const bp_result_dtype& rule, bool takes_float, bool complex) {
  const int32_t place = dtype_argument(rule, values_);
  if (place < 0) return false;
  const bool fixed = rule.fallback == BP_RESULT_DTYPE_FIXED;
  const bool real = fixed ? rule.fallback_param == BP_FLOAT32 : takes_float && !complex;
  if (!real && !(fixed ? rule.fallback_param == BP_COMPLEX64 : takes_float)) return false;
  values_[static_cast<size_t>(place)] = dtype_value(real ? default_float() : default_complex());
  return true;
}

// Integer and bool tensors in the default; where there are none, numbers as tensors of it.
void StatedArguments::state_operands(const bp_op_def& def, uint64_t promoted) {
  for (uint64_t rest = promoted; rest; rest &= rest - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(rest));
    bp_value& value = values_[i];
    if (value.tag == BP_TAG_TENSOR)
      made_.push_back(in_dtype(Tensor::share(value.u.t), default_float()));
    else if (is_number(value) && element<bp_arg_def>(def.args, i).type == BP_TYPE_TENSOR)
      made_.push_back(tensor_of_number(value));
    else
      continue;
    value = backplane::value(made_.back());
  }
}

}  // namespace backplane::python
