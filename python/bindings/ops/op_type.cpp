// The Op type: calls, results, and what inspect, help and pickle want to know.
#include "bindings/ops/op_type.hpp"

#include <structmember.h>

#include <algorithm>
#include <optional>
#include <string>

#include "backplane/changed_arguments.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/ops/op_describe.hpp"
#include "bindings/ops/op_results.hpp"
#include "bindings/ops/op_work.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/named_dims.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

PyTypeObject* g_op_type = nullptr;

namespace {

constexpr int32_t kInlineResults = 8;

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OpHandle op;
  Variant variant;
  PyObject* name;          // as Python spells it
  OpSignature* signature;  // made by the first call that needs it, never changed
  PyTypeObject* results;   // the named tuple of several results, made likewise
};

OpObject* op_object(PyObject* self) { return reinterpret_cast<OpObject*>(self); }

const OpSignature* signature_of(OpObject* self) {
  if (!self->signature) [[unlikely]]
    self->signature = new OpSignature(self->op, self->variant, self->name);
  return self->signature;
}

// `count` outs given by the caller, borrowed, as slots of the call.
bool read_outs(OpObject* self, PyObject* out, bp_value* outs, int32_t count) {
  const bool single = count == 1 && is_tensor(out);
  PyObject* const* elements = single ? &out : PyTuple_Check(out) ? &PyTuple_GET_ITEM(out, 0) : nullptr;
  const Py_ssize_t found = single ? 1 : elements ? PyTuple_GET_SIZE(out) : -1;
  for (int32_t i = 0; i < count; ++i) {
    if (found != count || !is_tensor(elements[i])) {
      PyRef kind = found_kind(out);
      if (kind) {
        raise(BP_ERROR_TYPE, "%U: argument 'out': found %U, expected %s", self->name, kind.get(),
              count == 1 ? "a Tensor" : "a tuple with a Tensor per result");
      }
      return false;
    }
    outs[i] = tensor_value(handle_of(elements[i]));
    outs[i].flags = BP_VALUE_GIVEN;
  }
  return true;
}

PyTypeObject* results_type(OpObject* self, const OpSignature& signature) {
  if (!self->results) self->results = new_results_type(self->name, signature);
  return self->results;
}

PyObject* wrap_results(OpObject* self, const OpSignature& signature, bp_value* outs) {
  const int32_t count = signature.result_count();
  if (count == 1) return outs[0].tag == BP_TAG_TENSOR ? wrap_tensor(outs[0].u.t) : wrap_result(outs[0]);
  PyTypeObject* type = results_type(self, signature);
  PyRef results = PyRef::steal(type ? PyStructSequence_New(type) : nullptr);
  for (int32_t i = 0; i < count; ++i) {
    PyObject* result = wrap_result(outs[i]);
    if (results) {
      PyStructSequence_SetItem(results.get(), i, result);
      if (!result) results = PyRef{};
    } else {
      Py_XDECREF(result);
    }
  }
  return results.release();
}

PyObject* run_functional(OpObject* self, const OpSignature& signature, const bp_value* values, int32_t count,
                         PyObject* out) {
  const int32_t n_results = signature.result_count();
  bp_value inline_outs[kInlineResults];
  std::fill_n(inline_outs, std::min(n_results, kInlineResults), bp_value{});
  std::vector<bp_value> many(n_results > kInlineResults ? static_cast<size_t>(n_results) : 0);
  bp_value* outs = many.empty() ? inline_outs : many.data();
  if (out && !read_outs(self, out, outs, n_results)) return nullptr;
  if (bp_status status = call_op(self->op, values, count, outs, n_results, bytes_of_call(signature, values, count)))
      [[unlikely]] {
    return raise_status(status);
  }
  return out ? Py_NewRef(out) : wrap_results(self, signature, outs);
}

// Where floats that name no dtype are not the core's.
[[gnu::cold, gnu::noinline]] PyObject* run_with_default(OpObject* self, const OpSignature& signature,
                                                        const bp_value* values, int32_t count, PyObject* out) {
  const StatedArguments stated(self->op, values, count);
  return run_functional(self, signature, stated.values(), stated.count(), out);
}

