// The way back into Python: kernels, formulas and shape rules of custom ops.
//
// Every function is an edge: a Python exception is kept for the end of the call (errors.hpp) and travels as a status.
#include <algorithm>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/custom_op.hpp"
#include "bindings/ops/value_objects.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

// Runs `body` with the interpreter lock; an exception becomes the status.
template <class Body>
bp_status at_edge(const bp_frame* frame, const std::string& op, Body&& body) noexcept {
  if (interpreter_gone()) {
    frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, (op + ": its rules are in Python, which has ended").c_str());
    return BP_ERROR_NOT_IMPLEMENTED;
  }
  WithGil locked;
  try {
    body();
    return BP_OK;
  } catch (const Error& error) {
    frame->host->set_error(error.code(), error.what());
    return error.code();
  } catch (const std::bad_alloc&) {
    frame->host->set_error(BP_ERROR_MEMORY, "out of memory");
    return BP_ERROR_MEMORY;
  } catch (const std::exception& error) {
    frame->host->set_error(BP_ERROR_INTERNAL, error.what());
    return BP_ERROR_INTERNAL;
  }
}

PyRef checked(PyObject* object) {
  if (!object) throw keep_python_error();
  return PyRef::steal(object);
}

// Held while it runs: the op may be redefined meanwhile.
PyRef function_of(const PyRef& held, const Definition& op, const char* what) {
  BP_CHECK(held, NOT_IMPLEMENTED, op.name, ": its ", what, " is in Python, which is ending");
  return held;
}

Definition& definition_of(const bp_frame* frame) { return *static_cast<Definition*>(frame->op->context); }

PyRef call(const PyRef& function, const std::vector<PyRef>& values, size_t n_positional, PyObject* keyword_names) {
  std::vector<PyObject*> objects;
  objects.reserve(values.size());
  for (const PyRef& value : values) objects.push_back(value.get());
  return checked(PyObject_Vectorcall(function.get(), objects.data(), n_positional, keyword_names));
}

// ---- results ---------------------------------------------------------------------------------------------------

bp_tensor* tensor_from(const Definition& op, PyObject* object, const char* what, size_t i) {
  if (!is_tensor(object))
    detail::fail(BP_ERROR_TYPE, op.name, ": its ", what, " returned a value of type ", Py_TYPE(object)->tp_name,
                 " as result ", i, "; expected a Tensor");
  return handle_of(object);
}

// `taken`: from what the function returned to what the slot gets.
template <class Taken>
void store_list(const Definition& op, const bp_frame* frame, PyObject* object, const char* what, size_t i,
                bp_value& slot, Taken taken) {
  const bool sequence = PyList_Check(object) || PyTuple_Check(object);
  if (!sequence)
    detail::fail(BP_ERROR_TYPE, op.name, ": its ", what, " returned a value of type ", Py_TYPE(object)->tp_name,
                 " as result ", i, "; expected a list of Tensors");
  PyRef items = checked(PySequence_Tuple(object));
  const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  bp_tensor** elements = nullptr;
  if (const bp_status status = frame->host->alloc_list(frame, &slot, static_cast<uint32_t>(count), &elements))
    throw Error(status, frame->host->get_error());
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), k);
    if (item == Py_None) continue;
    elements[k] = taken(tensor_from(op, item, what, i)).detach_handle();
  }
}

// The function's one result, or its results in order.
std::vector<PyRef> results_of(const Definition& op, PyRef returned, size_t count, const char* what) {
  std::vector<PyRef> results;
  if (count == 1) {
    results.push_back(std::move(returned));
    return results;
  }
  const bool sequence = PyTuple_Check(returned.get()) || PyList_Check(returned.get());
  const Py_ssize_t found = sequence ? PySequence_Size(returned.get()) : 1;
  BP_CHECK(sequence && found == static_cast<Py_ssize_t>(count), TYPE, op.name, ": its ", what, " returned ", found,
           found == 1 ? " value" : " values", "; expected a tuple of ", count);
  for (size_t i = 0; i < count; ++i)
    results.push_back(checked(PySequence_GetItem(returned.get(), static_cast<Py_ssize_t>(i))));
  return results;
}

