// Which code of Python ran while a function was traced, and what it could have read: names of attributes, variables.
//
// All functions need the interpreter lock.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"
#include "bindings/transforms/object_contents.hpp"
#include "bindings/transforms/state_before.hpp"

namespace backplane::python {

// A global, or a variable of an enclosing function, as it was before code read it.
struct Variable {
  PyRef holder;  // the globals, or the cell
  PyRef name, value;
  PyRef before;              // snapshot_of(value)
  std::vector<PyRef> codes;  // that may read it
  bool is_cell() const { return !PyDict_Check(holder.get()); }
  PyObject* found() const;  // borrowed; now, nullptr: there is none
  void put_back() const;    // clears no error, and may set one
};

// Of the code that this thread runs until it is stopped.
class NamesOfRun {
 public:
  explicit NamesOfRun(StateBefore& state);  // which notes what variables hold
  ~NamesOfRun();
  NamesOfRun(const NamesOfRun&) = delete;
  // Before the run: the cells of the function, and of functions in its cells and globals, are variables too.
  void add_cells(PyObject* function);
  void stop();

  // Could the code have read an attribute of this name? Each, where names are made while it runs (getattr), and where
  // a profiler was there before.
  bool has(PyObject* name) const;
  // Could it have asked whether there is an attribute?
  bool asks_for_attributes() const { return all_ || names_.count("hasattr") > 0; }
  // Those that code which ran reads, of modules that are not this package's.
  std::vector<const Variable*> variables_read() const;
  // These, and those that it only writes.
  std::vector<const Variable*> variables() const;

 private:
  static int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* arg);
  void add(PyObject* code, PyObject* globals);
  void add_globals(PyObject* code, PyObject* globals);
  void note(PyObject* name, PyObject* value, const char* kind);
  StateBefore& state_;
  std::unordered_set<std::string> names_;
  std::unordered_set<PyObject*> codes_;      // held by `kept_`
  std::unordered_set<PyObject*> functions_;  // whose cells are known; likewise
  std::vector<PyRef> kept_;
  std::map<std::pair<PyObject*, PyObject*>, Variable> variables_;  // by holder and name
  bool all_ = false, is_blind_ = false;
};

}  // namespace backplane::python
