// Objects that a traced function made and then stored or returned: each call that replays the trace gets its own.
//
// The first caller has the objects of the trace and may change them. So a copy is kept, and each later call gets a copy
// of the kept one. All functions need the interpreter lock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

class Renewal {
 public:
  // Keeps a copy of the values in the list. `is_new`: did the run make the object? Others stay as they are. Empty:
  // done; else why they cannot be copied.
  std::string keep(PyObject* values, const std::function<bool(PyObject*)>& is_new);
  bool is_empty() const { return !values_; }
  // A list of new copies; not where is_empty(). Empty: a Python error.
  PyRef renewed() const;
  // The tensors among the kept copies, which each call copies again.
  std::vector<Tensor> tensors() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  PyRef values_, shared_, functions_;  // lists
};

}  // namespace backplane::python
