// The argument `dynamic` of make_graph and compile: it names the sizes of axes of arguments.
//
// {"x": {0: "batch"}}: by the names that the graph's inputs have, "params['w']"; a container's name means each tensor
// in it. Or a sequence with an entry, or None, per positional argument. Or True: every size from 2 on, where axes that
// have equal sizes in the traced call share a name. All functions need the interpreter lock.
#pragma once

#include <string>
#include <vector>

#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {

class DynamicSpec {
 public:
  // None: no axis. False: a Python error, which names `transform`.
  bool read(const char* transform, PyObject* object);
  bool is_empty() const { return entries_.empty() && !is_all_; }
  // The names with their places in this call. False: a Python error.
  bool find(const CallInputs& inputs, std::vector<DynamicSize>* sizes) const;

 private:
  struct Entry {
    std::string path;          // where `position` is -1
    Py_ssize_t position = -1;  // of an argument
    std::vector<std::pair<Py_ssize_t, std::string>> axes;
  };
  bool read_axes(PyObject* axes, Entry entry);
  bool holds(const Entry& entry, const CallInputs& inputs, size_t leaf) const;
  bool add(const Entry& entry, const CallInputs& inputs, size_t tensor, std::vector<DynamicSize>* sizes) const;

  const char* transform_ = "";
  std::vector<Entry> entries_;
  bool is_all_ = false;
};

}  // namespace backplane::python
