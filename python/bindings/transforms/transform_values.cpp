// Leaves to tensors, results to containers, and the errors for other objects.
#include "bindings/transforms/transform_values.hpp"

#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/named_dims.hpp"
#include "bindings/tensor/scalars.hpp"

namespace backplane::python {
namespace {

bool is_number(PyObject* object) { return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object); }

}  // namespace

bool InputTrees::append(PyObject* object, Py_ssize_t position, PyObject* keyword, bool variables) {
  Entry entry;
  entry.first = leaves.size();
  entry.position = position;
  entry.keyword = keyword;
  if (!flatten_tree(object, nullptr, &leaves, &entry.tree, variables)) return false;
  entries.push_back(std::move(entry));
  return true;
}

std::string InputTrees::root(const Entry& entry) {
  if (!entry.keyword) return "args[" + std::to_string(entry.position) + "]";
  const char* text = PyUnicode_AsUTF8(entry.keyword);
  return text ? text : "?";
}

std::string InputTrees::path(size_t leaf) const {
  for (const Entry& entry : entries)
    if (leaf < entry.end()) return leaf_path(entry.tree, leaf - entry.first, root(entry));
  return "?";
}

int read_leaf(PyObject* leaf, Tensor* tensor) noexcept {
  if (is_tensor(leaf)) [[likely]] {
    *tensor = tensor_of(leaf);
    return 1;
  }
  if (!is_number(leaf) && !is_foreign_array(leaf)) return 0;
  PyRef made = PyRef::steal(tensor_of_data(leaf));
  if (!made) return -1;
  *tensor = tensor_of(made.get());
  return 1;
}

PyObject* raise_leaf(const char* name, const std::string& path, PyObject* leaf, const char* expected) {
  PyRef kind = found_kind(leaf);
  // A class of Python's may contain tensors; static types of C do not.
  const char* fix = has_named_dims(leaf) ? ". Fix: give its named dimensions an order first, as in x.order(i)"
                    : PyType_HasFeature(Py_TYPE(leaf), Py_TPFLAGS_HEAPTYPE)
                        ? ". Fix: register the class with tree.register, which defines its parts"
                        : "";
  return kind ? raise(BP_ERROR_TYPE, "%s: %s: found %U, expected %s%s", name, path.c_str(), kind.get(), expected, fix)
              : nullptr;
}

bool check_differentiable(const char* name, const std::string& path, const Tensor& tensor, bool holomorphic) {
  if (!is_differentiable(tensor)) {
    raise(
        BP_ERROR_DTYPE,
        "%s: %s: found a tensor of dtype %s, expected a floating or complex one; cast it with astype, or leave it out "
        "of the differentiated arguments",
        name, path.c_str(), dtype_name(tensor.dtype()));
    return false;
  }
  if (holomorphic && !is_complex(tensor)) {
    raise(BP_ERROR_DTYPE, "%s: %s: found a tensor of dtype %s, expected a complex one, because of holomorphic=True",
          name, path.c_str(), dtype_name(tensor.dtype()));
    return false;
  }
  return true;
}

CallArray::CallArray(PyObject* const* args, Py_ssize_t count) {
  array_.push_back(nullptr);
  for (Py_ssize_t i = 0; i < count; ++i) array_.push_back(args[i]);
}

void CallArray::replace(Py_ssize_t i, PyRef argument) {
  array_[static_cast<size_t>(i) + 1] = argument.get();
  owned_.push_back(std::move(argument));
}

PyObject* CallArray::call(PyObject* function, Py_ssize_t n_positional, PyObject* keywords) {
  const uint64_t before = differentiated_elements();
  PyObject* returned = PyObject_Vectorcall(
      function, array_.data() + 1, static_cast<size_t>(n_positional) | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
  took_elements_ = differentiated_elements() != before;
  return returned;
}

bool split_aux(const char* name, PyObject* returned, PyObject** value, PyObject** aux) {
  if (!PyTuple_Check(returned) || PyTuple_GET_SIZE(returned) != 2) {
    PyRef kind = found_kind(returned);
    if (kind)
      raise(BP_ERROR_TYPE, "%s: the function returned %U; expected a pair (value, aux), because of has_aux=True", name,
            kind.get());
    return false;
  }
  *value = PyTuple_GET_ITEM(returned, 0);
  *aux = PyTuple_GET_ITEM(returned, 1);
  return true;
}

bool Outputs::read(const char* name, PyObject* returned, bool has_aux, bool took_elements) {
  PyObject *value = returned, *aux = nullptr;
  if (has_aux && !split_aux(name, returned, &value, &aux)) return false;
  return read_value(name, value, took_elements) && (!aux || read_aux(aux));
}

bool Outputs::read_value(const char* name, PyObject* value, bool took_elements) {
  Leaves leaves;
  if (!flatten_tree(value, &leaves, &tree_)) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    PyObject* leaf = leaves[i].get();
    if (took_elements && (PyFloat_Check(leaf) || PyComplex_Check(leaf))) {
      raise(BP_ERROR_TYPE,
            "%s: %s: found a number, and elements of differentiated tensors were taken as numbers (by item, float or a "
            "function of numbers), which has no derivative. Fix: return a tensor; for a constant, "
            "backplane.asarray(number)",
            name, path(i).c_str());
      return false;
    }
    Tensor tensor;
    const int read = read_leaf(leaf, &tensor);
    if (read == 0) raise_leaf(name, path(i), leaf, "a tensor");
    if (read != 1) return false;
    tensors.push_back(std::move(tensor));
  }
  n_values = leaves.size();
  return true;
}

bool Outputs::read_aux(PyObject* aux) {
  if (!flatten_tree(aux, &aux_leaves_, &aux_tree_)) return false;
  for (size_t i = 0; i < aux_leaves_.size(); ++i) {
    if (!is_tensor(aux_leaves_[i].get())) continue;
    aux_tensors_.push_back(i);
    tensors.push_back(tensor_of(aux_leaves_[i].get()));
  }
  return true;
}

PyObject* unflatten_tensors(const Tree& tree, Tensor* tensors) {
  if (tree.is_leaf()) [[likely]]
    return wrap_tensor(std::move(tensors[0]));
  Leaves owned;
  InlineVector<PyObject*, 8> leaves;
  for (size_t i = 0; i < tree.n_leaves(); ++i) {
    PyRef leaf = PyRef::steal(wrap_tensor(std::move(tensors[i])));
    if (!leaf) return nullptr;
    leaves.push_back(leaf.get());
    owned.push_back(std::move(leaf));
  }
  return unflatten_tree(tree, leaves.data());
}

PyObject* Outputs::value() { return unflatten_tensors(tree_, tensors.data()); }

PyObject* Outputs::aux() {
  InlineVector<PyObject*, 8> leaves;
  for (size_t i = 0; i < aux_tensors_.size(); ++i) {
    PyRef tensor = PyRef::steal(wrap_tensor(std::move(tensors[n_values + i])));
    if (!tensor) return nullptr;
    aux_leaves_[aux_tensors_[i]] = std::move(tensor);
  }
  for (const PyRef& leaf : aux_leaves_) leaves.push_back(leaf.get());
  return unflatten_tree(aux_tree_, leaves.data());
}

std::string shape_text(Shape shape) {
  PyRef tuple = PyRef::steal(shape_tuple(shape.data(), static_cast<int32_t>(shape.size())));
  PyRef text = PyRef::steal(tuple ? PyObject_Repr(tuple.get()) : nullptr);
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  forget_error();
  return chars ? chars : "?";
}

}  // namespace backplane::python
