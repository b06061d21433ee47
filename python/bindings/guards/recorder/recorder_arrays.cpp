// Arrays of other libraries among the arguments, for which tensors stand in a trace: what the code does with them that
// NumPy and a tensor answer differently.
#include <algorithm>
#include <string_view>

#include "bindings/guards/changing_calls.hpp"
#include "bindings/guards/recorder/recorder.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr const char* kNumberAdopts =
    "a NumPy scalar adopts the dtype of the other operand, and the tensor that replaces the array does "
    "not";
// Without an axis they give numbers.
constexpr std::string_view kReductions[] = {"sum", "mean", "max", "min", "prod", "std", "var", "ptp", "trace"};

bool is_reduction(PyObject* function) {
  const std::string name = text_of_attribute(function, "__name__");
  return std::find(std::begin(kReductions), std::end(kReductions), name) != std::end(kReductions);
}

}  // namespace

// NumPy scalars of float64 and complex128 raise the dtype of the other operand; integers do not raise a tensor's.
bool Recorder::is_wide_array(PyObject* traced) const {
  const StandIn* one = stand_in_of(traced);
  if (!one || !is_numpy_array(one->original.get())) return false;
  const bp_dtype dtype = tensor_of(traced).dtype();
  return dtype == BP_FLOAT64 || dtype == BP_COMPLEX128;
}

void Recorder::note_array_item(PyObject* traced, PyObject* key, const Reads::Storing& at) {
  if (is_tensor(key) || !is_wide_array(traced)) return;
  const PyRef item = PyRef::steal(PyObject_GetItem(stand_in_of(traced)->original.get(), key));
  forget_error();
  if (item && is_numpy_scalar(item.get()))
    reads_.refuse("takes a number out of an array in its arguments", at, kNumberAdopts);
}

void Recorder::note_array_call(PyObject* callable, std::span<PyObject* const> arguments, bool is_method,
                               const Reads::Storing& at) {
  if (arguments.empty() || !is_tensor(arguments[0])) return;
  const bool is_numpys = text_of_attribute(callable, "__module__").starts_with("numpy");
  if (arguments.size() == 1 && (is_method || is_numpys) && is_wide_array(arguments[0]) && is_reduction(callable))
    return reads_.refuse("computes a number from an array in its arguments", at, kNumberAdopts);
  const StandIn* one = stand_in_of(arguments[0]);
  const bool asks = PyCFunction_Check(callable) && text_of_attribute(callable, "__name__") == "isinstance";
  if (one && !is_tensor(one->original.get()) && !at.by_others() &&
      (asks || (callable == reinterpret_cast<PyObject*>(&PyType_Type) && arguments.size() == 1)))
    reads_.refuse("asks for the type of an array in its arguments", at, "a tensor replaces the array");
}

}  // namespace backplane::python