// For arguments that do not match the entry's signature, before anything runs: what another form answers, or the error
// of the match, which is set.
[[gnu::cold]] PyObject* run_other_form(OpObject* self, PyObject* const* args, size_t n_positional, PyObject* keywords) {
  const OpSignature& signature = *signature_of(self);
  if (any_has_named_dims(args, n_positional, keywords)) {
    PyErr_Clear();
    return call_with_named_dims(reinterpret_cast<PyObject*>(self), args, n_positional, keywords);
  }
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyObject* form = signature.other_form();
  PyObject* result = form ? PyObject_Vectorcall(form, args, n_positional, keywords) : nullptr;
  if (!form || result == Py_NotImplemented) {
    Py_XDECREF(result);
    PyErr_Restore(type, error, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return result;
}

// For an operand of a kind that the entry refuses, before anything runs: what another form answers, or NotImplemented.
[[gnu::cold, gnu::noinline]] PyObject* run_form_of_kind(const OpSignature& signature, PyObject* const* args,
                                                        size_t n_positional, PyObject* keywords) {
  PyObject* form = signature.other_form();
  return form ? PyObject_Vectorcall(form, args, n_positional, keywords) : Py_NewRef(Py_NotImplemented);
}

// The in-place form of an op with several results: the changed arguments, by name.
PyObject* change_several(OpObject* self, const OpSignature& signature, PyObject* const* given, const bp_value* values,
                         int32_t count) {
  const std::vector<int32_t> changed = changed_arguments(self->op);
  for (size_t i = 0; i < changed.size(); ++i)
    if (changed[i] < 0 || !given[changed[i]] || !is_tensor(given[changed[i]]))
      return raise(BP_ERROR_TYPE, "%U: argument '%s' is changed in place, so it must be a Tensor", self->name,
                   signature.result_name(static_cast<int32_t>(i)));
  use_context_settings();
  if (bp_status status = call_op_inplace(self->op, values, count, bytes_of_call(signature, values, count)))
    return raise_status(status);
  PyTypeObject* type = results_type(self, signature);
  PyRef results = PyRef::steal(type ? PyStructSequence_New(type) : nullptr);
  for (size_t i = 0; results && i < changed.size(); ++i)
    PyStructSequence_SetItem(results.get(), static_cast<Py_ssize_t>(i), Py_NewRef(given[changed[i]]));
  return results.release();
}

PyObject* run(OpObject* self, PyObject* const* args, size_t n_positional, PyObject* keywords) {
  const OpSignature& signature = *signature_of(self);
  CallArguments arguments(signature.count());
  PyObject* inline_given[CallArguments::kInline];
  PyObject** given = signature.count() <= CallArguments::kInline
                         ? inline_given
                         : arguments.allocate<PyObject*>(static_cast<size_t>(signature.count()));
  std::fill_n(given, signature.count(), nullptr);
  PyObject* out = nullptr;
  if (!signature.match(args, n_positional, keywords, given, &out)) [[unlikely]]
    return run_other_form(self, args, n_positional, keywords);
  const int32_t count = signature.read(given, arguments);
  if (count < 0) [[unlikely]]
    return run_other_form(self, args, n_positional, keywords);
  if (self->variant == Variant::Functional) {
    if (signature.is_for_other_form(given, arguments.values())) [[unlikely]] {
      PyRef answered = PyRef::steal(run_form_of_kind(signature, args, n_positional, keywords));
      if (answered.get() != Py_NotImplemented) return answered.release();
    }
    PyObject* result = is_core_default() ? run_functional(self, signature, arguments.values(), count, out)
                                         : run_with_default(self, signature, arguments.values(), count, out);
    // A trace runs no kernel, so its refusal is of the op itself.
    if (!result && is_pending(BP_ERROR_NOT_IMPLEMENTED) && every_call_taken() && lacks_shape_rule(self->op))
        [[unlikely]]
      return raise_no_shape_rule(self->op, self->name);
    return result;
  }
  if (signature.result_count() > 1) return change_several(self, signature, given, arguments.values(), count);
  if (!given[0] || !is_tensor(given[0])) {
    return raise(BP_ERROR_TYPE, "%U: its first argument is changed in place, so it must be a Tensor", self->name);
  }
  use_context_settings();
  const uint64_t bytes = bytes_of_call(signature, arguments.values(), count);
  if (bp_status status = call_op_inplace(self->op, arguments.values(), count, bytes)) return raise_status(status);
  return Py_NewRef(given[0]);
}

// x.reshape(2, 3): the ints beyond the last positional parameter become its tuple.
PyObject* run_gathering(OpObject* self, PyObject* const* args, size_t n_positional, PyObject* keywords) {
  const auto fixed = static_cast<size_t>(signature_of(self)->positional() - 1);
  PyObject* no_int = nullptr;  // after the first, which may be the tuple itself
  for (size_t i = fixed; i < n_positional; ++i) {
    if (PyBool_Check(args[i])) return signature_of(self)->raise_gathered(args[i]);
    if (i > fixed && !no_int && !PyIndex_Check(args[i])) no_int = args[i];
  }
  PyRef ints = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(n_positional - fixed)));
  if (!ints) return nullptr;
  for (size_t i = fixed; i < n_positional; ++i) {
    PyTuple_SET_ITEM(ints.get(), static_cast<Py_ssize_t>(i - fixed), Py_NewRef(args[i]));
  }
  std::vector<PyObject*> gathered(args, args + fixed);
  gathered.push_back(ints.get());
  const Py_ssize_t n_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  gathered.insert(gathered.end(), args + n_positional, args + n_positional + n_keywords);
  if (no_int) {
    signature_of(self)->raise_gathered(no_int);
    return run_other_form(self, gathered.data(), fixed + 1, keywords);
  }
  return run(self, gathered.data(), fixed + 1, keywords);
}

