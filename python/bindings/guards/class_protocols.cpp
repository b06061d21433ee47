#include "bindings/guards/class_protocols.hpp"

#include <array>
#include <string>

#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

// Names without their underscores. Of an operator ("add") the class may also have the reflected ("radd") and the
// in-place form ("iadd").
constexpr const char* kMethods[] = {"getattribute",
                                    "getattr",
                                    "setattr",
                                    "delattr",
                                    "call",
                                    "new",
                                    "init",
                                    "del",
                                    "repr",
                                    "str",
                                    "format",
                                    "bytes",
                                    "hash",
                                    "eq",
                                    "ne",
                                    "lt",
                                    "le",
                                    "gt",
                                    "ge",
                                    "bool",
                                    "len",
                                    "length_hint",
                                    "getitem",
                                    "setitem",
                                    "delitem",
                                    "missing",
                                    "contains",
                                    "iter",
                                    "next",
                                    "reversed",
                                    "neg",
                                    "pos",
                                    "abs",
                                    "invert",
                                    "complex",
                                    "int",
                                    "float",
                                    "index",
                                    "round",
                                    "trunc",
                                    "floor",
                                    "ceil",
                                    "enter",
                                    "exit",
                                    "aenter",
                                    "aexit",
                                    "await",
                                    "aiter",
                                    "anext",
                                    "get",
                                    "set",
                                    "delete",
                                    "instancecheck",
                                    "subclasscheck",
                                    "subclasshook",
                                    "prepare",
                                    "mro_entries",
                                    "class_getitem",
                                    "init_subclass",
                                    "set_name",
                                    "copy",
                                    "deepcopy",
                                    "replace",
                                    "reduce",
                                    "reduce_ex",
                                    "getstate",
                                    "getnewargs",
                                    "getnewargs_ex",
                                    "setstate",
                                    "array",
                                    "array_ufunc",
                                    "array_function",
                                    "array_priority",
                                    "array_interface",
                                    "array_struct",
                                    "array_wrap",
                                    "dlpack",
                                    "dlpack_device",
                                    "buffer",
                                    "dir",
                                    "match_args",
                                    "fspath",
                                    "post_init",
                                    "sizeof",
                                    "class",
                                    "dict"};
constexpr const char* kOperators[] = {"add", "sub",    "mul",    "truediv", "floordiv", "mod", "divmod",
                                      "pow", "matmul", "lshift", "rshift",  "and",      "or",  "xor"};
constexpr const char* kForms[] = {"", "r", "i"};
constexpr size_t kCount = std::size(kMethods) + std::size(kOperators) * std::size(kForms);

PyObject* special_name(const std::string& name) { return PyUnicode_InternFromString(("__" + name + "__").c_str()); }

// Nothing where the interpreter has no memory for them.
const std::array<PyObject*, kCount>* special_names() {
  static const std::array<PyObject*, kCount>* names = nullptr;  // outlive the interpreter's end
  if (names) return names;
  std::array<PyObject*, kCount> made{};
  size_t n = 0;
  for (const char* method : kMethods) made[n++] = special_name(method);
  for (const char* form : kForms)
    for (const char* op : kOperators) made[n++] = special_name(std::string(form) + op);
  forget_error();
  for (PyObject* name : made)
    if (!name) return nullptr;
  names = new std::array<PyObject*, kCount>(made);
  return names;
}

// The looked-up objects behind the bases; nothing stands for a name that the class does not have.
PyObject* found_special(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  return found ? found : Py_None;
}

}  // namespace

bool is_changeable(PyTypeObject* type) noexcept {
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE);
}

PyRef class_protocol(PyTypeObject* type) {
  const auto* names = special_names();
  PyRef protocol = PyRef::steal(names && type->tp_mro ? PyTuple_New(kCount + 1) : nullptr);
  if (protocol) PyTuple_SET_ITEM(protocol.get(), 0, Py_NewRef(type->tp_mro));
  for (size_t i = 0; protocol && i < kCount; ++i)
    PyTuple_SET_ITEM(protocol.get(), static_cast<Py_ssize_t>(i + 1), Py_NewRef(found_special(type, (*names)[i])));
  forget_error();
  return protocol;
}

bool holds_protocol(PyObject* protocol, PyTypeObject* type) noexcept {
  PyObject *bases = PyTuple_GET_ITEM(protocol, 0), *now = type->tp_mro;
  if (!now || PyTuple_GET_SIZE(now) != PyTuple_GET_SIZE(bases)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(now); ++i)
    if (PyTuple_GET_ITEM(now, i) != PyTuple_GET_ITEM(bases, i)) return false;
  const auto* names = special_names();
  for (size_t i = 0; names && i < kCount; ++i)
    if (found_special(type, (*names)[i]) != PyTuple_GET_ITEM(protocol, static_cast<Py_ssize_t>(i + 1))) return false;
  return names != nullptr;
}

unsigned class_version(PyTypeObject* type) noexcept {
#if PY_VERSION_HEX < 0x030C0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

}  // namespace backplane::python
