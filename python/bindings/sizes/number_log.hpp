// Numbers that change from call to call, followed through the Python code of a traced function.
//
// A number that the function is given or reads (a root) is handed to it as an instance of a subclass of float or int
// with its value. Arithmetic and functions of numbers give more of them, each a step of a program that a later call
// runs with Python's own functions. An op takes a traced number as an input of the graph. Whatever else looks at the
// value makes the step's value a guard, so that the graph serves later calls with the same value there. All functions
// need the interpreter lock.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backplane/graph.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/tensor/number_hook.hpp"

namespace backplane::python {

bool add_number_types();  // and sets the hook

// The float or int with the value of a traced number, of a type that nobody follows; any other object itself.
PyRef untraced(PyObject* object);
// A float or int with the type of a traced number, of no step. Empty: a Python error.
PyRef as_traced(PyObject* value);
// The result of a function for plain numbers in place of up to kMostOperands traced ones. A step, if one of them is
// followed now. nullptr: a Python error.
inline constexpr size_t kMostOperands = 4;
PyObject* compute(PyObject* function, PyObject* const* operands, size_t count);
// A float or an int of exactly that type: what may become a traced number.
inline bool may_be_traced(PyObject* object) noexcept { return PyFloat_CheckExact(object) || PyLong_CheckExact(object); }

// What a later call computes of its numbers.
class NumberProgram {
 public:
  struct Operand {
    static constexpr uint32_t kConstant = 0xffffffffu;
    uint32_t step = kConstant;
    PyRef constant;
  };
  struct Step {
    PyRef function;  // none: a root, whose value the call gives
    std::vector<Operand> operands;
    PyTypeObject* type = nullptr;  // float, int or bool: of its value
    PyRef required;                // the trace has looked at the value: it must be this one
    std::string path;              // of a root: "self.t"
  };
  struct Input {
    uint32_t step;
    bp_dtype dtype;
    bp_device device;
  };
  std::vector<Step> steps;
  std::vector<Input> inputs;  // of the graph, behind the call's tensors, in order

  bool empty() const noexcept { return steps.empty(); }
  // `values`, by step: the roots' values are given, and the others are filled in. False: the graph is not for these
  // values, and `why` says so, where it is not nullptr.
  bool run(std::vector<PyRef>& values, std::string* why) const;
  // The inputs' tensors. False: a value is out of its dtype's range.
  bool make_tensors(const std::vector<PyRef>& values, std::vector<Tensor>* tensors) const;
  int traverse(visitproc visit, void* arg) const;
};

class NumberLog {
 public:
  // `wanted`: is the number at this path ("self.t") to be a root? Inputs are made in `scope`.
  NumberLog(TraceScope& scope, std::function<bool(const std::string&)> wanted)
      : scope_(&scope), wanted_(std::move(wanted)) {}
  NumberLog(const NumberLog&) = delete;

  // The log of this thread; nullptr: none.
  static NumberLog* current() noexcept { return current_; }
  class Use {
   public:
    explicit Use(NumberLog* log) noexcept : outer_(current_) { current_ = log; }
    ~Use() { current_ = outer_; }
    Use(const Use&) = delete;

   private:
    NumberLog* outer_;
  };

  // The value as a root, or nothing, where none is wanted of this path.
  PyRef root(PyObject* value, const std::string& path);
  // `result`, which is taken over, as what the function gives of the operands. Returned unchanged if it is not a
  // number.
  PyObject* computed(PyObject* function, PyObject* const* operands, size_t count, PyObject* result);
  // The value of a traced number is looked at.
  void look_at(PyObject* number);
  // A truth value that the function gives of the operands is looked at.
  void decide(PyObject* function, PyObject* const* operands, size_t count, PyObject* outcome);
  // The traced tensor that stands for the number.
  Tensor tensor_of(PyObject* number, bp_dtype dtype, bp_device device);
  // Which step made it; kConstant: none of this log.
  uint32_t step_of(PyObject* number) const;
  size_t input_count() const { return program_.inputs.size(); }
  NumberProgram take() { return std::move(program_); }
  const std::vector<PyRef>& values() const { return values_; }

 private:
  uint32_t add(PyObject* function, PyObject* const* operands, size_t count, PyObject* value);
  PyRef follow(uint32_t step, PyObject* value);
  bool is_in_range(uint32_t step, bp_dtype dtype) const;
  static thread_local constinit NumberLog* current_;
  TraceScope* scope_;
  std::function<bool(const std::string&)> wanted_;
  NumberProgram program_;
  std::vector<PyRef> values_;  // per step, in this run
  std::vector<Tensor> tensors_;
  std::unordered_map<PyObject*, uint32_t> known_;
  std::vector<PyRef> held_;
};

}  // namespace backplane::python