// ---- kernels ---------------------------------------------------------------------------------------------------

Tensor without_history(bp_tensor* t) {
  Tensor tensor = Tensor::share(t);
  return requires_grad(tensor) ? detach(tensor) : tensor;
}

// A kernel, and a decomposition that the tape records as a whole, see tensors without history.
PyRef kernel_argument(const bp_value& value) {
  if (value.tag == BP_TAG_TENSOR) return checked(wrap_tensor(without_history(value.u.t)));
  if (value.tag != BP_TAG_TENSOR_LIST) return checked(value_object(value));
  PyRef tensors = checked(PyTuple_New(value.count));
  for (uint32_t k = 0; k < value.count; ++k) {
    bp_tensor* t = value.u.tensors[k];
    PyRef item = t ? checked(wrap_tensor(without_history(t))) : PyRef::borrow(Py_None);
    PyTuple_SET_ITEM(tensors.get(), static_cast<Py_ssize_t>(k), item.release());
  }
  return tensors;
}

// Its arguments have no history, so a tensor with a history depends on other tensors. The result gets the op's history.
Tensor own_result(const Definition& op, bp_tensor* t, const char* what) {
  Tensor tensor = Tensor::share(t);
  BP_CHECK(!grad_enabled() || !requires_grad(tensor), VALUE, op.name, ": its ", what,
           " used a tensor that requires a gradient and is not an argument, so its gradient is lost. Fix: pass it "
           "as an argument, or use its detach()");
  return detach(tensor);
}

template <class Visit>
void each_argument_tensor(const bp_value* args, int32_t n_args, Visit visit) {
  for (int32_t i = 0; i < n_args; ++i) {
    if (args[i].tag == BP_TAG_TENSOR) visit(i, args[i].u.t);
    if (args[i].tag == BP_TAG_TENSOR_LIST)
      for (uint32_t k = 0; k < args[i].count; ++k)
        if (args[i].u.tensors[k]) visit(i, args[i].u.tensors[k]);
  }
}

std::vector<uint64_t> versions_of(const bp_value* args, int32_t n_args) {
  std::vector<uint64_t> versions;
  each_argument_tensor(args, n_args, [&](int32_t, bp_tensor* t) { versions.push_back(version_of(Tensor::share(t))); });
  return versions;
}

// The result that a changed argument is; -1: kernels do not change it.
int32_t result_of_argument(const Definition& op, int32_t i) {
  const auto found = std::find(op.changed.begin(), op.changed.end(), i);
  return found == op.changed.end() ? -1 : static_cast<int32_t>(found - op.changed.begin());
}

void check_unchanged(const Definition& op, const bp_value* args, int32_t n_args, const std::vector<uint64_t>& before) {
  size_t k = 0;
  each_argument_tensor(args, n_args, [&](int32_t i, bp_tensor* t) {
    const bool may_change = result_of_argument(op, i) >= 0;
    BP_CHECK(version_of(Tensor::share(t)) == before[k++] || may_change, VALUE, op.name, ": its kernel changed '",
             op.arg_names[static_cast<size_t>(i)],
             "' in place, which its definition does not declare. Fix: work on a copy, or declare mutates_args=(\"",
             op.arg_names[static_cast<size_t>(i)], "\",)");
  });
}

void check_apart(const Definition& op, const bp_value* args, int32_t n_args, const bp_tensor* result) {
  each_argument_tensor(args, n_args, [&](int32_t i, const bp_tensor* t) {
    BP_CHECK(!shares_memory(t, result), VALUE, op.name, ": its kernel returned memory of '",
             op.arg_names[static_cast<size_t>(i)],
             "', which its definition does not declare. Fix: return a copy, or declare the op as a view: alias=\"",
             op.arg_names[static_cast<size_t>(i)], "\" with a view.* shape");
  });
}