// A tensor where the axes stand: a second operand, where another form takes one, and else read as ints.
[[gnu::cold]] PyObject* run_with_tensor_last(OpObject* self, PyObject* const* args, size_t n_positional,
                                             PyObject* keywords) {
  PyRef result = PyRef::steal(run_form_of_kind(*signature_of(self), args, n_positional, keywords));
  return result.get() == Py_NotImplemented ? run(self, args, n_positional, keywords) : result.release();
}

// Python: Op.__call__(self, *args: Any, **kwargs: Any) -> Any
PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
  return guarded_call([&] {
    OpObject* self = op_object(callable);
    const auto n_positional = static_cast<size_t>(PyVectorcall_NARGS(flagged_count));
    const OpSignature& signature = *signature_of(self);
    if (spells_dim(keywords)) [[unlikely]] {
      if (any_has_named_dims(args, n_positional, keywords))
        return call_with_named_dims(callable, args, n_positional, keywords);
      if (PyObject* form = signature.dim_form()) return PyObject_Vectorcall(form, args, flagged_count, keywords);
    }
    if (signature.gathers_ints() && n_positional >= static_cast<size_t>(signature.positional())) {
      if (n_positional > static_cast<size_t>(signature.positional())) [[unlikely]]
        return run_gathering(self, args, n_positional, keywords);
      if (is_tensor(args[n_positional - 1]) && signature.ends_in_axes()) [[unlikely]]
        return run_with_tensor_last(self, args, n_positional, keywords);
    }
    return run(self, args, n_positional, keywords);
  });
}

PyObject* wrap_inferred(const InferredResult& result) {
  return Py_BuildValue("(NN)", wrap_dtype(result.dtype),
                       shape_tuple(result.shape.data(), static_cast<int32_t>(result.shape.size())));
}

// The arguments of a call, read as a call reads them; what its results would be.
PyObject* op_infer(PyObject* callable, PyObject* const* args, Py_ssize_t n_positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    OpObject* self = op_object(callable);
    if (lacks_shape_rule(self->op)) return raise_no_shape_rule(self->op, self->name);
    const OpSignature& signature = *signature_of(self);
    CallArguments arguments(signature.count());
    std::vector<PyObject*> given(static_cast<size_t>(signature.count()), nullptr);
    PyObject* out = nullptr;
    if (!signature.match(args, static_cast<size_t>(n_positional), keywords, given.data(), &out)) return nullptr;
    const int32_t count = signature.read(given.data(), arguments);
    if (count < 0) return nullptr;
    std::optional<StatedArguments> stated;
    if (!is_core_default()) stated.emplace(self->op, arguments.values(), count);
    const std::vector<InferredResult> results =
        stated ? infer(self->op, stated->values(), stated->count()) : infer(self->op, arguments.values(), count);
    PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; list && i < results.size(); ++i) {
      PyObject* row = wrap_inferred(results[i]);
      if (!row) return nullptr;
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), row);
    }
    return list.release();
  });
}

PyObject* op_bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

