// Programs of calls, as _op_programs.py writes them: the texts of calls, and how a program runs without Python.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs.hpp"

namespace backplane_torch {

using CallKey = std::vector<int64_t>;

struct CallKeyHash {
  size_t operator()(const CallKey& key) const noexcept;
};

// The defined tensors among the arguments or results of a call, also those in lists.
template <class Visit>
void each_tensor(c10::ArrayRef<c10::IValue> arguments, Visit visit) {
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isTensorList() || value.isOptionalTensorList() || value.isList()) {
      for (const c10::IValue& element : value.toListRef())
        if (element.isTensor() && element.toTensor().defined()) visit(element.toTensor());
    }
  }
}

// The arguments of a call, with a bool for each tensor: is it present?
std::vector<c10::IValue> constants_of(c10::ArrayRef<c10::IValue> arguments);

// The programs of one operator's calls. It lives as long as the process. Any thread may call it.
class CallTexts {
 public:
  // `describe(*constants)`: the program of a call. None: the program is the call's first argument.
  explicit CallTexts(std::string kinds, PyObject* describe);
  std::string of(const std::vector<c10::IValue>& constants);

 private:
  std::string described(const std::vector<c10::IValue>& constants) const;

  std::string kinds_;
  PyObject* describe_;
  std::mutex lock_;
  std::unordered_map<CallKey, std::string, CallKeyHash> texts_;
};

// A program's plans: one for each kind of tensors. Any thread may call it.
class PlannedProgram {
 public:
  explicit PlannedProgram(std::string text) : text_(std::move(text)) {}

  // The results for tensors of PyTorch's CPU, or nothing where Python must compute them or report an error.
  // `may_share`: a result may be one of the tensors.
  std::optional<std::vector<at::Tensor>> run(const std::vector<at::Tensor>& tensors, bool may_share);

  // After a call that Python computed: makes a plan for the second call of its kind. Takes the interpreter's lock.
  void learn(const std::vector<at::Tensor>& tensors);

 private:
  struct Plan {
    int calls = 0;
    std::atomic<bool> described = false;  // set last
    bool runs = false;
    std::unique_ptr<Program> program;  // none: every result is one of the tensors
    std::vector<int64_t> places;       // of each result: an index of the program's results, or -1 - i for tensor i
  };

  std::shared_ptr<Plan> plan_of(const std::vector<at::Tensor>& tensors);

  std::string text_;
  std::mutex lock_;
  std::unordered_map<CallKey, std::shared_ptr<Plan>, CallKeyHash> plans_;
};

std::shared_ptr<PlannedProgram> planned_program(const std::string& text);

// The results of a program: through PyTorch's dispatcher where a transform, a mode or a subclass follows the tensors.
// `may_share`: as of PlannedProgram::run.
std::vector<at::Tensor> run_program(const std::string& text, const std::vector<at::Tensor>& tensors, bool may_share);

// Registers the kernel of backplane_bridge::run for the CPU. `run(text, tensors)`: the results, by Python.
// `plan(text, tensors)`: (steps, results, places) as of Program and Plan, or None.
void register_run(PyObject* run, PyObject* plan);

}  // namespace backplane_torch
