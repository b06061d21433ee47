// Calls of ops over tensors of PyTorch's CPU.
#include "op_calls.hpp"

#include <torch/csrc/Exceptions.h>
#include <torch/library.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "backplane/op.hpp"
#include "cpu_tensors.hpp"
#include "op_libraries.hpp"
#include "python_values.hpp"

namespace backplane_torch {

namespace {

using torch::jit::Stack;

constexpr size_t kMostArgs = 24, kMostResults = 8;

// The arguments of one call as Backplane's values, with what these refer to.
class Values {
 public:
  void add(bp_value& into, const c10::IValue& value, char kind) {
    if (value.isNone()) return;
    switch (kind) {
      case 't':
        if (value.toTensor().defined()) into = backplane::value(tensors_[n_tensors_++] = borrowed(value.toTensor()));
        return;
      case 'l':
        return tensor_list(into, value);
      case 's':
        return number(into, value.toScalar());
      case 'b':
        into = backplane::value(value.toBool());
        return;
      case 'i':
        into = backplane::value(value.isInt() ? value.toInt() : value.toSymInt().guard_int(__FILE__, __LINE__));
        return;
      case 'd':
        into = backplane::dtype_value(dtype_of(value.toScalarType()));
        return;
      case 'x':
        into.tag = BP_TAG_STRING;
        into.u.s = value.toStringRef().c_str();
        into.count = static_cast<uint32_t>(value.toStringRef().size());
        return;
      default:
        return int_list(into, value);
    }
  }

  bool shares_memory(const backplane::Tensor& result) const {
    for (const backplane::Tensor& x : tensors_)
      if (x && overlaps(x, result)) return true;
    for (const backplane::Tensor& x : listed_)
      if (overlaps(x, result)) return true;
    return false;
  }

 private:
  static bool overlaps(const backplane::Tensor& x, const backplane::Tensor& y) {
    return x.get()->storage == y.get()->storage;
  }

  void number(bp_value& into, const c10::Scalar& number) {
    if (number.isBoolean()) {
      into = backplane::value(number.toBool());
    } else if (number.isComplex()) {
      const auto parts = number.toComplexDouble();
      double* kept = parts_[n_parts_++];
      kept[0] = parts.real();
      kept[1] = parts.imag();
      into.tag = BP_TAG_COMPLEX;
      into.u.c = kept;
    } else {
      into = number.isFloatingPoint() ? backplane::value(number.toDouble()) : backplane::value(number.toLong());
    }
  }

  void tensor_list(bp_value& into, const c10::IValue& value) {
    std::vector<bp_tensor*>& list = lists_.emplace_back();
    for (const c10::IValue& element : value.toListRef()) {
      const bool absent = element.isNone() || !element.toTensor().defined();
      if (!absent) listed_.push_back(borrowed(element.toTensor()));
      list.push_back(absent ? nullptr : listed_.back().get());
    }
    into.tag = BP_TAG_TENSOR_LIST;
    into.count = static_cast<uint32_t>(list.size());
    into.u.tensors = list.data();
  }

  void int_list(bp_value& into, const c10::IValue& value) {
    std::vector<int64_t>& list = ints_.emplace_back();
    if (value.isIntList()) {
      list = value.toIntVector();
    } else if (value.isInt()) {  // the default of an optional list
      list = {value.toInt()};
    } else {
      for (const c10::IValue& element : value.toListRef())
        list.push_back(element.isInt() ? element.toInt() : element.toSymInt().guard_int(__FILE__, __LINE__));
    }
    into = backplane::value(backplane::Shape(list));
  }

  backplane::Tensor tensors_[kMostArgs];
  size_t n_tensors_ = 0, n_parts_ = 0;
  double parts_[kMostArgs][2];
  std::vector<backplane::Tensor> listed_;
  std::vector<std::vector<bp_tensor*>> lists_;
  std::vector<std::vector<int64_t>> ints_;
};

class OpKernel final : public c10::OperatorKernel {
 public:
  OpKernel(backplane::OpHandle op, std::string kinds, PyObject* raise_error)
      : op_(op), kinds_(std::move(kinds)), raise_error_(Py_NewRef(raise_error)) {
    const bp_op_def& def = backplane::op_def(op_);
    n_args_ = def.args.count;
    n_results_ = static_cast<int32_t>(def.results.count);
  }

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
    if (places_.empty()) find_places(handle);
    const size_t first = stack->size() - kinds_.size();
    bp_value args[kMostArgs]{}, outs[kMostResults]{};
    Values values;
    std::vector<at::Tensor> results;
    try {
      for (size_t i = 0; i < kinds_.size(); ++i) values.add(args[places_[i]], (*stack)[first + i], kinds_[i]);
      if (const bp_status status = backplane::call_packed(op_, args, static_cast<int32_t>(n_args_), outs, n_results_))
        backplane::throw_last_error(status);
      for (int32_t i = 0; i < n_results_; ++i) {
        backplane::Tensor result = backplane::Tensor::adopt(outs[i].u.t);
        if (values.shares_memory(result)) result = copied(result);
        results.push_back(cpu_tensor_over(std::move(result)));
      }
    } catch (const backplane::Error& error) {
      raise(error);
    }
    torch::jit::drop(*stack, kinds_.size());
    for (at::Tensor& result : results) stack->emplace_back(std::move(result));
  }

 private:
  // Where the op has the arguments of the schema, which leaves out devices.
  void find_places(const c10::OperatorHandle& handle) {
    const bp_op_def& def = backplane::op_def(op_);
    std::vector<size_t> places;
    for (const c10::Argument& argument : handle.schema().arguments())
      for (uint32_t i = 0; i < def.args.count; ++i)
        if (argument.name() == static_cast<const bp_arg_def*>(def.args.data)[i].name) places.push_back(i);
    TORCH_CHECK(places.size() == kinds_.size(), handle.schema().name(),
                ": its op was defined again. Fix: call "
                "backplane.torch.register_ops() before the first call");
    places_ = std::move(places);
  }

  [[noreturn]] void raise(const backplane::Error& error) {
    Interpreter lock;
    const Object done(PyObject_CallFunction(raise_error_, "is", static_cast<int>(error.code()), error.what()));
    python_error raised;
    raised.persist();
    throw raised;
  }

  backplane::OpHandle op_;
  std::string kinds_;
  PyObject* raise_error_;
  size_t n_args_;
  int32_t n_results_;
  std::vector<size_t> places_;
};

}  // namespace

torch::Library& op_library(const std::string& space, c10::DispatchKey key) {
  static auto* libraries = new std::unordered_map<std::string, std::unique_ptr<torch::Library>>();
  std::unique_ptr<torch::Library>& found = (*libraries)[space + "/" + c10::toString(key)];
  if (!found) found = std::make_unique<torch::Library>(torch::Library::IMPL, space, key, __FILE__, __LINE__);
  return *found;
}

bool register_op(const std::string& name, const std::string& kinds, PyObject* raise_error) {
  const backplane::OpHandle op = backplane::find_op(name);
  TORCH_CHECK(op != BP_NO_OP, "backplane.torch: the registry has no op ", name);
  const bp_op_def& def = backplane::op_def(op);
  const std::string_view file = def.file ? def.file : "";
  if (file.ends_with(".py") || def.args.count > kMostArgs || def.results.count > kMostResults) return false;
  const size_t colons = name.find("::");
  op_library(name.substr(0, colons), c10::DispatchKey::CPU)
      .impl(name.substr(colons + 2).c_str(),
            torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OpKernel>(op, kinds, raise_error)));
  return true;
}

}  // namespace backplane_torch