// Python: Op(full_name: str, name: str, inplace: bool = False)
// The package makes one per record at import.
PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"full_name", "name", "inplace", nullptr};
  const char* full_name = nullptr;
  PyObject* name = nullptr;
  int inplace = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sU|p:Op", const_cast<char**>(keywords), &full_name, &name,
                                   &inplace)) {
    return nullptr;
  }
  const OpHandle op = find_op(full_name);
  if (op == BP_NO_OP)
    return raise(BP_ERROR_VALUE, "Op: argument full_name: found '%s', expected the full name of an op", full_name);
  if (inplace && !(op_def(op).flags & BP_OP_INPLACE))
    return raise(BP_ERROR_VALUE, "Op: %s has no in-place variant", full_name);
  auto* self = PyObject_New(OpObject, type);
  if (!self) return nullptr;
  self->vectorcall = op_vectorcall;
  self->op = op;
  self->variant = inplace ? Variant::InPlace : Variant::Functional;
  self->name = Py_NewRef(name);
  self->signature = nullptr;
  self->results = nullptr;
  return reinterpret_cast<PyObject*>(self);
}

void op_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete op_object(self)->signature;
  Py_XDECREF(op_object(self)->results);
  Py_DECREF(op_object(self)->name);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* op_repr(PyObject* self) { return PyUnicode_FromFormat("<op %s>", op_def(op_object(self)->op).name); }

PyObject* op_get_name(PyObject* self, void*) { return Py_NewRef(op_object(self)->name); }
PyObject* op_get_full_name(PyObject* self, void*) { return PyUnicode_FromString(op_def(op_object(self)->op).name); }
PyObject* op_get_doc(PyObject* self, void*) {
  return op_documentation(op_object(self)->op, *signature_of(op_object(self)), op_object(self)->name);
}
PyObject* op_get_text_signature(PyObject* self, void*) { return op_text_signature(*signature_of(op_object(self))); }
PyObject* op_get_parameters(PyObject* self, void*) { return op_parameters(*signature_of(op_object(self))); }

// Built on demand: importing inspect costs more than the rest of the package.
PyObject* op_get_signature(PyObject* self, void*) {
  PyRef module = imported_module("backplane._calls._signature");
  return module ? PyObject_CallMethod(module.get(), "signature_of", "O", self) : nullptr;
}

PyObject* op_reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(sOO)", Py_TYPE(self), op_def(op_object(self)->op).name, op_object(self)->name,
                       op_object(self)->variant == Variant::InPlace ? Py_True : Py_False);
}

constexpr Declared kInferDoc = R"(Op.infer(self, *args: Any, **kwargs: Any) -> list[tuple[DType, tuple[int, ...]]]
--

The (dtype, shape) of each result of a call with these arguments, by the entry's rules alone: nothing runs.)";

PyGetSetDef op_getset[] = {
    {"__name__", op_get_name, nullptr, nullptr, nullptr},
    {"__qualname__", op_get_name, nullptr, nullptr, nullptr},
    {"__doc__", op_get_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", op_get_text_signature, nullptr, nullptr, nullptr},
    {"__signature__", op_get_signature, nullptr, nullptr, nullptr},
    {"full_name", op_get_full_name, nullptr, "str: The name in the registry, namespace::name.", nullptr},
    {"parameters", op_get_parameters, nullptr,
     "tuple[tuple[str, bool, bool, Any, str, bool], ...]: (name, keyword only, has default, default, type, positional "
     "only) "
     "per argument.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr},
                            {"infer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(op_infer)),
                             METH_FASTCALL | METH_KEYWORDS, kInferDoc.text},
                            {nullptr, nullptr, 0, nullptr}};
PyMemberDef op_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
                            {nullptr, 0, 0, 0, nullptr}};
PyType_Slot op_slots[] = {{Py_tp_new, reinterpret_cast<void*>(op_new)},
                          {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
                          {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                          {Py_tp_descr_get, reinterpret_cast<void*>(op_bind)},
                          {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
                          {Py_tp_getset, op_getset},
                          {Py_tp_members, op_members},
                          {Py_tp_methods, op_methods},
                          {0, nullptr}};
PyType_Spec op_spec = {"backplane.Op", sizeof(OpObject), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, op_slots};

}  // namespace

bool add_op_type(PyObject* module) {
  g_op_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&op_spec));
  return g_op_type && PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(g_op_type)) == 0;
}

OpHandle op_handle_of(PyObject* object) noexcept {
  return Py_TYPE(object) == g_op_type ? op_object(object)->op : BP_NO_OP;
}

}  // namespace backplane::python
