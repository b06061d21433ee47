// The extension module backplane._core: the CPython types first, then rarely called functions, through pybind11.
//
// One interpreter: types and the tables of names are process-wide.
#include <pybind11/pybind11.h>

#include "backplane/plugins.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/interrupts.hpp"
#include "bindings/ops/custom_op.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/ops/op_facts.hpp"
#include "bindings/ops/op_type.hpp"
#include "bindings/ops/other_forms.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/system/bind_autocast.hpp"
#include "bindings/system/bind_streams.hpp"
#include "bindings/system/bind_system.hpp"
#include "bindings/system/bind_tensor_file.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/dlpack.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/handles.hpp"
#include "bindings/tensor/named_dims.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/transforms/bind_autograd.hpp"
#include "bindings/transforms/bind_graph_function.hpp"
#include "bindings/transforms/tape.hpp"
#include "bindings/transforms/traced_call.hpp"
#include "bindings/transforms/transformed.hpp"
#include "bindings/transforms/tree.hpp"

namespace backplane::python {
namespace {

PyCFunction with_keywords(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr Declared kAsarrayDoc =
    R"(asarray(obj: Any, /, dtype: DType | None = None, *, device: Device | str | None = None, copy: bool | None = None, order: str | None = None) -> Tensor
--

Converts a number, nested sequences of numbers, or an array (buffer protocol or DLPack) to a tensor.
The memory of an array is shared unless dtype, device, layout or copy=True needs a copy. If copy=False and a copy is needed, raises.
order: NumPy's 'C' for row-major order, 'K' or 'A' for the order in memory; 'F' raises.)";

constexpr Declared kFromDlpackDoc =
    R"(from_dlpack(x: Any, /, *, device: Device | str | None = None, copy: bool | None = None) -> Tensor
--

A tensor over the memory that x.__dlpack__() exports.)";

// For bridges whose calls come from C++: (status, message).
PyObject* raise_error(PyObject*, PyObject* args) {
  int status = 0;
  const char* text = nullptr;
  return PyArg_ParseTuple(args, "is:raise_error", &status, &text) ? raise_text(static_cast<bp_status>(status), text)
                                                                  : nullptr;
}

PyMethodDef functions[] = {
    {"raise_error", raise_error, METH_VARARGS,
     "raise_error(status, text)\n--\n\nRaises what a call of an op that fails with this status raises: an exception "
     "of a callback is that exception again."},
    {"asarray", with_keywords(asarray_object), METH_VARARGS | METH_KEYWORDS, kAsarrayDoc.text},
    {"from_dlpack", with_keywords(from_dlpack_object), METH_VARARGS | METH_KEYWORDS, kFromDlpackDoc.text},
    {"tensor_handle", tensor_handle, METH_O,
     "tensor_handle(tensor)\n--\n\nThe address of the bp_tensor behind a tensor, for modules in C++. It is valid as "
     "long as the tensor."},
    {"tensor_from_handle", tensor_from_handle, METH_O,
     "tensor_from_handle(address)\n--\n\nThe tensor of a bp_tensor, by its address. The tensor holds a reference of "
     "its "
     "own."},
    {"bind_slot", bind_slot, METH_VARARGS, "bind_slot(slot, op)\n--\n\nMakes an op serve a piece of Python's syntax."},
    {"set_other_form", set_other_form, METH_VARARGS,
     "set_other_form(full_name, name, function)\n--\n\nWhat answers calls of the op under this name whose arguments "
     "the "
     "entry does not take; NotImplemented leaves them its error."},
    {"set_form_kinds", set_form_kinds, METH_O,
     "set_form_kinds(kinds)\n--\n\nOf which kinds of first operands the other form answers, before the op runs: lists "
     "of "
     "full names by kind."},
    {"set_named_dims", set_named_dims, METH_VARARGS,
     "set_named_dims(type, call, get_item, set_item, asarray)\n--\n\nWhat answers calls of ops, indexing and asarray "
     "where an operand has this type."},
    {nullptr, nullptr, 0, nullptr}};

void translate(std::exception_ptr failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    raise_text(error.code(), error.what());
  }
}

}  // namespace
}  // namespace backplane::python

PYBIND11_MODULE(_core_of_main, module) {
  using namespace backplane::python;
  PyObject* self = module.ptr();
  const bool added = add_exceptions(self) && add_context_settings(self) && add_dtype_and_device(self) &&
                     add_generator(self) && add_tensor_type(self) && add_size_types() && add_number_types() &&
                     add_op_type(self) && add_tree(self) && add_transforms(self) &&
                     PyModule_AddFunctions(self, functions) == 0 && watch_interrupts();
  if (!added) throw pybind11::error_already_set();
  pybind11::register_exception_translator(translate);
  // Where no slot is left for it, an exit while other threads compute or open libraries may crash or hang.
  Py_AtExit([] { backplane::end_loading(); });
  // Python: __version__: str
  module.attr("__version__") = BACKPLANE_VERSION;
  bind_autograd(module);
  bind_tape(module);
  bind_graph_function(module);
  bind_graph(module);
  bind_control(module);
  bind_model_file(module);
  bind_system(module);
  bind_autocast(module);
  bind_tensor_file(module);
  bind_streams(module);
  bind_custom_op(module);
  bind_op_facts(module);
}

// What Python calls. In an interpreter that is not the main one, pybind11 would wait for ever for a lock that this
// thread holds.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_of_main();
  PyErr_SetString(
      PyExc_ImportError,
      "backplane can be imported only in the main interpreter of a process, because its tensors and ops are the "
      "process's. Fix: import it there, or use processes instead of subinterpreters");
  return nullptr;
}
