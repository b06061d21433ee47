// What a traced function read of objects that are static arguments: the graph holds it as it was, so another value
// makes another kind of call.
//
// Looked at are attributes whose names stand in the code that ran while the function was traced, of the objects, of
// what such attributes lead to (dicts, lists, tuples, other objects), and of their classes. What the trace itself
// changed is a side effect of the function and no part of it. All functions need the interpreter lock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// The names in the code that this thread runs until it is stopped.
class NamesOfRun {
 public:
  NamesOfRun();
  ~NamesOfRun();
  NamesOfRun(const NamesOfRun&) = delete;
  void stop();

  // Could the code have read an attribute of this name? Each, where names are made while it runs (getattr), and where
  // a profiler was there before.
  bool has(PyObject* name) const;

 private:
  static int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* arg);
  void add(PyObject* code);
  std::unordered_set<std::string> names_;
  std::unordered_set<PyObject*> codes_;  // held by `kept_`
  std::vector<PyRef> kept_;
  bool all_ = false;
};

class ObjectGuards {
 public:
  // Before the trace: an object that is guarded after it, and what messages call it.
  void add(PyObject* object, std::string name);
  bool is_empty() const { return roots_.empty() && watches_.empty(); }
  // After it. `used`: tensors that the graph holds; of others the form alone counts. False: a Python error.
  bool close(const NamesOfRun& names, std::span<const Tensor> used);
  // As TracedCall::fits.
  int fit(std::string* why) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Root {
    PyRef object, before;  // a copy of its attributes
    std::string name;
  };
  // Of a tensor that is not held here.
  struct Form {
    const bp_tensor* tensor;  // nullptr: any of the form
    bp_dtype dtype;
    bp_device device;
    std::vector<int64_t> shape;
    bool is_of(const bp_tensor& found) const;
    std::string text() const;
  };
  struct Item {
    PyRef key, value;  // no value: there is none, or it is a tensor
    std::optional<Form> tensor;
  };
  // Entries of a dict or a list, or attributes of a class.
  struct Watch {
    enum Kind { kDict, kList, kType } kind;
    PyRef holder;
    Py_ssize_t size;  // -1: entries that are none of the items do not count
    std::string path;
    std::vector<Item> items;
  };
  class Walk;
  int fit(const Watch& watch, const Item& item, std::string* why) const;

  std::vector<Root> roots_;
  std::vector<Watch> watches_;
};

}  // namespace backplane::python
