// Promotion and the dtypes of a call: the table of the array API standard, and the rules that read it.
//
// Pure functions over values and records; any thread. Calls of one or two tensors of one dtype do not come here.
#include "record/dtype_rules.hpp"

#include <bit>

namespace backplane::core {
namespace {

constexpr int bits_of_integer(bp_dtype dtype) {
  return is_in(dtype, BP_MASK_SIGNED) ? 8 << (dtype - BP_INT8) : 8 << (dtype - BP_UINT8);
}

constexpr bp_dtype promote_integers(bp_dtype a, bp_dtype b) {
  if (is_in(a, BP_MASK_SIGNED) == is_in(b, BP_MASK_SIGNED)) return a > b ? a : b;
  const bp_dtype with_sign = is_in(a, BP_MASK_SIGNED) ? a : b;
  const bp_dtype without = is_in(a, BP_MASK_SIGNED) ? b : a;
  if (without == BP_UINT64) return BP_DTYPE_NONE;
  const bp_dtype next = static_cast<bp_dtype>(BP_INT16 + (without - BP_UINT8));  // the signed type that holds `without`
  return bits_of_integer(with_sign) > bits_of_integer(without) ? with_sign : next;
}

constexpr bp_dtype promote_floating(bp_dtype a, bp_dtype b) {
  if (a == b) return a;
  const bp_dtype wider = a > b ? a : b;
  return wider == BP_BFLOAT16 ? bp_dtype{BP_FLOAT32} : wider;  // float16 with bfloat16: neither holds the other
}

constexpr bp_dtype promote(bp_dtype a, bp_dtype b) {
  if (a == b || b == BP_BOOL) return a;
  if (a == BP_BOOL) return b;
  if (is_in(a, BP_MASK_INTEGER) && is_in(b, BP_MASK_INTEGER)) return promote_integers(a, b);
  if (is_in(a, BP_MASK_INTEGER)) return b;
  if (is_in(b, BP_MASK_INTEGER)) return a;
  if (is_in(a, BP_MASK_FLOATING) && is_in(b, BP_MASK_FLOATING)) return promote_floating(a, b);
  const bool wide = a == BP_COMPLEX128 || b == BP_COMPLEX128 || a == BP_FLOAT64 || b == BP_FLOAT64;
  return wide ? BP_COMPLEX128 : BP_COMPLEX64;
}

constexpr PromotionTable make_table() {
  PromotionTable table{};
  for (bp_dtype a = 0; a < BP_DTYPE_COUNT; ++a)
    for (bp_dtype b = 0; b < BP_DTYPE_COUNT; ++b) table[a][b] = promote(a, b);
  return table;
}

constexpr bp_dtype default_of_number(uint16_t tag) {
  switch (tag) {
    case BP_TAG_BOOL:
      return BP_BOOL;
    case BP_TAG_INT:
      return BP_INT64;
    case BP_TAG_COMPLEX:
      return BP_COMPLEX64;
    default:
      return kDefaultFloat;
  }
}

// The number tag of a dtype's kind; tags of numbers are ordered as kinds are.
constexpr uint16_t number_tag(bp_dtype dtype) {
  if (dtype == BP_BOOL) return BP_TAG_BOOL;
  if (is_in(dtype, BP_MASK_INTEGER)) return BP_TAG_INT;
  return is_in(dtype, BP_MASK_FLOATING) ? BP_TAG_FLOAT : BP_TAG_COMPLEX;
}

bool is_number_tag(uint16_t tag) { return tag >= BP_TAG_BOOL && tag <= BP_TAG_COMPLEX; }

std::string list_dtypes(bp_dtype_mask mask) {
  std::string text;
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d)
    if (is_in(d, mask)) text += (text.empty() ? "" : ", ") + std::string(kDtypeNames[d]);
  return text;
}

// What the operands of a promotion have in common so far.
struct Promotion {
  bp_dtype strong = BP_DTYPE_NONE;  // of tensors
  bp_dtype weak = BP_DTYPE_NONE;    // of tensors made from numbers, used only among themselves
  uint16_t tag = 0;                 // the highest kind of a number
};

[[noreturn, gnu::cold, gnu::noinline]] void fail_promotion(const OpRecord& op, uint32_t arg, bp_dtype found,
                                                           bp_dtype other) {
  const bool exact = (op.def.dtype_flags & BP_DTYPE_BITS) != 0;
  detail::fail(
      BP_ERROR_DTYPE, op.name, ": argument '", op.args[arg].name, "' is ", kDtypeNames[found],
      ", but the arguments before it are ", kDtypeNames[other],
      exact ? "; this op takes one dtype for all: cast one of them" : "; these have no common dtype: cast one of them");
}

void add_tensor(const OpRecord& op, uint32_t arg, const bp_tensor& tensor, Promotion& sum) {
  if (tensor.flags & BP_TENSOR_NUMBER) {
    const bp_dtype weak = sum.weak == BP_DTYPE_NONE ? tensor.dtype : kPromotion[sum.weak][tensor.dtype];
    if (weak == BP_DTYPE_NONE) fail_promotion(op, arg, tensor.dtype, sum.weak);
    sum.weak = weak;
    if (number_tag(tensor.dtype) > sum.tag) sum.tag = number_tag(tensor.dtype);
    return;
  }
  if (sum.strong == tensor.dtype) return;
  if (sum.strong == BP_DTYPE_NONE) {
    sum.strong = tensor.dtype;
    return;
  }
  const bool exact = (op.def.dtype_flags & BP_DTYPE_BITS) != 0;
  const bp_dtype both = exact ? bp_dtype{BP_DTYPE_NONE} : kPromotion[sum.strong][tensor.dtype];
  if (both == BP_DTYPE_NONE) fail_promotion(op, arg, tensor.dtype, sum.strong);
  sum.strong = both;
}

void add_value(const OpRecord& op, uint32_t arg, const bp_value& value, Promotion& sum) {
  if (value.tag == BP_TAG_TENSOR) {
    add_tensor(op, arg, *value.u.t, sum);
  } else if (is_number_tag(value.tag)) {
    if (value.tag > sum.tag) sum.tag = value.tag;
  } else if (value.tag == BP_TAG_TENSOR_LIST) {
    for (uint32_t i = 0; i < value.count; ++i)
      if (const bp_tensor* tensor = value.u.tensors[i]) add_tensor(op, arg, *tensor, sum);
  } else if (value.tag == BP_TAG_VALUE_LIST) {
    for (uint32_t i = 0; i < value.count; ++i) add_value(op, arg, value.u.values[i], sum);
  }
}

// The dtype that an argument states: the caller's number, which nobody has looked at.
bp_dtype dtype_argument(const OpRecord& op, uint32_t arg, const bp_value& value) {
  BP_CHECK(static_cast<uint64_t>(value.u.i) < BP_DTYPE_COUNT, DTYPE, op.name, ": argument '", op.args[arg].name,
           "': found the unknown dtype ", value.u.i);
  return static_cast<bp_dtype>(value.u.i);
}

// What the first result's rule says without a compute dtype; NONE: nothing. A fixed dtype says nothing of the numbers
// that it is computed from, as in a comparison.
bp_dtype stated_dtype(const OpRecord& op, const bp_value* args, bool numbers) {
  if (op.dtypes.empty()) return BP_DTYPE_NONE;
  const bp_result_dtype& rule = op.dtypes[0];
  if (rule.kind == BP_RESULT_DTYPE_FIXED) return numbers ? bp_dtype{BP_DTYPE_NONE} : static_cast<bp_dtype>(rule.param);
  if (rule.kind != BP_RESULT_DTYPE_FROM_ARG) return BP_DTYPE_NONE;
  if (args[rule.param].tag == BP_TAG_DTYPE) return dtype_argument(op, rule.param, args[rule.param]);
  return rule.fallback == BP_RESULT_DTYPE_FIXED ? static_cast<bp_dtype>(rule.fallback_param) : bp_dtype{BP_DTYPE_NONE};
}

bp_dtype settle(const OpRecord& op, const bp_value* args, const Promotion& sum) {
  if (sum.strong != BP_DTYPE_NONE) {
    const bp_dtype dtype = sum.tag ? promote_number(sum.strong, sum.tag) : sum.strong;
    BP_CHECK(dtype == sum.strong || !(op.def.dtype_flags & BP_DTYPE_BITS), DTYPE, op.name, ": a ",
             kDtypeNames[default_of_number(sum.tag)], " number does not fit the tensors' ", kDtypeNames[sum.strong],
             "; this op takes one dtype for all: cast the tensors");
    return dtype;
  }
  if (sum.weak != BP_DTYPE_NONE) return promote_number(sum.weak, sum.tag);
  // No tensor: a creation op, which computes in the dtype that it is asked for.
  const bp_dtype stated = stated_dtype(op, args, sum.tag != 0);
  if (stated != BP_DTYPE_NONE) return stated;
  return sum.tag ? default_of_number(sum.tag) : kDefaultFloat;
}

Promotion first_tensor(const OpRecord& op, const bp_value* args) {
  Promotion sum;
  for (uint64_t rest = op.tensor_args; rest; rest &= rest - 1) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
    if (args[i].tag == BP_TAG_TENSOR_LIST && args[i].count && args[i].u.tensors[0]) {
      sum.strong = args[i].u.tensors[0]->dtype;
    } else if (args[i].tag == BP_TAG_TENSOR) {
      sum.strong = args[i].u.t->dtype;
    } else {
      add_value(op, i, args[i], sum);
    }
    if (sum.strong != BP_DTYPE_NONE) break;
  }
  return sum;
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_accept(const OpRecord& op, uint32_t arg, const char* what,
                                                        bp_dtype found) {
  const bp_dtype_mask mask = op.accepts[arg];
  const bool has_example = is_in(kDefaultFloat, mask) && !is_in(found, BP_MASK_COMPLEX);
  const std::string example = has_example ? std::string(", to ") + kDtypeNames[kDefaultFloat] + " for instance" : "";
  detail::fail(BP_ERROR_DTYPE, op.name, ": argument '", op.args[arg].name, "' ", what, " ", kDtypeNames[found],
               "; accepted: ", list_dtypes(mask), ". Fix: cast it", example);
}

[[gnu::cold, gnu::noinline]] void fail_compute(const OpRecord& op, bp_dtype compute) {
  for (uint64_t rest = op.def.promote; rest; rest &= rest - 1) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
    if (op.accepts[i] && !is_in(compute, op.accepts[i])) fail_accept(op, i, "would be computed in", compute);
  }
}

