// jvp: the function's value and its derivative along a tangent, in one forward pass.
#include <algorithm>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/transforms/transform_values.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {
namespace {

// primals or tangents: a tuple or list with an element per argument of the function.
PyRef read_sequence(const char* argument, PyObject* object) {
  if (PyTuple_Check(object) || PyList_Check(object)) return PyRef::steal(PySequence_Tuple(object));
  PyRef kind = found_kind(object);
  if (kind)
    raise(BP_ERROR_TYPE,
          "jvp: argument %s: found %U, expected a tuple or list with one element per argument of the function",
          argument, kind.get());
  return {};
}

// `path` names the primal; the tangent is the element of the same place in tangents.
bool read_tangent(const char* name, const std::string& path, PyObject* object, const Tensor& primal, Tensor* tangent) {
  const int read = read_leaf(object, tangent);
  if (read == 0) raise_leaf(name, path, object, "a tensor");
  if (read != 1) return false;
  if (!is_tensor(object)) {
    if (tangent->dtype() != primal.dtype())
      *tangent = call(op_of(Slot::Cast), {value(*tangent), dtype_value(primal.dtype())});
    *tangent = to_device(*tangent, primal.device());
  }
  if (tangent->dtype() != primal.dtype()) {
    raise(BP_ERROR_DTYPE, "%s: %s: found a tensor of dtype %s, expected %s, the dtype of its primal; cast it", name,
          path.c_str(), dtype_name(tangent->dtype()), dtype_name(primal.dtype()));
    return false;
  }
  const Shape found = tangent->shape(), expected = primal.shape();
  if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end())) {
    raise(BP_ERROR_SHAPE, "%s: %s: found a tensor of shape %s, expected %s, the shape of its primal", name,
          path.c_str(), shape_text(found).c_str(), shape_text(expected).c_str());
    return false;
  }
  return true;
}

std::string place(const char* argument, const InputTrees::Entry& entry, size_t leaf) {
  return leaf_path(entry.tree, leaf, std::string(argument) + "[" + std::to_string(entry.position) + "]");
}

// The leaves of one argument as inputs of the scope.
bool enter_argument(const char* name, JvpScope& scope, const InputTrees& inputs, const InputTrees::Entry& entry,
                    PyObject* tangents, InlineVector<Tensor, 4>& entered) {
  Leaves parts;
  const std::string position = "[" + std::to_string(entry.position) + "]";
  if (!flatten_up_to(entry.tree, tangents, {name, "tangents" + position, "primals" + position}, &parts)) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    PyObject* leaf = inputs.leaves[entry.first + i].get();
    Tensor primal, tangent;
    const int read = read_leaf(leaf, &primal);
    if (read == 0) raise_leaf(name, place("primals", entry, i), leaf, "a floating or complex tensor");
    if (read != 1) return false;
    if (!is_differentiable(primal) && !check_differentiable(name, place("primals", entry, i), primal, false))
      return false;
    if (!read_tangent(name, place("tangents", entry, i), parts[i].get(), primal, &tangent)) return false;
    entered.push_back(scope.enter(primal, tangent));
  }
  return true;
}

bool enter_primals(const char* name, JvpScope& scope, PyObject* primals, PyObject* tangents, InputTrees& inputs,
                   CallArray& array) {
  const Py_ssize_t count = PyTuple_GET_SIZE(primals);
  if (PyTuple_GET_SIZE(tangents) != count) {
    raise(BP_ERROR_VALUE, "%s: argument tangents: found %zd elements, expected %zd, one per primal", name,
          PyTuple_GET_SIZE(tangents), count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!inputs.add_variables(PyTuple_GET_ITEM(primals, i), i)) return false;
  for (const InputTrees::Entry& entry : inputs.entries) {
    InlineVector<Tensor, 4> entered;
    if (!enter_argument(name, scope, inputs, entry, PyTuple_GET_ITEM(tangents, entry.position), entered)) return false;
    PyRef primal = PyRef::steal(unflatten_tensors(entry.tree, entered.data()));
    if (!primal) return false;
    array.replace(entry.position, std::move(primal));
  }
  return true;
}

PyObject* run_jvp(const char* name, PyObject* function, PyObject* primals, PyObject* tangents, bool has_aux) {
  JvpScope scope(name);
  InputTrees inputs;
  const Py_ssize_t count = PyTuple_GET_SIZE(primals);
  CallArray array(&PyTuple_GET_ITEM(primals, 0), count);
  if (!enter_primals(name, scope, primals, tangents, inputs, array)) return nullptr;
  PyRef returned = PyRef::steal(array.call(function, count, nullptr));
  Outputs outputs;
  if (!returned || !outputs.read(name, returned.get(), has_aux, array.took_elements())) return nullptr;
  InlineVector<Tensor, 4> derivatives;
  for (size_t i = 0; i < outputs.tensors.size(); ++i) {
    JvpScope::Dual dual = scope.leave(outputs.tensors[i]);
    outputs.tensors[i] = std::move(dual.primal);
    if (i < outputs.n_values) derivatives.push_back(std::move(dual.tangent));
  }
  PyRef value = PyRef::steal(outputs.value());
  PyRef derivative = PyRef::steal(value ? unflatten_tensors(outputs.tree(), derivatives.data()) : nullptr);
  if (!derivative) return nullptr;
  if (!has_aux) return PyTuple_Pack(2, value.get(), derivative.get());
  PyRef aux = PyRef::steal(outputs.aux());
  return aux ? PyTuple_Pack(3, value.get(), derivative.get(), aux.get()) : nullptr;
}

}  // namespace

PyObject* jvp_function(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"fun", "primals", "tangents", "has_aux", nullptr};
  PyObject *function = nullptr, *primals = nullptr, *tangents = nullptr;
  int has_aux = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|p:jvp", const_cast<char**>(keywords), &function, &primals,
                                   &tangents, &has_aux)) {
    return nullptr;
  }
  if (!check_callable("jvp", function)) return nullptr;
  return guarded([&]() -> PyObject* {
    PyRef values = read_sequence("primals", primals);
    PyRef directions = values ? read_sequence("tangents", tangents) : PyRef{};
    return directions ? run_jvp("jvp", function, values.get(), directions.get(), has_aux != 0) : nullptr;
  });
}

PyObject* jvp_as_function(PyObject*, PyObject* args) {
  PyObject *name = nullptr, *function = nullptr, *primals = nullptr, *tangents = nullptr;
  int has_aux = 0;
  if (!PyArg_ParseTuple(args, "UOO!O!p:jvp_as", &name, &function, &PyTuple_Type, &primals, &PyTuple_Type, &tangents,
                        &has_aux)) {
    return nullptr;
  }
  return guarded([&] { return run_jvp(transform_name(name, "jvp"), function, primals, tangents, has_aux != 0); });
}

}  // namespace backplane::python
