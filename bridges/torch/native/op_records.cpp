// Calls of ops that PyTorch's autograd records.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>

#include "batches.hpp"
#include "op_calls.hpp"
#include "op_libraries.hpp"
#include "torch_objects.hpp"

namespace backplane_torch {

namespace {

using torch::autograd::variable_list;
using torch::jit::Stack;

// The derivative of a call: the program of its vjp.
class RecordedCall final : public torch::autograd::Node {
 public:
  RecordedCall(std::string name, CallTexts& texts, c10::ArrayRef<c10::IValue> arguments)
      : name_(std::move(name)), texts_(texts), constants_(constants_of(arguments)) {
    torch::autograd::edge_list edges;
    each_tensor(arguments, [&](const at::Tensor& x) {
      saved_.emplace_back(x, false);
      edges.push_back(torch::autograd::impl::gradient_edge(x));
      if (!x.requires_grad()) edges.back() = {};
    });
    set_next_edges(std::move(edges));
  }

  variable_list apply(variable_list&& cotangents) override {
    std::lock_guard<std::mutex> lock(mutex_);
    variable_list inputs;
    for (const torch::autograd::SavedVariable& saved : saved_) inputs.push_back(saved.unpack());
    for (uint32_t i = 0; i < num_inputs(); ++i)
      if (differentiable_[i])
        inputs.push_back(cotangents[i].defined() ? cotangents[i] : input_metadata(i).zeros_like());
    const std::string text = "[\"vjp\", " + texts_.of(constants_) + ", " + std::to_string(saved_.size()) + "]";
    return of_each_tensor(inputs, run_program(text, inputs, true));
  }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (torch::autograd::SavedVariable& saved : saved_) saved.reset_data();
  }

  std::string name() const override { return name_; }

  // Makes x, the next result of the call, a result of this node.
  void add_result(const at::Tensor& x, const c10::intrusive_ptr<torch::autograd::Node>& self) {
    differentiable_.push_back(torch::autograd::isDifferentiableType(x.scalar_type()));
    if (differentiable_.back())
      torch::autograd::set_history(x, self);
    else
      add_input_metadata(undefined_input());
  }

 private:
  // A program of a vjp has results for the differentiable tensors alone.
  variable_list of_each_tensor(const variable_list& inputs, variable_list found) const {
    variable_list gradients(saved_.size());
    size_t next = 0;
    for (size_t i = 0; i < saved_.size(); ++i)
      if (torch::autograd::isDifferentiableType(inputs[i].scalar_type())) gradients[i] = std::move(found[next++]);
    return gradients;
  }

  std::string name_;
  CallTexts& texts_;
  std::vector<c10::IValue> constants_;
  std::vector<torch::autograd::SavedVariable> saved_;
  std::vector<bool> differentiable_;  // of each result
};

// Forward mode is off inside the jvp of a call in Python, whose record turns it on again for the levels below.
bool hides_lower_tangents() {
  return !c10::AutogradState::get_tls_state().get_fw_grad_mode() && at::functorch::maybeCurrentDynamicLayer();
}

class RecordKernel final : public c10::OperatorKernel {
 public:
  RecordKernel(std::string name, std::string kinds, PyObject* record, CallTexts& texts)
      : name_(std::move(name)), kinds_(std::move(kinds)), record_(Py_NewRef(record)), texts_(texts) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, Stack* stack) {
    const auto arguments = torch::jit::last(*stack, kinds_.size());
    bool requires_grad = false, forward_mode = false;
    each_tensor(arguments, [&](const at::Tensor& x) {
      requires_grad = requires_grad || x.requires_grad();
      forward_mode = forward_mode || torch::autograd::isFwGradDefined(x);
    });
    if (forward_mode || hides_lower_tangents()) return call_python(handle, keys, stack);
    c10::intrusive_ptr<RecordedCall> node;
    if (requires_grad && at::GradMode::is_enabled()) node = c10::make_intrusive<RecordedCall>(name_, texts_, arguments);
    {
      at::AutoDispatchBelowAutograd below;
      handle.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    }
    if (!node) return;
    each_tensor(torch::jit::last(*stack, handle.schema().returns().size()),
                [&](const at::Tensor& result) { node->add_result(result, node); });
  }

 private:
  void call_python(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, Stack* stack) {
    Interpreter lock;
    const auto arguments = torch::jit::last(*stack, kinds_.size());
    const Object call = owned(PyTuple_New(static_cast<Py_ssize_t>(kinds_.size()) + 1));
    PyTuple_SET_ITEM(call.get(), 0, owned(PyLong_FromUnsignedLongLong(keys.raw_repr())).release());
    for (size_t i = 0; i < kinds_.size(); ++i)
      PyTuple_SET_ITEM(call.get(), static_cast<Py_ssize_t>(i) + 1, torch_object(arguments[i], kinds_[i]).release());
    const Object found = owned(PyObject_CallObject(record_, call.get()));
    torch::jit::drop(*stack, kinds_.size());
    if (THPVariable_Check(found.get())) {
      stack->emplace_back(THPVariable_Unpack(found.get()));
      return;
    }
    std::vector<at::Tensor> results = tensors_of(found.get());
    if (handle.schema().returns()[0].type()->kind() == c10::TypeKind::ListType) {
      stack->emplace_back(std::move(results));
      return;
    }
    for (at::Tensor& result : results) stack->emplace_back(std::move(result));
  }

  std::string name_, kinds_;
  PyObject* record_;
  CallTexts& texts_;
};

}  // namespace

void register_transforms(const std::string& name, const std::string& kinds, PyObject* record, PyObject* describe) {
  const size_t colons = name.find("::");
  const std::string space = name.substr(0, colons), own = name.substr(colons + 2);
  auto* texts = new CallTexts(kinds, describe);
  op_library(space, c10::DispatchKey::Autograd)
      .impl(own.c_str(),
            torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RecordKernel>(name, kinds, record, *texts)));
  op_library(space, c10::DispatchKey::FuncTorchBatched).impl(own.c_str(), batch_kernel(kinds.size(), *texts));
}

}  // namespace backplane_torch
