// Objects that a traced function made and then stored or returned: each call that replays the trace gets its own.
//
// The trace's objects are those of the first call, whose caller may change them. So a copy is kept, of which a copy is
// made for each later call. All functions need the interpreter lock.
#pragma once

#include <functional>
#include <string>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

class Renewal {
 public:
  // Keeps a copy of the values in the list. `is_new`: did the run make the object? Others stay as they are. Empty:
  // done; else why they cannot be copied.
  std::string keep(PyObject* values, const std::function<bool(PyObject*)>& is_new);
  bool is_empty() const { return !values_; }
  // A list of the values anew, of which there are some. Empty: a Python error.
  PyRef renewed() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  PyRef values_, shared_, functions_;  // lists
};

}  // namespace backplane::python
