// What all transforms do with the arguments and the results of the user's function: containers to tensors and back,
// and the names of places for error messages.
//
// Objects live on the stack of one call and need the interpreter lock; functions that fail set a Python error.
#pragma once

#include <string>

#include "bindings/tensor/tensor_object.hpp"
#include "bindings/transforms/tree.hpp"

namespace backplane::python {

// Some arguments of a call, taken apart one after the other.
class InputTrees {
 public:
  // The argument at `position`, or the one named `keyword` (then `position` is not looked at).
  bool add(PyObject* object, Py_ssize_t position, PyObject* keyword = nullptr) {
    return append(object, position, keyword, false);
  }
  // The same with only the leaves that a derivative is taken of.
  bool add_variables(PyObject* object, Py_ssize_t position) { return append(object, position, nullptr, true); }

  Leaves leaves;  // of all of them, in order

  struct Entry {
    Tree tree;
    size_t first = 0;  // of its leaves
    Py_ssize_t position = 0;
    PyObject* keyword = nullptr;  // borrowed
    size_t end() const noexcept { return first + tree.n_leaves(); }
  };
  InlineVector<Entry, 4> entries;

  // "args[0]", "rate".
  static std::string root(const Entry& entry);
  // The place of a leaf: "args[0]['w']".
  std::string path(size_t leaf) const;

 private:
  bool append(PyObject* object, Py_ssize_t position, PyObject* keyword, bool variables);
};

// The tensor of a leaf: itself, or made of a number or another library's array. 0: another object (no Python
// error); -1: a Python error.
int read_leaf(PyObject* leaf, Tensor* tensor) noexcept;

// "args[0]: found …, expected …" for a leaf that read_leaf does not take; always nullptr.
PyObject* raise_leaf(const char* name, const std::string& path, PyObject* leaf, const char* expected);

// An input that is differentiated: floating or complex (complex only, where `holomorphic`).
bool check_differentiable(const char* name, const std::string& path, const Tensor& tensor, bool holomorphic);
inline bool is_complex(const Tensor& tensor) noexcept { return BP_DTYPE_BIT(tensor.dtype()) & BP_MASK_COMPLEX; }
inline bool is_differentiable(const Tensor& tensor) noexcept {
  return BP_DTYPE_BIT(tensor.dtype()) & (BP_MASK_FLOATING | BP_MASK_COMPLEX);
}

// The function's arguments, some of them replaced. The array has room for one more in front, as vectorcall likes it.
class CallArray {
 public:
  CallArray(PyObject* const* args, Py_ssize_t count);  // borrows
  // Takes over the reference.
  void replace(Py_ssize_t i, PyRef argument);
  PyObject* at(Py_ssize_t i) const { return array_[static_cast<size_t>(i) + 1]; }  // borrowed
  PyObject* call(PyObject* function, Py_ssize_t n_positional, PyObject* keywords);
  // Did the function take elements of differentiated tensors as Python numbers?
  bool took_elements() const { return took_elements_; }

 private:
  bool took_elements_ = false;
  InlineVector<PyObject*, 9> array_;
  Leaves owned_;
};

// The results of a function: the leaves of its value, which must all be tensors or numbers (converted), and the
// tensors among the leaves of its auxiliary value.
class Outputs {
 public:
  // `returned`: the function's result; with `has_aux` a pair of value and aux. `took_elements`: a float in the value
  // may be an element of a differentiated tensor, whose derivative is lost, and is refused.
  bool read(const char* name, PyObject* returned, bool has_aux, bool took_elements = false);

  InlineVector<Tensor, 4> tensors;  // first those of the value, then those of aux
  size_t n_values = 0;

  // The value and aux, of the tensors as they are now; new references.
  PyObject* value();
  PyObject* aux();
  std::string path(size_t i) const { return leaf_path(tree_, i, "the function's result"); }
  const Tree& tree() const noexcept { return tree_; }
  Tree take_tree() noexcept { return std::move(tree_); }

 private:
  bool read_value(const char* name, PyObject* value, bool took_elements);
  bool read_aux(PyObject* aux);

  Tree tree_;
  Tree aux_tree_;
  Leaves aux_leaves_;
  InlineVector<size_t, 4> aux_tensors_;  // which of aux_leaves_ are tensors
};

// A container of tree's structure from tensors, which are taken over; a new reference.
PyObject* unflatten_tensors(const Tree& tree, Tensor* tensors);

// (3, 4) as Python prints it.
std::string shape_text(Shape shape);

// Splits a has_aux pair: false with an error if `returned` is not a pair.
bool split_aux(const char* name, PyObject* returned, PyObject** value, PyObject** aux);

}  // namespace backplane::python