// Bools are the byte 0 or 1 also where a kernel wrote them through a view of its own, in NumPy say.
Tensor proper_bools(Tensor t) {
  if (t.dtype() != BP_BOOL || !t.get()->storage || !in_host_memory(t.get())) return t;
  const char* first = static_cast<const char*>(t.get()->dl.data) + t.get()->dl.byte_offset;
  if (t.get()->nbytes == 0 || are_bools(first, t.shape(), t.strides())) return t;
  return from_host(first, t.shape(), t.strides(), BP_BOOL, t.device());
}

void store_results(const Definition& op, const bp_frame* frame, const bp_value* args, int32_t n_args, PyRef returned,
                   bp_value* outs) {
  const std::vector<PyRef> results = results_of(op, std::move(returned), op.n_results, "kernel");
  const auto own = [&](bp_tensor* t) {
    check_apart(op, args, n_args, t);
    return proper_bools(own_result(op, t, "kernel"));
  };
  for (size_t i = 0; i < op.n_results; ++i) {
    if (outs[i].flags & BP_VALUE_NOT_WANTED) continue;
    if (op.list_results[i]) {
      store_list(op, frame, results[i].get(), "kernel", i, outs[i], own);
      continue;
    }
    outs[i] = tensor_value(own(tensor_from(op, results[i].get(), "kernel", i)).detach_handle());
  }
}

void copy_into(const bp_frame* frame, const bp_value& from, bp_value to) {
  const uint32_t copy = frame->host->find_op(op_def(op_of(Slot::Copy)).name);
  if (const bp_status status = frame->host->call_op(frame, copy, &from, 1, &to, 1))
    throw Error(status, frame->host->get_error());
}

// The argument's value is in the output when the kernel begins, and the result when it ends.
PyRef changed_argument(const bp_frame* frame, const bp_value& argument, const bp_value& out) {
  bp_tensor* target = out.u.t;
  const bp_tensor* source = argument.u.t;
  const bool in_place = target->storage == source->storage && target->dl.byte_offset == source->dl.byte_offset;
  if (!in_place) copy_into(frame, argument, out);
  return kernel_argument(tensor_value(target));
}

// After the kernel, which changed arguments and returned nothing.
void finish_changes(const Definition& op, const bp_frame* frame, const std::vector<PyRef>& values, PyObject* returned,
                    bp_value* outs) {
  BP_CHECK(returned == Py_None, TYPE, op.name, ": its kernel returned a value of type ", Py_TYPE(returned)->tp_name,
           "; it changes '", op.arg_names[static_cast<size_t>(op.changed[0])], "' in place and returns None");
  for (size_t r = 0; r < op.changed.size(); ++r) {
    own_result(op, handle_of(values[static_cast<size_t>(op.changed[r])].get()), "kernel");
    const Tensor proper = proper_bools(Tensor::share(outs[r].u.t));
    if (proper.get() != outs[r].u.t) copy_into(frame, value(proper), outs[r]);
  }
}

}  // namespace

bp_status run_python_kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t) {
  auto& kernel = *static_cast<PythonKernel*>(frame->context);
  const Definition& op = *kernel.definition;
  return at_edge(frame, op.name, [&] {
    const PyRef function = function_of(kernel.function, op, "kernel");
    KernelScope scope(*frame);
    std::vector<PyRef> values;
    for (int32_t i = 0; i < n_args; ++i) {
      const int32_t r = result_of_argument(op, i);
      values.push_back(r >= 0 ? changed_argument(frame, args[i], outs[r]) : kernel_argument(args[i]));
    }
    const std::vector<uint64_t> before = versions_of(args, n_args);
    PyRef returned = call(function, values, op.n_positional, op.keyword_names.get());
    check_unchanged(op, args, n_args, before);
    if (op.changed.empty()) return store_results(op, frame, args, n_args, std::move(returned), outs);
    finish_changes(op, frame, values, returned.get(), outs);
  });
}

