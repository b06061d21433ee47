// vjp: a function's value, and its pullback as a Python function that may be called often and later.
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/py_ref.hpp"

#include <structmember.h>

#include <algorithm>
#include <new>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/transforms/transform_values.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {
namespace {

PyTypeObject* g_pullback_type = nullptr;

// What a cotangent must be like.
struct ResultLike {
  std::vector<int64_t> shape;
  bp_dtype dtype;
  bp_device device;
  uint64_t bytes;
};

struct PullbackParts {
  const char* name;  // of the transform, for messages
  Pullback pullback;
  std::vector<Tree> inputs;
  Tree output;
  std::vector<ResultLike> results;
};

struct PullbackObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PullbackParts parts;
  PyObject*
      traced;  // a result that belongs to a transform which runs, or nullptr: the parts hold tensors of it as well
};

PullbackParts& parts_of(PyObject* self) { return reinterpret_cast<PullbackObject*>(self)->parts; }

// A number or a foreign array becomes a tensor like the result.
bool read_cotangent(const char* name, const std::string& path, PyObject* object, const ResultLike& like,
                    Tensor* cotangent) {
  const bool inexact = BP_DTYPE_BIT(like.dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX);
  if (object == Py_None || !inexact) return true;
  const int read = read_leaf(object, cotangent);
  if (read == 0) raise_leaf(name, path, object, "a tensor");
  if (read != 1) return false;
  if (!is_tensor(object)) {
    if (cotangent->dtype() != like.dtype)
      *cotangent = call(op_of(Slot::Cast), {value(*cotangent), dtype_value(like.dtype)});
    *cotangent = to_device(*cotangent, like.device);
  }
  const Shape shape = cotangent->shape();
  if (!std::equal(shape.begin(), shape.end(), like.shape.begin(), like.shape.end())) {
    raise(BP_ERROR_SHAPE, "%s: %s: found a tensor of shape %s, expected %s, the shape of the function's result", name,
          path.c_str(), shape_text(shape).c_str(), shape_text(like.shape).c_str());
    return false;
  }
  if (cotangent->dtype() != like.dtype) {
    raise(BP_ERROR_DTYPE,
          "vjp: %s: found a tensor of dtype %s, expected %s, the dtype of the function's result; cast it", path.c_str(),
          dtype_name(cotangent->dtype()), dtype_name(like.dtype));
    return false;
  }
  return true;
}

PyObject* wrap_cotangents(const PullbackParts& parts, std::vector<Tensor>& cotangents) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.inputs.size())));
  size_t first = 0;
  for (size_t i = 0; tuple && i < parts.inputs.size(); ++i) {
    PyObject* cotangent = unflatten_tensors(parts.inputs[i], cotangents.data() + first);
    if (!cotangent) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), cotangent);
    first += parts.inputs[i].n_leaves();
  }
  return tuple.release();
}

PyObject* pull_back(const PullbackParts& parts, PyObject* object) {
  Leaves leaves;
  const MatchNames names{parts.name, "the cotangent", "the function's result"};
  if (!flatten_up_to(parts.output, object, names, &leaves)) return nullptr;
  std::vector<Tensor> cotangents(leaves.size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string path = leaf_path(parts.output, i, "the cotangent");
    if (!read_cotangent(parts.name, path, leaves[i].get(), parts.results[i], &cotangents[i])) return nullptr;
    bytes += parts.results[i].bytes;
  }
  std::vector<Tensor> found;
  if (bytes < kReleaseGilBytes) {
    found = parts.pullback(cotangents);
  } else {
    WithoutGil unlocked;
    found = parts.pullback(cotangents);
  }
  return wrap_cotangents(parts, found);
}

PyObject* pullback_vectorcall(PyObject* self, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  if (count != 1 || (keywords && PyTuple_GET_SIZE(keywords) > 0)) {
    return raise(BP_ERROR_TYPE,
                 "vjp: the pullback was called with %zd arguments; expected one cotangent, with the structure of the "
                 "function's result",
                 count + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
  }
  return guarded([&] { return pull_back(parts_of(self), args[0]); });
}

// What keeps the pullback keeps tensors of the transform: traces look for these as the garbage collector does.
int pullback_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PullbackObject*>(self)->traced);
  return 0;
}

void pullback_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(reinterpret_cast<PullbackObject*>(self)->traced);
  parts_of(self).~PullbackParts();
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyObject* pullback_repr(PyObject* self) {
  return PyUnicode_FromFormat("<pullback of %zu results to %zu arguments>", parts_of(self).results.size(),
                              parts_of(self).inputs.size());
}

PyMemberDef pullback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PullbackObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot pullback_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(pullback_dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void*>(pullback_traverse)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_repr, reinterpret_cast<void*>(pullback_repr)},
                                {Py_tp_members, pullback_members},
                                {0, nullptr}};
