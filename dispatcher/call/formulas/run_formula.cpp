#include "call/formulas/run_formula.hpp"

#include <utility>

#include "backplane/abi/vocabulary.h"
#include "backplane/device.hpp"
#include "call/call_errors.hpp"
#include "call/formulas/lonely_numbers.hpp"
#include "call/formulas/wide_formula.hpp"
#include "memory/devices/device.hpp"
#include "record/builtins.hpp"

namespace backplane::core {
namespace {

constexpr bp_device kNowhere{~0u, 0};
thread_local constinit bp_device formula_device __attribute__((tls_model("initial-exec"))) = kNowhere;

// The device of the formula's arguments; without any, the current one.
bp_device device_of_arguments(const OpEntry& op, const bp_value* args) {
  bp_device device = formula_device;
  for (int32_t i = 0; args && i < op.n_args; ++i) {
    if (args[i].tag == BP_TAG_DEVICE) device = args[i].u.d;
    const bool is_list = args[i].tag == BP_TAG_TENSOR_LIST && args[i].count && args[i].u.tensors[0];
    if (args[i].tag != BP_TAG_TENSOR && !is_list) continue;
    const bp_tensor& tensor = is_list ? *args[i].u.tensors[0] : *args[i].u.t;
    return {tensor.backend, tensor.ordinal};
  }
  return device;
}

void run_wide(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs, bp_value* results,
              uint64_t keys) {
  const WideInputs wide(op, formula, inputs, keys);
  evaluate(*op.record, formula, wide.get(), results, native_formulas.load(std::memory_order_relaxed));
  wide.round(results);
}

void run(const OpEntry& op, const bp_formula& formula, const FormulaInputs& inputs, bp_value* results, uint64_t keys) {
  if ((formula.flags & BP_FORMULA_WIDE) && WideInputs::needed(op, formula, inputs)) [[unlikely]]
    return run_wide(op, formula, inputs, results, keys);
  if (LonelyNumbers::possible(op, inputs)) [[unlikely]] {
    const LonelyNumbers numbers(op, formula, inputs, keys);
    return evaluate(*op.record, formula, numbers.get(), results, native_formulas.load(std::memory_order_relaxed));
  }
  evaluate(*op.record, formula, inputs, results, native_formulas.load(std::memory_order_relaxed));
}

}  // namespace

NumbersOn::NumbersOn(bp_device device) : before_(std::exchange(formula_device, device)) {}
NumbersOn::~NumbersOn() { formula_device = before_; }

// Here, since the records know no devices.
bp_value builtin::device_computes(const BuiltinCall& call) {
  const bp_dtype dtype = dtype_of(call, call.in[0]);
  return make_bool((device_at(device_of_numbers()).properties.lacks & BP_DTYPE_BIT(dtype)) == 0);
}

bp_device device_of_numbers() { return formula_device.backend == kNowhere.backend ? default_device() : formula_device; }

void run_formula(const OpEntry& op, const bp_formula& formula, FormulaInputs inputs, bp_value* results, uint64_t keys) {
  link_entry(const_cast<OpEntry&>(op));
  bp_frame frame = frame_of(*op.record);
  frame.keys = keys;
  inputs.frame = &frame;
  const NumbersOn device(device_of_arguments(op, inputs.args));
  if (formula.rule == BP_RULE_DECOMPOSE) return run(op, formula, inputs, results, keys);
  try {
    run(op, formula, inputs, results, keys);
  } catch (const Error& error) {
    fail_rule(error, op, formula.rule, inputs.args);
  }
}

Tensor run_put(const OpEntry& op, const bp_formula& put, const bp_value* args, const bp_value& piece) {
  FormulaInputs inputs;
  inputs.args = args;
  inputs.cotangents = &piece;
  bp_value result{};
  run_formula(op, put, inputs, &result);
  return Tensor::adopt(result.u.t);
}

}  // namespace backplane::core