// ---- formulas --------------------------------------------------------------------------------------------------

namespace {

PyRef spec_of(const Definition& op, const bp_tensor* t) {
  if (!t) return PyRef::borrow(Py_None);
  PyRef shape = checked(shape_tuple(t->dl.shape, t->dl.ndim));
  PyRef dtype = checked(wrap_dtype(t->dtype));
  return checked(PyObject_CallFunctionObjArgs(op.spec_type.get(), shape.get(), dtype.get(), nullptr));
}

// A tensor's shape and dtype, a list of them, or a value that is not a tensor as it is.
PyRef spec_argument(const Definition& op, const bp_value& value) {
  if (value.tag == BP_TAG_TENSOR) return spec_of(op, value.u.t);
  if (value.tag != BP_TAG_TENSOR_LIST) return checked(value_object(value));
  PyRef specs = checked(PyTuple_New(value.count));
  for (uint32_t k = 0; k < value.count; ++k)
    PyTuple_SET_ITEM(specs.get(), static_cast<Py_ssize_t>(k), spec_of(op, value.u.tensors[k]).release());
  return specs;
}

// `whole`: the tape has the call, and its parts shall have no history.
PyRef read_value(const Definition& op, const bp_formula_env& env, const Read& read, bool whole) {
  switch (read.kind) {
    case Read::Argument:
      return whole ? kernel_argument(env.args[read.index]) : checked(value_object(env.args[read.index]));
    case Read::Result:
      return checked(value_object(env.outs[read.index]));
    case Read::Cotangent:
      return checked(value_object(env.cotangents[read.index]));
    case Read::Tangent:
      return checked(value_object(env.tangents[read.index]));
    case Read::Needs:
      return checked(PyBool_FromLong(static_cast<long>(env.needs >> std::min<uint32_t>(read.index, 63) & 1)));
    case Read::Batched:
      return checked(PyBool_FromLong(env.batched && env.batched[read.index]));
    case Read::Spec:
      return spec_argument(op, env.args[read.index]);
  }
  return {};
}

bp_status run_rule(const bp_frame* frame, const bp_formula_env* env, bp_value* results, const PythonRule& rule,
                   size_t count, const char* what, bool whole = false) {
  const Definition& op = definition_of(frame);
  const auto taken = [&](bp_tensor* t) { return whole ? own_result(op, t, what) : Tensor::share(t); };
  return at_edge(frame, op.name, [&] {
    const PyRef function = function_of(rule.function, op, what);
    std::vector<PyRef> values;
    for (const Read& read : rule.reads) values.push_back(read_value(op, *env, read, whole));
    const std::vector<PyRef> returned = results_of(op, call(function, values, values.size(), nullptr), count, what);
    for (size_t i = 0; i < count; ++i) {
      PyObject* object = returned[i].get();
      if (object == Py_None) continue;
      if (PyList_Check(object) || PyTuple_Check(object))
        store_list(op, frame, object, what, i, results[i], taken);
      else
        results[i] = tensor_value(taken(tensor_from(op, object, what, i)).detach_handle());
    }
  });
}

// The (shape, dtype) of one result, by the op's Python function.
PyRef inferred(const Definition& op, const bp_value* args, int32_t n_args, int32_t result) {
  const PyRef function = function_of(op.shape, op, "shape rule");
  std::vector<PyRef> values;
  for (int32_t i = 0; i < n_args; ++i) values.push_back(spec_argument(op, args[i]));
  PyRef all = call(function, values, values.size(), nullptr);
  return checked(PySequence_GetItem(all.get(), result));
}

}  // namespace

