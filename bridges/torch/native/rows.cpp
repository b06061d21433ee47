// A boxed kernel that computes an operator by its row, a Python function over tensors of Backplane.
#include "rows.hpp"

#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backplane/placement.hpp"
#include "call_arguments.hpp"
#include "programs.hpp"
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

constexpr size_t kMostPrograms = 256;  // of one row

// The state of the calls of one key. A program is made at the second call.
struct Calls {
  int count = 0;
  std::atomic<const Program*> program{nullptr};  // owned; lives as long as the process
  std::atomic<c10::ScalarType> result_type{
      c10::ScalarType::Undefined};  // of the first result, once the program has run
};

class RowKernel final : public c10::OperatorKernel {
 public:
  RowKernel(std::string name, std::string row, std::string kinds, Form form, bool any_size, PyObject* rows)
      : name_(std::move(name)),
        row_(std::move(row)),
        kinds_(std::move(kinds)),
        form_(form),
        any_size_(any_size),
        rows_(Py_NewRef(rows)) {
    n_inputs_ = kinds_.size() - (!kinds_.empty() && kinds_.back() == 'o');
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t n_all = op.schema().arguments().size(), first = stack->size() - n_all;
    const bp_device device = device_in(*stack, first);
    DefaultDevice scope(device);
    CallArguments arguments = arguments_of(*stack, first, kinds_, device, any_size_);
    Calls* calls = arguments.is_plain ? calls_of(arguments.key) : nullptr;
    const Program* program = calls ? calls->program.load() : nullptr;
    if (program) {
      run(*program, *calls, arguments, *stack, first, n_all);
      return;
    }
    bool computed = false;
    std::vector<c10::IValue> results;
    {
      Interpreter lock;
      std::vector<Object> args;
      const Object found = compute(*stack, first, device, args);
      if (!found && (host_policy() == HostPolicy::kForbid || !take_refusal())) throw_python_error(name_);
      computed = static_cast<bool>(found);
      if (computed) results = finish(op, *stack, first, found.get());
      if (computed && calls && ++calls->count == 2) make_program(*calls, arguments, args);
    }
    if (!computed) return retry_on_host(op, stack);
    torch::jit::drop(*stack, n_all);
    for (c10::IValue& result : results) stack->push_back(std::move(result));
  }

 private:
  // Empty with a Python error where the row fails.
  Object compute(const Stack& stack, size_t first, bp_device device, std::vector<Object>& owned) {
    if (!function_) function_ = PyObject_CallMethod(rows_, "function_of", "s", row_.c_str());
    if (!function_) return Object();
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
      PyObject* result = element(found, n_outs > 1, i);
      if (result != Py_None) assign(result_of(result), out);
      if (i < returns.size()) results.push_back(out);
    }
    return results;
  }

  // Entries are never erased, so the address stays. Programs are made under the interpreter's lock.
  Calls* calls_of(const std::vector<int64_t>& key) {
    std::lock_guard<std::mutex> lock(lock_);
    const auto found = calls_.find(key);
    if (found != calls_.end()) return &found->second;
    return calls_.size() < kMostPrograms ? &calls_[key] : nullptr;
  }

  void make_program(Calls& calls, const CallArguments& arguments, const std::vector<Object>& args) {
    const Object list(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
    for (size_t i = 0; i < args.size(); ++i) PyTuple_SET_ITEM(list.get(), i, Py_NewRef(args[i].get()));
    const Object places(PyList_New(0));
    for (size_t place : arguments.number_places) {
      const Object number(PyLong_FromSize_t(place));
      PyList_Append(places.get(), number.get());
    }
    const Object description(PyObject_CallMethod(rows_, "program_of", "sOO", row_.c_str(), list.get(), places.get()));
    std::unique_ptr<Program> made;
    if (description && description.get() != Py_None) made = Program::from_python(description.get());
    if (PyErr_Occurred()) throw_python_error(name_);
    calls.program = made.release();
  }

  void run(const Program& program, Calls& calls, const CallArguments& arguments, Stack& stack, size_t first,
           size_t n_all) {
    backplane::Tensor given;
    if (form_ == Form::kInPlace && program.can_be_given() && calls.result_type == stack[first].toTensor().scalar_type())
      given = view_of(stack[first].toTensor());
    std::vector<backplane::Tensor> found =
        guarded(name_.c_str(), [&] { return program.run(arguments.tensors, arguments.numbers, given); });
    calls.result_type = scalar_type_of(found[0].dtype());
    if (form_ == Form::kFunctional) {
      torch::jit::drop(stack, n_all);
      for (backplane::Tensor& result : found) stack.push_back(tensor_from(own(std::move(result), arguments)));
      return;
    }
    const size_t n_outs = form_ == Form::kInPlace ? 1 : n_all - n_inputs_;
    std::vector<c10::IValue> outs;
    for (size_t i = 0; i < n_outs; ++i) {
      const at::Tensor& out = stack[form_ == Form::kInPlace ? first : first + n_inputs_ + i].toTensor();
      if (!given) assign(found[i], out);
      outs.push_back(out);
    }
    torch::jit::drop(stack, n_all);
    for (c10::IValue& out : outs) stack.push_back(std::move(out));
  }

  static backplane::Tensor own(backplane::Tensor result, const CallArguments& arguments) {
    for (const backplane::Tensor& x : arguments.tensors)
      if (x.get()->storage == result.get()->storage) return copied(result);
    return result;
  }

  PyObject* element(PyObject* found, bool several, size_t place) {
    if (!several) return found;
    TORCH_CHECK(PyTuple_Check(found) && PyTuple_GET_SIZE(found) > static_cast<Py_ssize_t>(place), name_,
                ": its row gives too few results");
    return PyTuple_GET_ITEM(found, place);
  }

  void assign(const backplane::Tensor& result, const at::Tensor& out) {
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
  bool any_size_;
  size_t n_inputs_;
  PyObject *rows_, *function_ = nullptr;
  std::mutex lock_;
  std::unordered_map<std::vector<int64_t>, Calls, KeyHash> calls_;
};

}  // namespace

void register_row(const char* name, const char* row, const char* kinds, Form form, bool any_size, PyObject* rows) {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl(name, torch::CppFunction::makeFromBoxedFunctor(
                          std::make_unique<RowKernel>(std::string("aten::") + name, row, kinds, form, any_size, rows)));
}

}  // namespace backplane_torch
