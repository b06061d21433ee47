// backplane.tree for Python: the Structure type, and flatten, unflatten and map over it.
#include <new>

#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/tree.hpp"

namespace backplane::python {
namespace {

PyTypeObject* g_structure_type = nullptr;

struct StructureObject {
  PyObject_HEAD Tree tree;
};

Tree& tree_of(PyObject* structure) { return reinterpret_cast<StructureObject*>(structure)->tree; }

PyObject* wrap_tree(Tree&& tree) {
  auto* self = PyObject_New(StructureObject, g_structure_type);
  if (self) new (&self->tree) Tree(std::move(tree));
  return reinterpret_cast<PyObject*>(self);
}

void structure_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  tree_of(self).~Tree();
  PyObject_Free(self);
  Py_DECREF(type);
}

// Python: Structure.__eq__(self, other: object, /) -> bool
PyObject* structure_compare(PyObject* self, PyObject* other, int operation) {
  if (Py_TYPE(other) != g_structure_type || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const int same = same_tree(tree_of(self), tree_of(other));
  return same < 0 ? nullptr : PyBool_FromLong((same == 1) == (operation == Py_EQ));
}

PyObject* structure_repr(PyObject* self) {
  PyRef text = PyRef::steal(tree_text(tree_of(self)));
  return text ? PyUnicode_FromFormat("Structure(%U)", text.get()) : nullptr;
}

PyObject* structure_n_leaves(PyObject* self, void*) { return PyLong_FromSize_t(tree_of(self).n_leaves()); }

// (leaves, is_leaf or None), flattened.
bool flatten_arguments(PyObject* args, const char* format, Leaves* leaves, Tree* tree) {
  PyObject *object = nullptr, *is_leaf = Py_None;
  if (!PyArg_ParseTuple(args, format, &object, &is_leaf)) return false;
  return flatten_tree(object, is_leaf == Py_None ? nullptr : is_leaf, leaves, tree);
}

PyObject* list_of(const Leaves& leaves) {
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(leaves.size())));
  for (size_t i = 0; list && i < leaves.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(leaves[i].get()));
  return list.release();
}

PyObject* tree_flatten(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Leaves leaves;
    Tree tree;
    if (!flatten_arguments(args, "O|O:flatten", &leaves, &tree)) return nullptr;
    PyRef list = PyRef::steal(list_of(leaves));
    PyRef structure = PyRef::steal(list ? wrap_tree(std::move(tree)) : nullptr);
    return structure ? PyTuple_Pack(2, list.get(), structure.get()) : nullptr;
  });
}

PyObject* tree_unflatten(PyObject*, PyObject* args) {
  PyObject *structure = nullptr, *leaves = nullptr;
  if (!PyArg_ParseTuple(args, "O!O:unflatten", g_structure_type, &structure, &leaves)) return nullptr;
  return guarded([&]() -> PyObject* {
    PyRef tuple = PyRef::steal(PySequence_Tuple(leaves));
    if (!tuple) return nullptr;
    const Tree& tree = tree_of(structure);
    if (static_cast<size_t>(PyTuple_GET_SIZE(tuple.get())) != tree.n_leaves())
      return raise(BP_ERROR_VALUE, "tree.unflatten: argument leaves: found %zd, expected %zu, one per leaf of %R",
                   PyTuple_GET_SIZE(tuple.get()), tree.n_leaves(), structure);
    return unflatten_tree(tree, &PyTuple_GET_ITEM(tuple.get(), 0));
  });
}

// map(function, tree, rest, is_leaf): the rest, a tuple of trees, has the first one's structure or more below it.
PyObject* tree_map(PyObject*, PyObject* args) {
  PyObject *function = nullptr, *first = nullptr, *rest = nullptr, *is_leaf = Py_None;
  if (!PyArg_ParseTuple(args, "OOO!O:map", &function, &first, &PyTuple_Type, &rest, &is_leaf)) return nullptr;
  return guarded([&]() -> PyObject* {
    Leaves leaves;
    Tree tree;
    if (!flatten_tree(first, is_leaf == Py_None ? nullptr : is_leaf, &leaves, &tree)) return nullptr;
    const auto n_rest = static_cast<size_t>(PyTuple_GET_SIZE(rest));
    Leaves others;  // tree by tree
    for (size_t i = 0; i < n_rest; ++i) {
      const MatchNames names{"tree.map", "argument " + std::to_string(i + 2), "the first tree"};
      if (!flatten_up_to(tree, PyTuple_GET_ITEM(rest, static_cast<Py_ssize_t>(i)), names, &others)) return nullptr;
    }
    Leaves results;
    InlineVector<PyObject*, 8> raw;
    InlineVector<PyObject*, 8> call;
    for (size_t k = 0; k <= n_rest; ++k) call.push_back(nullptr);
    for (size_t i = 0; i < leaves.size(); ++i) {
      call[0] = leaves[i].get();
      for (size_t k = 0; k < n_rest; ++k) call[k + 1] = others[k * leaves.size() + i].get();
      PyRef result = PyRef::steal(PyObject_Vectorcall(function, call.data(), n_rest + 1, nullptr));
      if (!result) return nullptr;
      raw.push_back(result.get());
      results.push_back(std::move(result));
    }
    return unflatten_tree(tree, raw.data());
  });
}

PyGetSetDef structure_getset[] = {{"n_leaves", structure_n_leaves, nullptr, "int: The number of leaves.", nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot structure_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(structure_dealloc)},
    {Py_tp_richcompare, reinterpret_cast<void*>(structure_compare)},
    {Py_tp_repr, reinterpret_cast<void*>(structure_repr)},
    {Py_tp_getset, structure_getset},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {Py_tp_doc, const_cast<char*>("The structure of a nested container, without its leaves.")},
    {0, nullptr}};
PyType_Spec structure_spec = {"backplane.tree.Structure", sizeof(StructureObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, structure_slots};

PyMethodDef tree_functions[] = {{"tree_flatten", tree_flatten, METH_VARARGS, nullptr},
                                {"tree_unflatten", tree_unflatten, METH_VARARGS, nullptr},
                                {"tree_map", tree_map, METH_VARARGS, nullptr},
                                {"tree_register", register_tree_type, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_tree(PyObject* module) {
  g_structure_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&structure_spec));
  return g_structure_type &&
         PyModule_AddObjectRef(module, "Structure", reinterpret_cast<PyObject*>(g_structure_type)) == 0 &&
         PyModule_AddFunctions(module, tree_functions) == 0;
}

}  // namespace backplane::python
