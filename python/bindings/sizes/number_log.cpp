#include "bindings/sizes/number_log.hpp"

#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

thread_local constinit NumberLog* NumberLog::current_ = nullptr;

PyRef untraced(PyObject* object) {
  if (Py_TYPE(object) == g_number_hook.float_type) return PyRef::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(object)));
  if (Py_TYPE(object) == g_number_hook.int_type)
    return PyRef::steal(_PyLong_Copy(reinterpret_cast<PyLongObject*>(object)));
  return PyRef::borrow(object);
}

PyRef as_traced(PyObject* value) {
  PyTypeObject* type = PyFloat_Check(value) ? g_number_hook.float_type : g_number_hook.int_type;
  const PyRef arguments = PyRef::steal(PyTuple_Pack(1, value));
  return PyRef::steal(arguments ? type->tp_base->tp_new(type, arguments.get(), nullptr) : nullptr);
}

PyObject* compute(PyObject* function, PyObject* const* operands, size_t count) {
  PyRef plain[kMostOperands];
  PyObject* given[kMostOperands];
  for (size_t i = 0; i < count; ++i) {
    plain[i] = untraced(operands[i]);
    if (!plain[i]) return nullptr;
    given[i] = plain[i].get();
  }
  PyObject* result = PyObject_Vectorcall(function, given, count, nullptr);
  NumberLog* log = NumberLog::current();
  return log ? log->computed(function, operands, count, result) : result;
}

uint32_t NumberLog::step_of(PyObject* number) const {
  const auto known = is_traced_number(number) ? known_.find(number) : known_.end();
  return known == known_.end() ? NumberProgram::Operand::kConstant : known->second;
}

uint32_t NumberLog::add(PyObject* function, PyObject* const* operands, size_t count, PyObject* value) {
  NumberProgram::Step step;
  step.function = PyRef::borrow(function);
  step.type = Py_TYPE(value);
  for (size_t i = 0; i < count; ++i) {
    NumberProgram::Operand operand{step_of(operands[i]), {}};
    if (operand.step == NumberProgram::Operand::kConstant) operand.constant = untraced(operands[i]);
    step.operands.push_back(std::move(operand));
  }
  program_.steps.push_back(std::move(step));
  values_.push_back(PyRef::borrow(value));
  return static_cast<uint32_t>(program_.steps.size() - 1);
}

// A new object for each step, so that an object tells its step.
PyRef NumberLog::follow(uint32_t step, PyObject* value) {
  PyRef made = as_traced(value);
  if (!made) return {};
  known_[made.get()] = step;
  held_.push_back(made);
  return made;
}

PyRef NumberLog::root(PyObject* value, const std::string& path) {
  if (!may_be_traced(value) || !wanted_(path)) return {};
  const uint32_t step = add(nullptr, nullptr, 0, value);
  program_.steps[step].path = path;
  PyRef made = follow(step, value);
  forget_error();
  return made;
}

PyObject* NumberLog::computed(PyObject* function, PyObject* const* operands, size_t count, PyObject* result) {
  if (!result) return nullptr;
  if (!may_be_traced(result)) {
    for (size_t i = 0; i < count; ++i) look_at(operands[i]);
    return result;
  }
  const PyRef value = PyRef::steal(result);
  return follow(add(function, operands, count, result), result).release();
}

void NumberLog::look_at(PyObject* number) {
  const uint32_t step = step_of(number);
  if (step != NumberProgram::Operand::kConstant) program_.steps[step].required = values_[step];
}

void NumberLog::decide(PyObject* function, PyObject* const* operands, size_t count, PyObject* outcome) {
  const uint32_t step = add(function, operands, count, outcome);
  program_.steps[step].required = PyRef::borrow(outcome);
}

bool NumberLog::is_in_range(uint32_t step, bp_dtype dtype) const {
  if (!PyLong_Check(values_[step].get()) || !(BP_DTYPE_BIT(dtype) & BP_MASK_INTEGER)) return true;
  const PyRef made = PyRef::steal(tensor_of_data(values_[step].get(), dtype));
  forget_error();
  return static_cast<bool>(made);
}

Tensor NumberLog::tensor_of(PyObject* number, bp_dtype dtype, bp_device device) {
  const uint32_t step = step_of(number);
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const NumberProgram::Input& own = program_.inputs[i];
    if (own.step == step && own.dtype == dtype && own.device.backend == device.backend &&
        own.device.ordinal == device.ordinal)
      return tensors_[i];
  }
  if (!is_in_range(step, dtype)) return {};
  program_.inputs.push_back({step, dtype, device});
  tensors_.push_back(scope_->enter(empty({}, dtype, device), "number" + std::to_string(tensors_.size())));
  return tensors_.back();
}

}  // namespace backplane::python
