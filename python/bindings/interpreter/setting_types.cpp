// What `with` is given for a setting: SettingBlock, which the package's blocks are made of, and AppliedSetting, behind
// what its setters return.
#include "bindings/interpreter/context_settings.hpp"

#include <utility>

namespace backplane::python {
namespace {

// (setting, value): a block of it.
struct Block {
  PyObject_HEAD Setting setting;
  int64_t value;
};
// (setting, value, restored, process): set at once. If a block begins with it, the setting is that block's; else it
// holds until further notice. Which of them is known when the object is entered, or dropped, or another setting
// changes.
struct Applied {
  Block block;
  int64_t restored;  // by a block that begins after it was settled
  bool process, pending;
};

Block* block_of(PyObject* object) { return reinterpret_cast<Block*>(object); }
Applied* applied_of(PyObject* object) { return reinterpret_cast<Applied*>(object); }

// The last that is not settled, of the thread of this state.
Applied* g_pending = nullptr;
uint64_t g_pending_thread = 0;

// `keep`: the setting stays in force from now on.
bool settle(Applied* applied, bool keep) noexcept {
  if (!std::exchange(applied->pending, false)) return true;
  if (g_pending == applied) g_pending = nullptr;
  if (place_of_block(applied) != BlockPlace::kInnermost) return true;  // of another context, whose it stays
  return leave_block(applied) &&
         (!keep || change_setting(applied->block.setting, applied->block.value, applied->process));
}

}  // namespace

bool settle_pending() noexcept {
  return !g_pending || g_pending_thread != PyThreadState_Get()->id || settle(g_pending, true);
}

bool begin_block(const void* owner, Setting setting, int64_t value) noexcept {
  return settle_pending() && enter_block(owner, setting, value);
}

namespace {

// Python: SettingBlock(setting: int, value: int)
PyObject* block_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  int setting = 0;
  long long value = 0;
  static const char* keywords[] = {"setting", "value", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iL:SettingBlock", const_cast<char**>(keywords), &setting, &value))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  block_of(self)->setting = static_cast<Setting>(setting);
  block_of(self)->value = value;
  return self;
}
// Python: SettingBlock.__enter__(self) -> Any
PyObject* block_enter(PyObject* self, PyObject*) {
  return begin_block(self, block_of(self)->setting, block_of(self)->value) ? Py_NewRef(self) : nullptr;
}
// Python: SettingBlock.__exit__(self, *failure: object) -> None
PyObject* block_exit(PyObject* self, PyObject*) {
  if (!leave_block(self)) return nullptr;
  Py_RETURN_NONE;
}
void block_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Python: AppliedSetting(setting: int, value: int, restored: int, process: bool)
PyObject* applied_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  int setting = 0, process = 0;
  long long value = 0, restored = 0;
  static const char* keywords[] = {"setting", "value", "restored", "process", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iLLp:AppliedSetting", const_cast<char**>(keywords), &setting, &value,
                                   &restored, &process))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  Applied* applied = applied_of(self);
  applied->block = {applied->block.ob_base, static_cast<Setting>(setting), value};
  applied->restored = restored;
  applied->process = process != 0;
  if (!begin_block(self, applied->block.setting, value)) {
    Py_DECREF(self);
    return nullptr;
  }
  applied->pending = true;
  g_pending = applied;
  g_pending_thread = PyThreadState_Get()->id;
  return self;
}
// Python: AppliedSetting.enter(self) -> None
PyObject* applied_enter(PyObject* self, PyObject*) {
  applied_of(self)->pending = false;
  if (g_pending == applied_of(self)) g_pending = nullptr;
  Py_RETURN_NONE;
}
// Python: AppliedSetting.exit(self) -> None
PyObject* applied_exit(PyObject* self, PyObject*) {
  const Applied* applied = applied_of(self);
  const bool done = place_of_block(self) != BlockPlace::kElsewhere
                        ? leave_block(self)
                        : change_setting(applied->block.setting, applied->restored, applied->process);
  if (!done) return nullptr;
  Py_RETURN_NONE;
}
// Python: AppliedSetting.settle(self) -> None
PyObject* applied_settle(PyObject* self, PyObject*) {
  if (!settle(applied_of(self), true)) return nullptr;
  Py_RETURN_NONE;
}
// With an exception on its way, as of a signal's handler, the block that was to begin does not.
void applied_dealloc(PyObject* self) {
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  if (!settle(applied_of(self), !type)) PyErr_Clear();
  PyErr_Restore(type, error, trace);
  block_dealloc(self);
}

