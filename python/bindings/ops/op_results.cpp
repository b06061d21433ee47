#include "bindings/ops/op_results.hpp"

#include <string>
#include <vector>

#include "backplane/op.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

PyObject* wrap_list(std::vector<Tensor> tensors) {
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; list && i < tensors.size(); ++i) {
    PyObject* item = tensors[i] ? wrap_tensor(std::move(tensors[i])) : Py_NewRef(Py_None);
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

// A type of results may outlive its op's record, and does not copy the names of its fields: interned, and kept.
const char* lasting(const char* name) {
  PyObject* interned = PyUnicode_InternFromString(name);
  return interned ? PyUnicode_AsUTF8(interned) : "";
}

}  // namespace

PyObject* wrap_result(bp_value& value) {
  if (value.tag == BP_TAG_TENSOR) [[likely]]
    return wrap_tensor(value.u.t);
  if (value.tag == BP_TAG_TENSOR_LIST) return wrap_list(take_list(value));
  Py_RETURN_NONE;
}

PyTypeObject* new_results_type(PyObject* op, const OpSignature& signature) {
  const int32_t count = signature.result_count();
  std::vector<PyStructSequence_Field> fields;
  for (int32_t i = 0; i < count; ++i) fields.push_back({lasting(signature.result_name(i)), nullptr});
  fields.push_back({nullptr, nullptr});
  std::string name = std::string("backplane.") + PyUnicode_AsUTF8(op) + "_result";
  PyStructSequence_Desc description = {name.c_str(), "The results of an op, by name.", fields.data(), count};
  return PyStructSequence_NewType(&description);
}

}  // namespace backplane::python
