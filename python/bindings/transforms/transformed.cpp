// The type Transformed: calls, the looks of the function behind it, and garbage collection.
#include "bindings/transforms/transformed.hpp"

#include <structmember.h>

#include <new>

#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"

namespace backplane::python {
namespace {

PyTypeObject* g_transformed_type = nullptr;

struct TransformedObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const char* name;
  PyObject* function;
  PyObject* attributes;  // __dict__
  PyObject* weak_references;
  TransformBody body;
  std::unique_ptr<TransformOptions> options;
};

TransformedObject* object_of(PyObject* self) { return reinterpret_cast<TransformedObject*>(self); }

PyObject* transformed_vectorcall(PyObject* callable, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
  TransformedObject* self = object_of(callable);
  const TransformCall call{self->name, self->function, args, PyVectorcall_NARGS(flagged_count), keywords};
  return guarded([&] { return self->body(call, *self->options); });
}

int transformed_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object_of(self)->function);
  Py_VISIT(object_of(self)->attributes);
  return object_of(self)->options ? object_of(self)->options->traverse(visit, arg) : 0;
}

int transformed_clear(PyObject* self) {
  Py_CLEAR(object_of(self)->function);
  Py_CLEAR(object_of(self)->attributes);
  if (object_of(self)->options) object_of(self)->options->clear();
  return 0;
}

// The function behind it may be a transform too, and so on: Python's trashcan ends them without a frame for each.
void transformed_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, transformed_dealloc);
  if (object_of(self)->weak_references) PyObject_ClearWeakRefs(self);
  transformed_clear(self);
  object_of(self)->options.~unique_ptr();
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
  Py_TRASHCAN_END;
}

PyObject* transformed_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s of %R>", object_of(self)->name, object_of(self)->function);
}

PyObject* transformed_bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

// Where copying the function gives the function itself, this is itself too.
PyObject* transformed_deepcopy(PyObject* self, PyObject* memo) {
  const PyRef copy = imported_module("copy");
  const PyRef function =
      PyRef::steal(copy ? PyObject_CallMethod(copy.get(), "deepcopy", "OO", object_of(self)->function, memo) : nullptr);
  if (!function || function.get() == object_of(self)->function) return function ? Py_NewRef(self) : nullptr;
  PyRef made = PyRef::steal(make_transformed(object_of(self)->name, function.get(), object_of(self)->body,
                                             object_of(self)->options->clone()));
  if (made && object_of(self)->attributes) {
    object_of(made.get())->attributes = PyDict_Copy(object_of(self)->attributes);
    if (!object_of(made.get())->attributes) return nullptr;
  }
  return made.release();
}

// A string: the name under which the module has it, as pickle takes functions.
PyObject* transformed_reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyMethodDef transformed_methods[] = {{"__deepcopy__", transformed_deepcopy, METH_O, nullptr},
                                     {"__reduce__", transformed_reduce, METH_NOARGS, nullptr},
                                     {nullptr, nullptr, 0, nullptr}};

PyObject* get_wrapped(PyObject* self, void*) { return Py_NewRef(object_of(self)->function); }

// What the user set, else what the function has: of transforms of transforms without a frame for each.
PyObject* get_forwarded(PyObject* self, void* attribute) {
  const auto* name = static_cast<const char*>(attribute);
  PyObject* function = self;
  while (Py_TYPE(function) == Py_TYPE(self)) {
    if (PyObject* own = object_of(function)->attributes) {
      if (PyObject* found = PyDict_GetItemString(own, name)) return Py_NewRef(found);
    }
    function = object_of(function)->function;
  }
  return PyObject_GetAttrString(function, name);
}

int set_forwarded(PyObject* self, PyObject* value, void* attribute) {
  PyRef own = PyRef::steal(PyObject_GenericGetDict(self, nullptr));
  if (!own) return -1;
  const auto* name = static_cast<const char*>(attribute);
  return value ? PyDict_SetItemString(own.get(), name, value) : PyDict_DelItemString(own.get(), name);
}

PyGetSetDef forwarded(const char* name) {
  return {name, get_forwarded, set_forwarded, nullptr, const_cast<char*>(name)};
}

PyGetSetDef transformed_getset[] = {forwarded("__name__"),
                                    forwarded("__qualname__"),
                                    forwarded("__module__"),
                                    forwarded("__doc__"),
                                    forwarded("__annotations__"),
                                    {"__wrapped__", get_wrapped, nullptr, "The function behind it.", nullptr},
                                    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef transformed_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TransformedObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(TransformedObject, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TransformedObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot transformed_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(transformed_dealloc)},
                                   {Py_tp_traverse, reinterpret_cast<void*>(transformed_traverse)},
                                   {Py_tp_clear, reinterpret_cast<void*>(transformed_clear)},
                                   {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                   {Py_tp_descr_get, reinterpret_cast<void*>(transformed_bind)},
                                   {Py_tp_repr, reinterpret_cast<void*>(transformed_repr)},
                                   {Py_tp_getset, transformed_getset},
                                   {Py_tp_methods, transformed_methods},
                                   {Py_tp_members, transformed_members},
                                   {0, nullptr}};
PyType_Spec transformed_spec = {"backplane.Transformed", sizeof(TransformedObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                    Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                transformed_slots};

}  // namespace

bool check_callable(const char* name, PyObject* function) {
  if (PyCallable_Check(function)) return true;
  PyRef kind = found_kind(function);
  if (kind) raise(BP_ERROR_TYPE, "%s: argument fun: found %U, expected a function", name, kind.get());
  return false;
}

const char* transform_name(PyObject* name, const char* other) {
  static constexpr const char* kComposed[] = {"jacrev", "jacfwd"};
  for (const char* known : kComposed)
    if (PyUnicode_CompareWithASCIIString(name, known) == 0) return known;
  return other;
}

PyObject* make_transformed(const char* name, PyObject* function, TransformBody body,
                           std::unique_ptr<TransformOptions> options) {
  if (!check_callable(name, function)) return nullptr;
  auto* self = PyObject_GC_New(TransformedObject, g_transformed_type);
  if (!self) return nullptr;
  self->vectorcall = transformed_vectorcall;
  self->name = name;
  self->function = Py_NewRef(function);
  self->attributes = nullptr;
  self->weak_references = nullptr;
  self->body = body;
  new (&self->options) std::unique_ptr<TransformOptions>(std::move(options));
  PyObject_GC_Track(reinterpret_cast<PyObject*>(self));
  return reinterpret_cast<PyObject*>(self);
}

bool add_transformed_type(PyObject* module) {
  g_transformed_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&transformed_spec));
  return g_transformed_type &&
         PyModule_AddObjectRef(module, "Transformed", reinterpret_cast<PyObject*>(g_transformed_type)) == 0;
}

}  // namespace backplane::python