// Of a class of Python's that has an AppliedSetting in `_applied`: without a bytecode of its own.
PyObject* applied_in(PyObject* self, const char* method) {
  const PyRef applied = PyRef::steal(PyObject_GetAttrString(self, "_applied"));
  return applied ? PyObject_CallMethod(applied.get(), method, nullptr) : nullptr;
}
PyObject* enter_applied(PyObject*, PyObject* self) {
  const PyRef done = PyRef::steal(applied_in(self, "enter"));
  return done ? Py_NewRef(self) : nullptr;
}
PyObject* exit_applied(PyObject*, PyObject* args) { return applied_in(PyTuple_GET_ITEM(args, 0), "exit"); }

PyObject* g_applied_type = nullptr;

// Gives `old`, what a setter returns, an AppliedSetting. In one call, and `old` in no variable: as an exception passes,
// only what no frame holds any more goes at once. Python: apply_setting(old: Any, setting: int, value: int, restored:
// int, process: bool) -> Any
PyObject* apply_setting(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const PyRef applied =
      PyRef::steal(PyObject_Vectorcall(g_applied_type, args + 1, static_cast<size_t>(count - 1), nullptr));
  if (!applied || PyObject_SetAttrString(args[0], "_applied", applied.get()) != 0) return nullptr;
  return Py_NewRef(args[0]);
}
PyMethodDef applied_functions[] = {
    {"apply_setting", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(apply_setting)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef block_methods[] = {{"__enter__", block_enter, METH_NOARGS, nullptr},
                               {"__exit__", block_exit, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot block_slots[] = {{Py_tp_new, reinterpret_cast<void*>(block_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(block_dealloc)},
                             {Py_tp_methods, block_methods},
                             {0, nullptr}};
PyType_Spec block_spec = {"backplane.SettingBlock", sizeof(Block), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          block_slots};

PyMethodDef applied_methods[] = {{"enter", applied_enter, METH_NOARGS, nullptr},
                                 {"exit", applied_exit, METH_NOARGS, nullptr},
                                 {"settle", applied_settle, METH_NOARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyType_Slot applied_slots[] = {{Py_tp_new, reinterpret_cast<void*>(applied_new)},
                               {Py_tp_dealloc, reinterpret_cast<void*>(applied_dealloc)},
                               {Py_tp_methods, applied_methods},
                               {0, nullptr}};
PyType_Spec applied_spec = {"backplane.AppliedSetting", sizeof(Applied), 0, Py_TPFLAGS_DEFAULT, applied_slots};

PyMethodDef enter_function = {"enter_applied", enter_applied, METH_O, nullptr};
PyMethodDef exit_function = {"exit_applied", exit_applied, METH_VARARGS, nullptr};

bool add_method(PyObject* module, PyMethodDef* function) {
  const PyRef made = PyRef::steal(PyCFunction_New(function, nullptr));
  const PyRef method = PyRef::steal(made ? PyInstanceMethod_New(made.get()) : nullptr);
  return method && PyModule_AddObjectRef(module, function->ml_name, method.get()) == 0;
}

}  // namespace

bool add_context_settings(PyObject* module) {
  const PyRef block = PyRef::steal(PyType_FromSpec(&block_spec));
  const PyRef applied = PyRef::steal(PyType_FromSpec(&applied_spec));
  g_applied_type = applied ? Py_NewRef(applied.get()) : nullptr;
  return block && applied && add_context_variable() && add_variable_block(module) &&
         PyModule_AddFunctions(module, applied_functions) == 0 && add_method(module, &enter_function) &&
         add_method(module, &exit_function) && PyModule_AddObjectRef(module, "SettingBlock", block.get()) == 0 &&
         PyModule_AddObjectRef(module, "AppliedSetting", applied.get()) == 0;
}

}  // namespace backplane::python