PyType_Spec pullback_spec = {
    "backplane.Pullback", sizeof(PullbackObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    pullback_slots};

PyObject* wrap_pullback(PullbackParts&& parts, PyRef traced) {
  auto* self = PyObject_GC_New(PullbackObject, g_pullback_type);
  if (!self) return nullptr;
  self->vectorcall = pullback_vectorcall;
  new (&self->parts) PullbackParts(std::move(parts));
  self->traced = traced.release();
  PyObject_GC_Track(reinterpret_cast<PyObject*>(self));
  return reinterpret_cast<PyObject*>(self);
}

bool enter_primals(const char* name, GradScope& scope, PyObject* const* primals, Py_ssize_t count, InputTrees& inputs,
                   CallArray& array) {
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!inputs.add_variables(primals[i], i)) return false;
  InlineVector<Tensor, 4> entered;
  for (size_t i = 0; i < inputs.leaves.size(); ++i) {
    Tensor tensor;
    const int read = read_leaf(inputs.leaves[i].get(), &tensor);
    if (read == 0) raise_leaf(name, inputs.path(i), inputs.leaves[i].get(), "a floating or complex tensor");
    if (read != 1) return false;
    if (!is_differentiable(tensor) && !check_differentiable(name, inputs.path(i), tensor, false)) return false;
    entered.push_back(scope.enter(tensor));
  }
  for (const InputTrees::Entry& entry : inputs.entries) {
    PyRef primal = PyRef::steal(unflatten_tensors(entry.tree, entered.data() + entry.first));
    if (!primal) return false;
    array.replace(entry.position, std::move(primal));
  }
  return true;
}

PyObject* make_vjp(const char* name, PyObject* function, PyObject* const* primals, Py_ssize_t count, bool has_aux) {
  GradScope scope(name);
  InputTrees inputs;
  CallArray array(primals, count);
  if (!enter_primals(name, scope, primals, count, inputs, array)) return nullptr;
  PyRef returned = PyRef::steal(array.call(function, count, nullptr));
  Outputs outputs;
  if (!returned || !outputs.read(name, returned.get(), has_aux, array.took_elements())) return nullptr;
  PullbackParts parts{name, {}, {}, {}, {}};
  parts.pullback = scope.leave({outputs.tensors.data(), outputs.tensors.size()}, outputs.n_values);
  for (InputTrees::Entry& entry : inputs.entries) {
    keep_gradients_only(entry.tree);
    parts.inputs.push_back(std::move(entry.tree));
  }
  for (size_t i = 0; i < outputs.n_values; ++i) {
    const Tensor& result = outputs.tensors[i];
    const Shape shape = result.shape();
    parts.results.push_back({{shape.begin(), shape.end()}, result.dtype(), result.device(), work_of(*result.get())});
  }
  const auto* traced = std::find_if(outputs.tensors.begin(), outputs.tensors.end(), is_transformed);
  PyRef of_transform = PyRef::steal(traced != outputs.tensors.end() ? wrap_tensor(Tensor(*traced)) : nullptr);
  if (traced != outputs.tensors.end() && !of_transform) return nullptr;
  PyRef value = PyRef::steal(outputs.value());
  PyRef aux = PyRef::steal(has_aux ? outputs.aux() : nullptr);
  parts.output = outputs.take_tree();
  PyRef pullback = PyRef::steal(wrap_pullback(std::move(parts), std::move(of_transform)));
  if (!value || !pullback || (has_aux && !aux)) return nullptr;
  return has_aux ? PyTuple_Pack(3, value.get(), pullback.get(), aux.get())
                 : PyTuple_Pack(2, value.get(), pullback.get());
}

// has_aux alone: every positional argument is the function's.
bool read_has_aux(PyObject* const* values, PyObject* keywords, bool* has_aux) {
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
    if (PyUnicode_CompareWithASCIIString(keyword, "has_aux") != 0) {
      raise(BP_ERROR_TYPE,
            "vjp: found the keyword argument '%U', expected only has_aux. Fix: to pass keyword arguments to the "
            "function, wrap "
            "it in a lambda",
            keyword);
      return false;
    }
    const int wanted = PyObject_IsTrue(values[i]);
    if (wanted < 0) return false;
    *has_aux = wanted == 1;
  }
  return true;
}

}  // namespace

PyObject* vjp_function(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  bool has_aux = false;
  if (!read_has_aux(args + count, keywords, &has_aux)) return nullptr;
  if (count == 0) return raise(BP_ERROR_TYPE, "vjp: argument fun is missing");
  if (!check_callable("vjp", args[0])) return nullptr;
  return guarded([&] { return make_vjp("vjp", args[0], args + 1, count - 1, has_aux); });
}

PyObject* vjp_as_function(PyObject*, PyObject* args) {
  PyObject *name = nullptr, *function = nullptr, *primals = nullptr;
  int has_aux = 0;
  if (!PyArg_ParseTuple(args, "UOO!p:vjp_as", &name, &function, &PyTuple_Type, &primals, &has_aux)) return nullptr;
  return guarded([&] {
    return make_vjp(transform_name(name, "vjp"), function, &PyTuple_GET_ITEM(primals, 0), PyTuple_GET_SIZE(primals),
                    has_aux != 0);
  });
}

bool add_pullback_type() {
  g_pullback_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&pullback_spec));
  return g_pullback_type != nullptr;
}

}  // namespace backplane::python
