// The Op type: what inspect, help and pickle want to know of it. op_call.cpp runs its calls.
#include "bindings/ops/op_type.hpp"

#include <structmember.h>

#include <optional>

#include "backplane/transforms.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/ops/op_describe.hpp"
#include "bindings/ops/op_object.hpp"
#include "bindings/tensor/default_float.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

PyTypeObject* g_op_type = nullptr;

const OpSignature* signature_of(OpObject* self) {
  if (!self->signature) [[unlikely]]
    self->signature = new OpSignature(self->op, self->variant, self->name);
  return self->signature;
}

PyObject* new_op(PyTypeObject* type, OpHandle op, Variant variant, PyObject* name) {
  auto* self = PyObject_New(OpObject, type);
  if (!self) return nullptr;
  self->vectorcall = op_vectorcall;
  self->op = op;
  self->variant = variant;
  self->name = Py_NewRef(name);
  self->signature = nullptr;
  self->results = nullptr;
  return reinterpret_cast<PyObject*>(self);
}

namespace {

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

// Python: Op.__call__(self, *args: Any, **kwargs: Any) -> Any
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
  return new_op(type, op, inplace ? Variant::InPlace : Variant::Functional, name);
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
