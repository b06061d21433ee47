// Derivatives of recorded calls. The second call of one kind makes a program of the derivative; later ones run it.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "programs.hpp"

namespace backplane_torch {

// Of one operator. It lives as long as the process. Any thread may call it.
class Derivatives {
 public:
  // `describe(arguments, cotangents)`: (steps, results, places) or None. A place is, for each tensor among the
  // arguments, an index of the results, or -2 - i for the i-th of the tensors and cotangents, or -1 for no cotangent.
  explicit Derivatives(PyObject* describe) : describe_(Py_NewRef(describe)) {}

  // The cotangents of the tensors, or nothing where Python must compute them. `constants`: the arguments that are not
  // tensors. `inputs`: the call's tensors, `n_tensors` of them, and the cotangents of its results.
  std::optional<std::vector<at::Tensor>> run(c10::ArrayRef<c10::IValue> constants,
                                             const std::vector<at::Tensor>& inputs, size_t n_tensors);

  // Describes the last kind of call that `run` refused, if it is time. With the interpreter's lock.
  void learn(c10::ArrayRef<c10::IValue> constants, const std::vector<at::Tensor>& inputs, PyObject* arguments,
             PyObject* cotangents);

 private:
  struct Kind {
    int calls = 0;
    bool described = false;
    std::unique_ptr<Program> program;  // none: Python computes it, or nothing is to be computed
    std::vector<int64_t> places;
  };
  struct KeyHash {
    size_t operator()(const std::vector<int64_t>& key) const noexcept;
  };

  Kind* kind_of(c10::ArrayRef<c10::IValue> constants, const std::vector<at::Tensor>& inputs);

  PyObject* describe_;
  std::mutex lock_;
  std::unordered_map<std::vector<int64_t>, Kind, KeyHash> kinds_;
};

}  // namespace backplane_torch
