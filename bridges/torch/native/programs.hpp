// Programs: what a row computes for one kind of arguments, as a list of calls of ops. They run without Python.
#pragma once

#include <Python.h>

#include <c10/core/Scalar.h>

#include <memory>
#include <string>
#include <vector>

#include "backplane/op.hpp"

namespace backplane_torch {

// An argument of a call. `index` counts the call's tensors, its numbers, or the results so far.
struct ProgramValue {
  enum class Kind { kTensor, kNumber, kResult, kConstant, kList } kind;
  size_t index = 0;
  bool is_operand = false;  // a number in the place of a tensor
  bp_value constant{};      // over the members below where it is a list, a text or complex
  std::vector<int64_t> ints;
  std::vector<bp_value> values;
  std::vector<ProgramValue> elements;  // of a list: tensors and results
  std::string text;
  double parts[2]{};
};

struct ProgramStep {
  backplane::OpHandle op;
  std::vector<ProgramValue> args;
  int32_t n_results;
};

class Program {
 public:
  // (steps, indices of results): a step is (name of the op, arguments, number of results); an argument is (letter,
  // content, is it an operand): t, n, r as in ProgramValue::Kind with an index, l with a list of arguments, or c with a
  // constant. nullptr with a Python error.
  static std::unique_ptr<Program> from_python(PyObject* description);

  // `given`: a tensor that receives the only result, of its dtype and shape; or empty. Throws backplane::Error.
  std::vector<backplane::Tensor> run(const std::vector<backplane::Tensor>& tensors,
                                     const std::vector<c10::Scalar>& numbers, const backplane::Tensor& given) const;
  // May the last step write its result where the caller says?
  bool can_be_given() const {
    return outputs_.size() == 1 && steps_.back().n_results == 1 && outputs_[0] + 1 == n_results_;
  }

 private:
  bool read_step(PyObject* step);
  bool read_value(PyObject* value, ProgramValue& into);

  std::vector<ProgramStep> steps_;
  std::vector<size_t> outputs_;
  size_t n_results_ = 0;
};

}  // namespace backplane_torch