// May a number of this kind be written in a dtype of the mask?
bool number_fits(uint16_t tag, bp_dtype_mask mask) {
  switch (tag) {
    case BP_TAG_BOOL:
      return mask != 0;
    case BP_TAG_INT:
      return (mask & ~BP_MASK_BOOL) != 0;
    case BP_TAG_FLOAT:
      return (mask & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) != 0;
    default:
      return (mask & BP_MASK_COMPLEX) != 0;
  }
}

void check_as_given(const OpRecord& op, uint32_t arg, const bp_value& value) {
  const bp_dtype_mask mask = op.accepts[arg];
  if (value.tag == BP_TAG_TENSOR) {
    if (!is_in(value.u.t->dtype, mask)) fail_accept(op, arg, "is", value.u.t->dtype);
  } else if (is_number_tag(value.tag)) {
    if (!number_fits(value.tag, mask)) fail_accept(op, arg, "is", default_of_number(value.tag));
  } else if (value.tag == BP_TAG_TENSOR_LIST) {
    for (uint32_t i = 0; i < value.count; ++i) {
      const bp_tensor* tensor = value.u.tensors[i];
      if (tensor && !is_in(tensor->dtype, mask)) fail_accept(op, arg, "has an element of", tensor->dtype);
    }
  }
}

