// What a trace asks Python's garbage collector. All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <optional>

#include "bindings/guards/kept_tensors.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// The objects that the collector knows, as a list. `generation`: of that one alone. Empty: none.
PyRef collected_objects(std::optional<int> generation);
// Those that were made since the collector last moved the young ones on.
Objects young_objects();
// Moves the young ones on.
void age_objects();

// The functions that the collector calls: the list gc.callbacks. Empty: the program has put something else there.
PyRef collector_callbacks();
// Does a callback of this tuple run the function of Python?
bool is_callback(PyObject* callbacks, PyObject* function);

}  // namespace backplane::python
