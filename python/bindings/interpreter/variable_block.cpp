// VariableBlock: what `with` is given to set a context variable of Python's for a block.
//
// The variable is set and reset in C, between two bytecodes: an exception that a signal handler raises finds the block
// either open, with its exit to come, or not.
#include "bindings/interpreter/context_settings.hpp"
#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

struct VariableBlock {
  PyObject_HEAD PyObject *variable, *make, *tokens;
};
VariableBlock* variable_block_of(PyObject* object) { return reinterpret_cast<VariableBlock*>(object); }

// Python: VariableBlock(variable: Any, make: Callable[[], tuple[Any, Any]])
PyObject* variable_block_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"variable", "make", nullptr};
  PyObject *variable = nullptr, *make = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:VariableBlock", const_cast<char**>(keywords), &variable, &make))
    return nullptr;
  if (!PyContextVar_CheckExact(variable))
    return raise(BP_ERROR_TYPE, "VariableBlock: argument variable: found %R, expected a ContextVar", variable);
  PyRef tokens = PyRef::steal(PyList_New(0));
  PyObject* self = tokens ? type->tp_alloc(type, 0) : nullptr;
  if (!self) return nullptr;
  *variable_block_of(self) = {variable_block_of(self)->ob_base, Py_NewRef(variable), Py_NewRef(make), tokens.release()};
  return self;
}

// Python: VariableBlock.__enter__(self) -> Any
PyObject* variable_block_enter(PyObject* self, PyObject*) {
  VariableBlock* block = variable_block_of(self);
  const PyRef made = PyRef::steal(PyObject_CallNoArgs(block->make));  // the last code of Python
  if (!made) return nullptr;
  if (!PyTuple_CheckExact(made.get()) || PyTuple_GET_SIZE(made.get()) != 2)
    return raise(BP_ERROR_TYPE,
                 "VariableBlock: argument make: it gave %R, expected a tuple of the value and the result", made.get());
  const PyRef token = PyRef::steal(PyContextVar_Set(block->variable, PyTuple_GET_ITEM(made.get(), 0)));
  if (!token) return nullptr;
  if (PyList_Append(block->tokens, token.get()) < 0) {
    PyContextVar_Reset(block->variable, token.get());
    return nullptr;
  }
  return Py_NewRef(PyTuple_GET_ITEM(made.get(), 1));
}

// Python: VariableBlock.__exit__(self, *failure: object) -> None
PyObject* variable_block_exit(PyObject* self, PyObject*) {
  VariableBlock* block = variable_block_of(self);
  const Py_ssize_t last = PyList_GET_SIZE(block->tokens) - 1;
  if (last < 0) return raise(BP_ERROR_VALUE, "VariableBlock: left without having been entered");
  const PyRef token = PyRef::borrow(PyList_GET_ITEM(block->tokens, last));
  if (PyList_SetSlice(block->tokens, last, last + 1, nullptr) < 0) return nullptr;
  if (PyContextVar_Reset(block->variable, token.get()) < 0) return nullptr;
  Py_RETURN_NONE;
}

int variable_block_traverse(PyObject* self, visitproc visit, void* arg) {
  const VariableBlock* block = variable_block_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(block->variable);
  Py_VISIT(block->make);
  Py_VISIT(block->tokens);
  return 0;
}
int variable_block_clear(PyObject* self) {
  VariableBlock* block = variable_block_of(self);
  Py_CLEAR(block->variable);
  Py_CLEAR(block->make);
  Py_CLEAR(block->tokens);
  return 0;
}
void variable_block_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  variable_block_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef variable_block_methods[] = {{"__enter__", variable_block_enter, METH_NOARGS, nullptr},
                                        {"__exit__", variable_block_exit, METH_VARARGS, nullptr},
                                        {nullptr, nullptr, 0, nullptr}};
PyType_Slot variable_block_slots[] = {{Py_tp_new, reinterpret_cast<void*>(variable_block_new)},
                                      {Py_tp_dealloc, reinterpret_cast<void*>(variable_block_dealloc)},
                                      {Py_tp_traverse, reinterpret_cast<void*>(variable_block_traverse)},
                                      {Py_tp_clear, reinterpret_cast<void*>(variable_block_clear)},
                                      {Py_tp_methods, variable_block_methods},
                                      {0, nullptr}};
PyType_Spec variable_block_spec = {"backplane.VariableBlock", sizeof(VariableBlock), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, variable_block_slots};

}  // namespace

bool add_variable_block(PyObject* module) {
  const PyRef type = PyRef::steal(PyType_FromSpec(&variable_block_spec));
  return type && PyModule_AddObjectRef(module, "VariableBlock", type.get()) == 0;
}

}  // namespace backplane::python
