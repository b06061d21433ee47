// Converts sizes of traced tensors to numbers that record operations on them. The folder `sizes` sets the hook.
//
// All functions need the interpreter lock.
#pragma once

#include <cstdint>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

struct SizeHook {
  bool (*notes)(PyObject* tensor) = nullptr;         // are sizes of this tensor noted now?
  PyObject* (*read)(int64_t value) = nullptr;        // one of them; a new reference, or NULL with an error
  void (*lose_strides)(PyObject* tensor) = nullptr;  // strides are read, which nobody follows
  void (*lose_length)(PyObject* tensor) = nullptr;   // the number of rows goes to code that does not follow it
};
inline SizeHook g_size_hook;

// What `x.size(...)` calls: the number that x.size gave, a plain or a noted one. PyTorch's shape, or the size of an
// axis.
PyObject* call_size(PyObject* size, PyObject* args, PyObject* kwargs);

inline bool notes_sizes(PyObject* tensor) { return g_size_hook.notes && g_size_hook.notes(tensor); }
inline void note_length(PyObject* tensor) {
  if (notes_sizes(tensor)) g_size_hook.lose_length(tensor);
}

}  // namespace backplane::python
