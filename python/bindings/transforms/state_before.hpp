// What containers and objects held before a function was traced, so that state which the function replaces is found: a
// graph would read the first value for ever.
//
// All functions need the interpreter lock.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

inline constexpr Py_ssize_t kMostElements =
    1024;  // of a container; of a longer one only which it is and its size count

class StateBefore {
 public:
  // The object, and the containers and objects that it leads to. `path`: what messages call it.
  void note(PyObject* object, const std::string& path);

  struct Replaced {
    PyRef holder, key, had, now;
    std::string place;
    void put_back() const;  // clears no error, and may set one
  };
  // The entries that hold another object now. A list that has another length has none: it is one of notes.
  std::vector<Replaced> replaced() const;

 private:
  struct Place {
    PyRef object, before;  // snapshot_of(object); empty: it has none, or is long
    std::string path;
  };
  std::vector<Place> places_;
  std::unordered_set<PyObject*> seen_;
};

// The objects behind a callable: those of bound methods, and the arguments of functools.partial, also behind transforms
// and one another. Functions are none.
std::vector<PyRef> parts_of_callable(PyObject* callable);

}  // namespace backplane::python
