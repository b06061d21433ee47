// Ops defined in Python: the record that the registry gets, and the functions through which it calls Python back.
//
// A registered record points to its Definition, which ends with the record. Definitions that live when the interpreter
// ends drop their Python objects once no other thread runs Python any more, and are leaked: threads may be in calls of
// their ops. The functions take the interpreter lock themselves and may be called from any thread.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "backplane/registration.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// What a rule's Python function is called with, in order.
struct Read {
  enum Kind : int { Argument, Result, Cotangent, Tangent, Needs, Batched, Spec };
  Kind kind;
  uint32_t index;
};

struct PythonRule {
  PyRef function;
  std::vector<Read> reads;
};

struct Definition;

struct PythonKernel {
  Definition* definition;
  PyRef function;
};

struct Definition {
  std::string name;
  std::vector<uint16_t> arg_types;  // BP_TYPE_*
  std::vector<std::string> arg_names;
  size_t n_positional = 0;
  size_t n_results = 1;
  std::vector<bool> list_results;
  std::vector<uint32_t> vjp_targets;
  std::vector<int32_t> changed;  // per result, the argument that kernels change instead of returning it; or empty
  PyRef keyword_names;           // of the arguments after the positional ones
  PyRef shape;                   // (arguments, tensors as specs) -> a (shape, dtype) per result
  PyRef spec_type;               // (shape, dtype) -> what rules see of a tensor without data
  PythonRule vjp, jvp, batch, decompose;
  std::vector<std::unique_ptr<PythonKernel>> kernels;
  Definition* next_ended = nullptr;

  void drop() noexcept;  // its Python objects; with the interpreter lock
};

// May the two tensors have an element in common? Where memory is the host's, also as memory of other libraries.
bool shares_memory(const bp_tensor* a, const bp_tensor* b) noexcept;

// The functions that records of Python's ops hold.
bp_status run_python_kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                            int32_t n_outs);
bp_status run_python_vjp(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status run_python_jvp(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status run_python_batch(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status run_python_decomposition(const bp_frame* frame, const bp_formula_env* env, bp_value* results);
bp_status infer_python_shape(const bp_frame* frame, const bp_value* args, int32_t n_args, int32_t result,
                             int64_t* sizes, int32_t* ndim);
bp_status infer_python_dtype(const bp_frame* frame, const bp_value* args, int32_t n_args, int32_t result,
                             bp_dtype* dtype);

// The class _core.CustomOp, on which backplane/_custom_ops/_custom_op.py stands.
void bind_custom_op(pybind11::module_& module);

}  // namespace backplane::python