bp_dtype dtype_of_value(const bp_value& value, bp_dtype otherwise) {
  if (value.tag == BP_TAG_TENSOR) return value.u.t->dtype;
  if (is_number_tag(value.tag)) return default_of_number(value.tag);
  if (value.tag == BP_TAG_TENSOR_LIST && value.count && value.u.tensors[0]) return value.u.tensors[0]->dtype;
  return otherwise;
}

bp_dtype derived_dtype(uint16_t kind, uint32_t param, bp_dtype compute) {
  switch (kind) {
    case BP_RESULT_DTYPE_FIXED:
      return static_cast<bp_dtype>(param);
    case BP_RESULT_DTYPE_REAL:
      return real_dtype(compute);
    case BP_RESULT_DTYPE_COMPLEX:
      return complex_dtype(compute);
    case BP_RESULT_DTYPE_ACCUMULATE:
      return accumulate_dtype(compute);
    default:
      return compute;
  }
}

}  // namespace

constinit const PromotionTable kPromotion = make_table();

#define BP_BYTES(constant, number, name, type, bytes, code) bytes,
const uint8_t kItemSize[BP_DTYPE_COUNT] = {BP_DTYPES(BP_BYTES)};
#undef BP_BYTES

#define BP_NAME(constant, number, name, type, bytes, code) name,
const char* const kDtypeNames[BP_DTYPE_COUNT] = {BP_DTYPES(BP_NAME)};
#undef BP_NAME

#define BP_DLPACK(constant, number, name, type, bytes, code) {code, bytes * 8, 1},
const DLDataType kDLDtypes[BP_DTYPE_COUNT] = {BP_DTYPES(BP_DLPACK)};
#undef BP_DLPACK

bp_dtype dtype_from_dlpack(DLDataType dtype) noexcept {
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d)
    if (kDLDtypes[d].code == dtype.code && kDLDtypes[d].bits == dtype.bits && dtype.lanes == 1) return d;
  return BP_DTYPE_NONE;
}

