#include "call/formulas/wide_formula.hpp"

#include <utility>

#include "backplane/abi/vocabulary.h"
#include "call/formulas/role_calls.hpp"
#include "record/dtype_rules.hpp"
#include "record/mapped_value.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {
namespace {

constexpr bp_dtype_mask kHalf = BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16);
constexpr uint64_t kAll = kInnerKeys;

bool bit_of(uint64_t mask, size_t i) { return i >= 64 || (mask >> i & 1); }

bool has_half(const bp_value& value) {
  if (value.tag == BP_TAG_TENSOR) return is_in(value.u.t->dtype, kHalf);
  if (value.tag != BP_TAG_TENSOR_LIST) return false;
  for (uint32_t k = 0; k < value.count; ++k)
    if (value.u.tensors[k] && is_in(value.u.tensors[k]->dtype, kHalf)) return true;
  return false;
}
bool any_half(const bp_value* values, size_t count, uint64_t read) {
  for (size_t i = 0; values && i < count; ++i)
    if (bit_of(read, i) && has_half(values[i])) return true;
  return false;
}
// `rule` reads cotangents, or tangents; another's are not there.
bool reads(const bp_formula& formula, uint16_t rule) { return formula.rule == rule; }

}  // namespace

bool WideInputs::needed(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs) {
  const FreeNames& free = free_names(*op.record, formula);
  const size_t n_args = op.record->args.size(), n_outs = op.record->results.size();
  return any_half(inputs.args, n_args, free.args) || any_half(inputs.outs, n_outs, free.outs) ||
         (reads(formula, BP_RULE_VJP) && any_half(inputs.cotangents, n_outs, kAll)) ||
         (reads(formula, BP_RULE_JVP) && any_half(inputs.tangents, n_args, kAll));
}

// What only lends its shape stays: it may have no data.
WideInputs::WideInputs(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs, uint64_t keys)
    : op_(op), formula_(formula), narrow_(inputs), wide_(inputs), keys_(keys) {
  const FreeNames& free = free_names(*op.record, formula);
  const size_t n_args = op.record->args.size(), n_outs = op.record->results.size();
  wide_.args = widened(inputs.args, n_args, free.args, args_);
  wide_.outs = widened(inputs.outs, n_outs, free.outs, outs_);
  if (reads(formula, BP_RULE_VJP)) wide_.cotangents = widened(inputs.cotangents, n_outs, kAll, cotangents_);
  if (reads(formula, BP_RULE_JVP)) wide_.tangents = widened(inputs.tangents, n_args, kAll, tangents_);
}

const bp_value* WideInputs::widened(const bp_value* values, size_t count, uint64_t read, bp_value* out) {
  if (!any_half(values, count, read)) return values;
  const auto cast = [this](bp_tensor* t) -> bp_tensor* {
    if (!is_in(t->dtype, kHalf)) return t;
    return held_.emplace_back(roles::cast(impl(t), BP_FLOAT32, keys_)).get();
  };
  for (size_t i = 0; i < count; ++i) out[i] = bit_of(read, i) ? mapped(values[i], lists_, cast) : values[i];
  return out;
}

void WideInputs::round(bp_value* results) const {
  const size_t count = reads(formula_, BP_RULE_VJP) ? formula_.n_targets : op_.record->results.size();
  try {
    round(results, count);
  } catch (...) {
    for (size_t i = 0; i < count; ++i) release_owned(results[i], [](bp_tensor* t) { release(impl(t)); });
    throw;
  }
}

void WideInputs::round(bp_value* results, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (results[i].tag == BP_TAG_TENSOR) {
      round(results[i].u.t, wanted(i));
    } else if (results[i].tag == BP_TAG_TENSOR_LIST && reads(formula_, BP_RULE_VJP)) {
      const bp_value& target = narrow_.args[formula_.targets[i]];
      for (uint32_t k = 0; k < results[i].count && k < target.count; ++k)
        if (target.u.tensors[k]) round(owned_tensors(results[i])[k], target.u.tensors[k]->dtype);
    }
  }
}

// Of a vjp its argument's; else what the op's rule says, which may not be known without one.
bp_dtype WideInputs::wanted(size_t result) const {
  if (reads(formula_, BP_RULE_VJP)) {
    const bp_value& target = narrow_.args[formula_.targets[result]];
    return target.tag == BP_TAG_TENSOR ? target.u.t->dtype : bp_dtype{BP_DTYPE_NONE};
  }
  const int32_t n_args = static_cast<int32_t>(op_.record->args.size());
  const bp_dtype compute = compute_dtype(*op_.record, narrow_.args, n_args);
  return result_dtype(*op_.record, narrow_.args, n_args, static_cast<int32_t>(result), compute);
}

void WideInputs::round(bp_tensor*& result, bp_dtype dtype) const {
  if (!result || dtype == BP_DTYPE_NONE || !is_in(dtype, kHalf) || result->dtype != BP_FLOAT32) return;
  bp_tensor* rounded = roles::cast(impl(result), dtype, keys_).detach_handle();
  release(impl(std::exchange(result, rounded)));
}

}  // namespace backplane::core