bp_status run_python_vjp(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  const Definition& op = definition_of(frame);
  return run_rule(frame, env, results, op.vjp, op.vjp_targets.size(), "vjp rule");
}
bp_status run_python_jvp(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  const Definition& op = definition_of(frame);
  return run_rule(frame, env, results, op.jvp, op.n_results, "jvp rule");
}
bp_status run_python_batch(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  const Definition& op = definition_of(frame);
  return run_rule(frame, env, results, op.batch, op.n_results, "batch rule");
}
bp_status run_python_decomposition(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  const Definition& op = definition_of(frame);
  return run_rule(frame, env, results, op.decompose, op.n_results, "decomposition", is_recorded_whole(*frame));
}

bp_status infer_python_shape(const bp_frame* frame, const bp_value* args, int32_t n_args, int32_t result,
                             int64_t* sizes, int32_t* ndim) {
  const Definition& op = definition_of(frame);
  return at_edge(frame, op.name, [&] {
    PyRef row = inferred(op, args, n_args, result);
    PyRef shape = checked(PySequence_GetItem(row.get(), 0));
    const Py_ssize_t rank = PySequence_Size(shape.get());
    BP_CHECK(rank >= 0 && rank <= 64, SHAPE, op.name, ": its shape rule gave ", rank, " dims; at most 64 are allowed");
    for (Py_ssize_t d = 0; d < rank; ++d) {
      PyRef size = checked(PySequence_GetItem(shape.get(), d));
      const int read = read_int(size.get(), &sizes[d]);
      if (read < 0) throw keep_python_error();
      BP_CHECK(read == 1, TYPE, op.name, ": its shape rule gave a value of type ", Py_TYPE(size.get())->tp_name,
               " as size ", d, " of result ", result, ", expected an int");
    }
    *ndim = static_cast<int32_t>(rank);
  });
}

bp_status infer_python_dtype(const bp_frame* frame, const bp_value* args, int32_t n_args, int32_t result,
                             bp_dtype* dtype) {
  const Definition& op = definition_of(frame);
  return at_edge(frame, op.name, [&] {
    PyRef row = inferred(op, args, n_args, result);
    PyRef found = checked(PySequence_GetItem(row.get(), 1));
    BP_CHECK(read_dtype(found.get(), dtype) == 1, TYPE, op.name, ": its shape rule gave a value of type ",
             Py_TYPE(found.get())->tp_name, " as dtype of result ", result);
  });
}

namespace {

// The bytes of host memory from a tensor's first to behind its last element.
std::pair<uintptr_t, uintptr_t> span_of(const bp_tensor* t) noexcept {
  int64_t low = 0, high = 0;
  for (int32_t d = 0; d < t->dl.ndim; ++d)
    (t->dl.strides[d] < 0 ? low : high) += (t->dl.shape[d] - 1) * t->dl.strides[d];
  const int64_t item = t->dl.dtype.bits / 8;
  const auto first = reinterpret_cast<intptr_t>(t->dl.data) + static_cast<intptr_t>(t->dl.byte_offset);
  return {static_cast<uintptr_t>(first + low * item), static_cast<uintptr_t>(first + (high + 1) * item)};
}

}  // namespace

bool shares_memory(const bp_tensor* a, const bp_tensor* b) noexcept {
  if (a->nbytes == 0 || b->nbytes == 0 || !a->storage || !b->storage) return false;
  if (a->storage == b->storage) return true;
  if (!in_host_memory(a) || !in_host_memory(b)) return false;
  const auto [a_begin, a_end] = span_of(a);
  const auto [b_begin, b_end] = span_of(b);
  return a_begin < b_end && b_begin < a_end;
}

void Definition::drop() noexcept {
  for (auto& kernel : kernels) kernel->function = {};
  shape = {};
  for (PythonRule* rule : {&vjp, &jvp, &batch, &decompose}) rule->function = {};
}

}  // namespace backplane::python