bp_dtype promote_number(bp_dtype tensor, uint16_t number_tag) noexcept {
  switch (number_tag) {
    case BP_TAG_INT:
      return tensor == BP_BOOL ? bp_dtype{BP_INT64} : tensor;
    case BP_TAG_FLOAT:
      return is_in(tensor, BP_MASK_FLOATING | BP_MASK_COMPLEX) ? tensor : kDefaultFloat;
    case BP_TAG_COMPLEX:
      return complex_dtype(tensor);
    default:
      return tensor;
  }
}

bp_dtype promoted_dtype(const OpRecord& op, const bp_value* args) {
  Promotion sum;
  if (op.def.promote) {
    for (uint64_t rest = op.def.promote; rest; rest &= rest - 1) {
      const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
      const bp_value& value = args[i];
      // The common case first: a tensor of the dtype that the others have.
      if (value.tag == BP_TAG_TENSOR && !(value.u.t->flags & BP_TENSOR_NUMBER)) [[likely]] {
        const bp_dtype dtype = value.u.t->dtype;
        if (dtype == sum.strong) continue;
        if (sum.strong == BP_DTYPE_NONE) {
          sum.strong = dtype;
          continue;
        }
      }
      add_value(op, i, value, sum);
    }
  } else {
    sum = first_tensor(op, args);
  }
  bp_dtype compute = sum.strong;
  if (compute == BP_DTYPE_NONE || sum.tag) compute = settle(op, args, sum);
  if ((op.def.dtype_flags & BP_DTYPE_TO_FLOATING) && !is_in(compute, BP_MASK_FLOATING | BP_MASK_COMPLEX))
    compute = kDefaultFloat;
  if (op.adds_in_stated) compute = stated_compute_dtype(op, args, compute);
  if (!is_in(compute, op.promote_accepts)) [[unlikely]]
    fail_compute(op, compute);
  for (uint64_t rest = op.checked_args; rest; rest &= rest - 1) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
    check_as_given(op, i, args[i]);
  }
  return compute;
}

bp_dtype stated_compute_dtype(const OpRecord& op, const bp_value* args, bp_dtype compute) {
  const bp_value& value = args[op.dtypes[0].param];
  if (value.tag != BP_TAG_DTYPE) return compute;
  const bp_dtype stated = dtype_argument(op, op.dtypes[0].param, value);
  const bool loses = dtype_kind(stated) < dtype_kind(compute) && is_in(stated, op.promote_accepts);
  // What loses imaginary parts is refused, by the result's rule.
  return loses && !(is_in(compute, BP_MASK_COMPLEX) && !is_in(stated, BP_MASK_BOOL)) ? stated : compute;
}

bp_dtype stated_result_dtype(const OpRecord& op, const bp_result_dtype& rule, const bp_value* args, bp_dtype compute) {
  if (rule.kind == BP_RESULT_DTYPE_OF_ARG) return dtype_of_value(args[rule.param], compute);
  if (rule.kind == BP_RESULT_DTYPE_FROM_ARG) {
    const bp_value& value = args[rule.param];
    if (value.tag != BP_TAG_DTYPE) return derived_dtype(rule.fallback, rule.fallback_param, compute);
    const bp_dtype dtype = dtype_argument(op, rule.param, value);
    BP_CHECK(rule.fallback != BP_RESULT_DTYPE_ACCUMULATE || compute == BP_DTYPE_NONE ||
                 !is_in(compute, BP_MASK_COMPLEX) || is_in(dtype, BP_MASK_COMPLEX | BP_MASK_BOOL),
             DTYPE, op.name, ": argument '", op.args[rule.param].name, "': found ", kDtypeNames[dtype], " beside ",
             kDtypeNames[compute], " elements, whose imaginary parts it would lose; take real(x) first");
    return dtype;
  }
  return derived_dtype(rule.kind, rule.param, compute);
}

bp_dtype number_dtype(uint16_t number_tag) noexcept { return default_of_number(number_tag); }

bp_dtype real_dtype(bp_dtype dtype) noexcept {
  if (dtype == BP_COMPLEX64) return BP_FLOAT32;
  return dtype == BP_COMPLEX128 ? bp_dtype{BP_FLOAT64} : dtype;
}

bp_dtype complex_dtype(bp_dtype dtype) noexcept {
  return dtype == BP_FLOAT64 || dtype == BP_COMPLEX128 ? BP_COMPLEX128 : BP_COMPLEX64;
}

bp_dtype accumulate_dtype(bp_dtype dtype) noexcept {
  if (dtype == BP_BOOL || is_in(dtype, BP_MASK_SIGNED)) return BP_INT64;
  return is_in(dtype, BP_MASK_UNSIGNED) ? bp_dtype{BP_UINT64} : dtype;
}

}  // namespace backplane::core
