// Calls of ops that PyTorch's autograd records.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "derivatives.hpp"
#include "op_calls.hpp"
#include "op_libraries.hpp"
#include "python_values.hpp"

namespace backplane_torch {

namespace {

using torch::autograd::variable_list;
using torch::jit::Stack;

[[noreturn]] void throw_pending() {
  python_error raised;
  raised.persist();
  throw raised;
}

Object owned(PyObject* made) {
  if (!made) throw_pending();
  return Object(made);
}

// An argument as PyTorch's Python has it.
Object torch_object(const c10::IValue& value, char kind) {
  if (value.isNone()) return Object(Py_NewRef(Py_None));
  if (value.isTensor())
    return value.toTensor().defined() ? owned(THPVariable_Wrap(value.toTensor())) : Object(Py_NewRef(Py_None));
  if (kind == 'd') return Object(Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(value.toScalarType()))));
  if (value.isSymInt()) return Object(pybind11::cast(value.toSymInt()).release().ptr());
  if (value.isList()) {
    const auto elements = value.toListRef();
    Object list = owned(PyList_New(static_cast<Py_ssize_t>(elements.size())));
    for (size_t i = 0; i < elements.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), torch_object(elements[i], kind).release());
    return list;
  }
  return python_value(value, 't', {});
}

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

// The derivative of a call: its arguments, and the Python function that derives.
class RecordedCall final : public torch::autograd::Node {
 public:
  RecordedCall(std::string name, const std::string& kinds, PyObject* derive, Derivatives& derivatives,
               c10::ArrayRef<c10::IValue> arguments)
      : name_(std::move(name)), kinds_(kinds), derive_(derive), derivatives_(derivatives) {
    torch::autograd::edge_list edges;
    each_tensor(arguments, [&](const at::Tensor& x) {
      saved_.emplace_back(x, false);
      edges.push_back(torch::autograd::impl::gradient_edge(x));
      if (!x.requires_grad()) edges.back() = {};
    });
    set_next_edges(std::move(edges));
    for (const c10::IValue& value : arguments) arguments_.push_back(without_tensors(value));
  }

  variable_list apply(variable_list&& cotangents) override {
    std::lock_guard<std::mutex> lock(mutex_);
    variable_list inputs;
    for (const torch::autograd::SavedVariable& saved : saved_) inputs.push_back(saved.unpack());
    for (uint32_t i = 0; i < num_inputs(); ++i)
      if (differentiable_[i])
        inputs.push_back(cotangents[i].defined() ? cotangents[i] : input_metadata(i).zeros_like());
    if (auto found = derivatives_.run(arguments_, inputs, saved_.size())) return std::move(*found);
    return apply_in_python(inputs);
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
  variable_list apply_in_python(const variable_list& inputs) {
    Interpreter interpreter;
    size_t next = 0;
    const Object arguments = owned(PyTuple_New(static_cast<Py_ssize_t>(arguments_.size())));
    for (size_t i = 0; i < arguments_.size(); ++i)
      PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i),
                       argument(arguments_[i], kinds_[i], inputs, next).release());
    const Object given = owned(PyList_New(0));
    while (next < inputs.size()) PyList_Append(given.get(), owned(THPVariable_Wrap(inputs[next++])).get());
    const Object found = owned(PyObject_CallFunctionObjArgs(derive_, arguments.get(), given.get(), nullptr));
    variable_list gradients;
    for (size_t i = 0; i < saved_.size(); ++i) {
      PyObject* gradient = PyList_GetItem(found.get(), static_cast<Py_ssize_t>(i));
      if (!gradient) throw_pending();
      gradients.push_back(gradient == Py_None ? at::Tensor() : THPVariable_Unpack(gradient));
    }
    derivatives_.learn(arguments_, inputs, arguments.get(), given.get());
    return gradients;
  }

  // Tensors are saved apart. A list of tensors keeps a bool for each element: whether it is there.
  static c10::IValue without_tensors(const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().defined();
    if (!value.isTensorList() && !value.isOptionalTensorList()) return value;
    c10::List<bool> present;
    for (const c10::IValue& element : value.toListRef())
      present.push_back(element.isTensor() && element.toTensor().defined());
    return present;
  }

  static Object saved_tensor(bool present, const variable_list& inputs, size_t& next) {
    if (!present) return Object(Py_NewRef(Py_None));
    return owned(THPVariable_Wrap(inputs[next++]));
  }

  static Object argument(const c10::IValue& value, char kind, const variable_list& inputs, size_t& next) {
    if (kind == 't') return saved_tensor(!value.isNone() && value.toBool(), inputs, next);
    if (kind != 'l') return torch_object(value, kind);
    const c10::List<bool> present = value.toBoolList();
    Object list = owned(PyList_New(static_cast<Py_ssize_t>(present.size())));
    for (size_t i = 0; i < present.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), saved_tensor(present[i], inputs, next).release());
    return list;
  }

  std::string name_;
  const std::string& kinds_;
  PyObject* derive_;
  Derivatives& derivatives_;
  std::vector<c10::IValue> arguments_;
  std::vector<torch::autograd::SavedVariable> saved_;
  std::vector<bool> differentiable_;  // of each result
};

class RecordKernel final : public c10::OperatorKernel {
 public:
  RecordKernel(std::string name, std::string kinds, PyObject* record, PyObject* derive, PyObject* describe)
      : name_(std::move(name)),
        kinds_(std::move(kinds)),
        record_(Py_NewRef(record)),
        derive_(Py_NewRef(derive)),
        derivatives_(describe) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, Stack* stack) {
    const auto arguments = torch::jit::last(*stack, kinds_.size());
    bool requires_grad = false, forward_mode = false;
    each_tensor(arguments, [&](const at::Tensor& x) {
      requires_grad = requires_grad || x.requires_grad();
      forward_mode = forward_mode || torch::autograd::isFwGradDefined(x);
    });
    if (forward_mode || at::functorch::maybeCurrentDynamicLayer()) return call_python(keys, stack);
    c10::intrusive_ptr<RecordedCall> node;
    if (requires_grad && at::GradMode::is_enabled())
      node = c10::make_intrusive<RecordedCall>(name_, kinds_, derive_, derivatives_, arguments);
    {
      at::AutoDispatchBelowAutograd below;
      handle.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    }
    if (!node) return;
    for (const c10::IValue& result : torch::jit::last(*stack, handle.schema().returns().size()))
      node->add_result(result.toTensor(), node);
  }

 private:
  void call_python(c10::DispatchKeySet keys, Stack* stack) {
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
    const Object results = owned(PySequence_Fast(found.get(), "expected tensors"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(results.get()); ++i)
      stack->emplace_back(THPVariable_Unpack(PySequence_Fast_GET_ITEM(results.get(), i)));
  }

  std::string name_, kinds_;
  PyObject *record_, *derive_;
  Derivatives derivatives_;
};

}  // namespace

void register_recorded(const std::string& name, const std::string& kinds, PyObject* record, PyObject* derive,
                       PyObject* describe) {
  const size_t colons = name.find("::");
  op_library(name.substr(0, colons), c10::DispatchKey::Autograd)
      .impl(name.substr(colons + 2).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RecordKernel>(
                                                 name, kinds, record, derive, describe)));
}

}  // namespace backplane_torch
