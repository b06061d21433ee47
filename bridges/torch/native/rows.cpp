// A boxed kernel that computes an operator by its row, a Python function over tensors of Backplane.
#include "rows.hpp"

#include <ATen/native/Resize.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <torch/library.h>

#include "backplane/placement.hpp"
#include "python_values.hpp"

namespace backplane_torch {

namespace {

using torch::jit::Stack;

// The device of a call: the first one that an argument lies on, or names.
bp_device device_in(const Stack& stack, size_t first) {
  for (size_t i = first; i < stack.size(); ++i) {
    const c10::IValue& value = stack[i];
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kDevice)
      return device_of(value.toTensor().device().index());
    if (value.isList())
      for (const c10::IValue& element : value.toListRef())
        if (element.isTensor() && element.toTensor().defined() && element.toTensor().device().type() == kDevice)
          return device_of(element.toTensor().device().index());
  }
  for (size_t i = first; i < stack.size(); ++i)
    if (stack[i].isDevice() && stack[i].toDevice().type() == kDevice) return device_of(stack[i].toDevice().index());
  return device_of(current_device());
}

// New tensors of a row lie on the call's device.
class DefaultDevice {
 public:
  explicit DefaultDevice(bp_device device) : before_(backplane::set_thread_default_device(device)) {}
  ~DefaultDevice() { backplane::set_thread_default_device(before_); }
  DefaultDevice(const DefaultDevice&) = delete;

 private:
  std::optional<bp_device> before_;
};

void check_castable(const std::string& name, const backplane::Tensor& from, const at::Tensor& to) {
  const c10::ScalarType type = scalar_type_of(from.dtype());
  TORCH_CHECK(c10::canCast(type, to.scalar_type()), name, ": result type ", type,
              " can't be cast to the desired output type ", to.scalar_type());
}

class RowKernel final : public c10::OperatorKernel {
 public:
  RowKernel(std::string name, std::string row, std::string kinds, Form form, PyObject* find)
      : name_(std::move(name)), row_(std::move(row)), kinds_(std::move(kinds)), form_(form), find_(Py_NewRef(find)) {
    n_inputs_ = kinds_.size() - (!kinds_.empty() && kinds_.back() == 'o');
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t n_all = op.schema().arguments().size(), first = stack->size() - n_all;
    const bp_device device = device_in(*stack, first);
    bool computed = false;
    std::vector<c10::IValue> results;
    {
      Interpreter lock;
      DefaultDevice scope(device);
      const Object found = compute(*stack, first, device);
      if (!found && (host_policy() == HostPolicy::kForbid || !take_refusal())) throw_python_error(name_);
      computed = static_cast<bool>(found);
      if (computed) results = finish(op, *stack, first, found.get());
    }
    if (!computed) return retry_on_host(op, stack);
    torch::jit::drop(*stack, n_all);
    for (c10::IValue& result : results) stack->push_back(std::move(result));
  }

 private:
  // Empty with a Python error where the row fails.
  Object compute(const Stack& stack, size_t first, bp_device device) {
    if (!function_) function_ = PyObject_CallFunction(find_, "s", row_.c_str());
    if (!function_) return Object();
    std::vector<Object> owned;
    std::vector<PyObject*> args;
    for (size_t i = 0; i < kinds_.size(); ++i) {
      const bool of_result = kinds_[i] == 'o';  // the dtype of a factory with out=
      owned.push_back(of_result ? python_value(stack[first + i].toTensor().scalar_type(), 'd', device)
                                : python_value(stack[first + i], kinds_[i], device));
      args.push_back(owned.back().get());
    }
    return Object(PyObject_Vectorcall(function_, args.data(), args.size(), nullptr));
  }

  std::vector<c10::IValue> finish(const c10::OperatorHandle& op, const Stack& stack, size_t first, PyObject* found) {
    const auto& returns = op.schema().returns();
    const bool several = returns.size() > 1;
    std::vector<c10::IValue> results;
    if (form_ == Form::kFunctional) {
      for (size_t i = 0; i < returns.size(); ++i)
        results.push_back(torch_value(element(found, several, i), returns[i].type(), stack, first));
      return results;
    }
    const size_t n_outs = form_ == Form::kInPlace ? 1 : op.schema().arguments().size() - n_inputs_;
    for (size_t i = 0; i < n_outs; ++i) {
      const at::Tensor& out = stack[form_ == Form::kInPlace ? first : first + n_inputs_ + i].toTensor();
      assign(element(found, n_outs > 1, i), out);
      if (i < returns.size()) results.push_back(out);
    }
    return results;
  }

  PyObject* element(PyObject* found, bool several, size_t place) {
    if (!several) return found;
    TORCH_CHECK(PyTuple_Check(found) && PyTuple_GET_SIZE(found) > static_cast<Py_ssize_t>(place), name_,
                ": its row gives too few results");
    return PyTuple_GET_ITEM(found, place);
  }

  void assign(PyObject* found, const at::Tensor& out) {
    if (found == Py_None) return;
    const backplane::Tensor result = result_of(found);
    const c10::IntArrayRef sizes(result.shape().data(), result.shape().size());
    if (form_ == Form::kOut)
      at::native::resize_output(out, sizes);
    else
      TORCH_CHECK(out.sizes() == sizes, name_, ": output with shape ", out.sizes(),
                  " doesn't match the broadcast shape ", sizes);
    check_castable(name_, result, out);
    guarded(name_.c_str(), [&] { write(result, view_of(out)); });
  }

  std::string name_, row_, kinds_;
  Form form_;
  size_t n_inputs_;
  PyObject *find_, *function_ = nullptr;
};

}  // namespace

void register_row(const char* name, const char* row, const char* kinds, Form form, PyObject* find) {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl(name, torch::CppFunction::makeFromBoxedFunctor(
                          std::make_unique<RowKernel>(std::string("aten::") + name, row, kinds, form, find)));
}

}  // namespace backplane_torch
