// What containers and objects held before a function was traced, so that what the function leaves in them is found: a
// graph would read the first value of what it replaces for ever, and a tensor of the trace has no value once that has
// ended.
//
// All functions need the interpreter lock.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

class StateBefore {
 public:
  // The object, and the containers and objects that it leads to. `path`: what messages call it.
  void note(PyObject* object, const std::string& path);

  struct Change {
    enum Of { kAttribute, kItem, kElement, kElements } of;
    PyRef holder;
    PyRef key;       // a name, a key or a position; empty where all elements are meant
    PyRef had, now;  // of all elements: lists. No `had`: there was none
    std::string place;
    void put_back() const;  // clears no error, and may set one
  };
  // Attributes and entries that hold another object now, or that there were none of. A container of another length has
  // one change, of all its elements.
  std::vector<Change> changes() const;

 private:
  struct Place {
    PyRef object, before;  // a copy of its elements, or of its attributes
    bool of_attributes;
    std::string path;
  };
  std::vector<Place> places_;
  std::unordered_set<PyObject*> seen_;
};

// The objects behind a callable: those of bound methods, the arguments of functools.partial and the defaults of
// functions, also behind transforms and one another. Functions are none.
std::vector<PyRef> parts_of_callable(PyObject* callable);

}  // namespace backplane::python
