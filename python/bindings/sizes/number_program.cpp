// Runs what the Python code of a traced function computed of its numbers, with another call's numbers.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

std::string text_of_number(PyObject* object) {
  const PyRef text = PyRef::steal(PyObject_Repr(object));
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  forget_error();
  return chars ? chars : "?";
}

// Of one type: 0.0 is not -0.0, and a NaN is a NaN.
bool are_equal(PyObject* a, PyObject* b) {
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::isnan(x) ? std::isnan(y) : std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  forget_error();
  return equal == 1;
}

}  // namespace

bool NumberProgram::run(std::vector<PyRef>& values, std::string* why) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.function) {
      PyObject* given[kMostOperands + 1] = {};
      const size_t count = std::min(step.operands.size(), kMostOperands);
      for (size_t k = 0; k < count; ++k) {
        const Operand& operand = step.operands[k];
        given[k + 1] = operand.step == Operand::kConstant ? operand.constant.get() : values[operand.step].get();
      }
      values[i] = PyRef::steal(
          PyObject_Vectorcall(step.function.get(), given + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
      if (!values[i]) {
        forget_error();
        if (why) *why = "a number that the function computes raises an error now";
        return false;
      }
    }
    if (Py_TYPE(values[i].get()) != step.type) {
      if (why) *why = (step.path.empty() ? "a number that the function computes" : step.path) + " has another type";
      return false;
    }
    if (!step.required || are_equal(step.required.get(), values[i].get())) continue;
    if (why)
      *why = (step.path.empty() ? "a number that the function computes and looks at" : step.path) + ": found " +
             text_of_number(values[i].get()) + ", had " + text_of_number(step.required.get());
    return false;
  }
  return true;
}

bool NumberProgram::make_tensors(const std::vector<PyRef>& values, std::vector<Tensor>* tensors) const {
  for (const Input& input : inputs) {
    const PyRef data = PyRef::steal(tensor_of_data(values[input.step].get(), input.dtype));
    const PyRef made = PyRef::steal(data ? guarded([&] {
      Tensor tensor = python::tensor_of(data.get());
      if (tensor.dtype() != input.dtype)  // of half floats, which are read in a wider dtype
        tensor = call(op_of(Slot::Cast), {value(tensor), dtype_value(input.dtype)});
      return wrap_tensor(to_device(tensor, input.device));
    })
                                         : nullptr);
    if (!made) return forget_error(), false;
    tensors->push_back(python::tensor_of(made.get()));
  }
  return true;
}

int NumberProgram::traverse(visitproc visit, void* arg) const {
  for (const Step& step : steps) {
    Py_VISIT(step.function.get());
    for (const Operand& operand : step.operands) Py_VISIT(operand.constant.get());
  }
  return 0;
}

}  // namespace backplane::python
