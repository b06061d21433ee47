// What counts as a container, one level at a time; flattening and its inverse stand on that.
#include "bindings/transforms/tree.hpp"

#include <structmember.h>

#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

PyObject* g_registered = nullptr;  // type -> (flatten, unflatten, variables or None)
PyObject* g_ordered_dict = nullptr;
PyObject* g_default_dict = nullptr;

// collections is loaded by then if anything could be of its types.
bool find_collections() {
  if (g_default_dict) return true;
  PyRef module = imported_module("collections");
  if (!module) return false;
  g_ordered_dict = PyObject_GetAttrString(module.get(), "OrderedDict");
  g_default_dict = PyObject_GetAttrString(module.get(), "defaultdict");
  return g_ordered_dict && g_default_dict;
}

PyObject* registration(PyObject* type) { return g_registered ? PyDict_GetItemWithError(g_registered, type) : nullptr; }

// Named tuples and struct sequences are subclasses of tuple that say so by an attribute of their class.
NodeKind kind_of_tuple_type(PyTypeObject* type) {
  auto has = [type](const char* name) { return has_attribute(reinterpret_cast<PyObject*>(type), name) == 1; };
  if (has("_fields")) return NodeKind::NamedTuple;
  return has("n_sequence_fields") ? NodeKind::StructSequence : NodeKind::Leaf;
}

NodeKind kind_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == g_tensor_type || type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type)
    return NodeKind::Leaf;
  if (type == &PyTuple_Type) return NodeKind::Tuple;
  if (type == &PyList_Type) return NodeKind::List;
  if (type == &PyDict_Type) return NodeKind::Dict;
  if (object == Py_None) return NodeKind::None;
  if (registration(reinterpret_cast<PyObject*>(type))) return NodeKind::Registered;
  if (PyTuple_Check(object)) return kind_of_tuple_type(type);
  if (!PyDict_Check(object) || !find_collections()) return NodeKind::Leaf;
  if (reinterpret_cast<PyObject*>(type) == g_ordered_dict) return NodeKind::OrderedDict;
  return reinterpret_cast<PyObject*>(type) == g_default_dict ? NodeKind::DefaultDict : NodeKind::Leaf;
}

bool same_order(PyObject* sorted, PyObject* keys) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
    if (PyList_GET_ITEM(sorted, i) != PyTuple_GET_ITEM(keys, i)) return false;
  return true;
}

// Keys in the order of the leaves, and the order of insertion where it is another.
bool read_keys(PyObject* dict, bool sort, TreeNode* node) {
  PyRef keys = PyRef::steal(PySequence_Tuple(dict));
  if (!keys) return false;
  if (!sort) {
    node->data = std::move(keys);
    return true;
  }
  PyRef sorted = PyRef::steal(PySequence_List(keys.get()));
  if (!sorted) return false;
  if (PyList_Sort(sorted.get()) < 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    forget_error();  // keys that have no order among them, as 0 and "a": as they were inserted
    node->data = std::move(keys);
    return true;
  }
  if (same_order(sorted.get(), keys.get())) {
    node->data = std::move(keys);
    return true;
  }
  node->order = std::move(keys);
  node->data = PyRef::steal(PyList_AsTuple(sorted.get()));
  return static_cast<bool>(node->data);
}

bool expand_dict(PyObject* dict, TreeNode* node, Leaves* children) {
  if (!read_keys(dict, node->kind != NodeKind::OrderedDict, node)) return false;
  if (node->kind == NodeKind::DefaultDict) {
    node->type = PyRef::steal(PyObject_GetAttrString(dict, "default_factory"));
    if (!node->type) return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node->data.get()); ++i) {
    PyObject* value = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(node->data.get(), i));
    if (!value) {
      if (!PyErr_Occurred()) raise(BP_ERROR_VALUE, "tree: a dict changed while it was read");
      return false;
    }
    children->push_back(PyRef::borrow(value));
  }
  return true;
}

bool expand_registered(PyObject* object, TreeNode* node, Leaves* children, bool variables) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  node->type = PyRef::borrow(type);
  PyObject* functions = registration(type);
  variables &= PyTuple_GET_ITEM(functions, 2) != Py_None;
  PyRef found = PyRef::steal(PyObject_CallOneArg(PyTuple_GET_ITEM(functions, variables ? 2 : 0), object));
  if (!found) return false;
  if (!PyTuple_Check(found.get()) || PyTuple_GET_SIZE(found.get()) != (variables ? 3 : 2)) {
    raise(BP_ERROR_TYPE, "tree: the %s function of %s returned %R, expected %s", variables ? "variables" : "flatten",
          Py_TYPE(object)->tp_name, found.get(),
          variables ? "a triple (children, data, data of gradients)" : "a pair (children, data)");
    return false;
  }
  node->data = PyRef::borrow(PyTuple_GET_ITEM(found.get(), 1));
  if (variables) node->gradient_data = PyRef::borrow(PyTuple_GET_ITEM(found.get(), 2));
  PyRef parts = PyRef::steal(PySequence_Tuple(PyTuple_GET_ITEM(found.get(), 0)));
  if (!parts) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i)
    children->push_back(PyRef::borrow(PyTuple_GET_ITEM(parts.get(), i)));
  return true;
}

bool append_node(PyObject* object, PyObject* is_leaf, Leaves* leaves, std::vector<TreeNode>& nodes, bool variables) {
  const size_t index = nodes.size();
  TreeNode& node = nodes.emplace_back();
  Leaves children;
  int stop = 0;
  if (is_leaf) {
    PyRef answer = PyRef::steal(PyObject_CallOneArg(is_leaf, object));
    stop = answer ? PyObject_IsTrue(answer.get()) : -1;
    if (stop < 0) return false;
  }
  if (!stop && !expand(object, &node, &children, variables)) return false;
  if (node.kind == NodeKind::Leaf) {
    leaves->push_back(PyRef::borrow(object));
    return true;
  }
  const size_t before = leaves->size();
  if (!stack_for_a_level() || Py_EnterRecursiveCall(" in nested containers")) return false;
  bool done = true;
  for (size_t i = 0; done && i < children.size(); ++i)
    done = append_node(children[i].get(), is_leaf, leaves, nodes, variables);
  Py_LeaveRecursiveCall();
  nodes[index].n_leaves = static_cast<int32_t>(leaves->size() - before);
  nodes[index].n_nodes = static_cast<int32_t>(nodes.size() - index);
  return done;
}

// Borrows the leaves from `*leaf` on, and moves both positions on.
PyObject* build_node(const Tree& tree, size_t* position, PyObject* const** leaf) {
  const TreeNode& node = tree.node((*position)++);
  if (node.kind == NodeKind::Leaf) return Py_NewRef(*(*leaf)++);
  if (!stack_for_a_level()) return nullptr;
  Leaves owned;
  InlineVector<PyObject*, 8> children;
  for (int32_t i = 0; i < node.arity; ++i) {
    PyRef child = PyRef::steal(build_node(tree, position, leaf));
    if (!child) return nullptr;
    children.push_back(child.get());
    owned.push_back(std::move(child));
  }
  return build(node, children.data());
}

PyRef tuple_of(PyObject* const* items, Py_ssize_t count) {
  PyRef tuple = PyRef::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; tuple && i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(items[i]));
  return tuple;
}

PyObject* build_dict(const TreeNode& node, PyObject* const* children) {
  PyRef dict;
  if (node.kind == NodeKind::Dict) {
    dict = PyRef::steal(PyDict_New());
  } else if (node.kind == NodeKind::OrderedDict) {
    dict = PyRef::steal(PyObject_CallNoArgs(g_ordered_dict));
  } else {
    dict = PyRef::steal(PyObject_CallOneArg(g_default_dict, node.type.get()));
  }
  if (!dict) return nullptr;
  // First all keys in the order of insertion, then their values.
  for (Py_ssize_t i = 0; node.order && i < node.arity; ++i)
    if (PyObject_SetItem(dict.get(), PyTuple_GET_ITEM(node.order.get(), i), Py_None) < 0) return nullptr;
  for (Py_ssize_t i = 0; i < node.arity; ++i)
    if (PyObject_SetItem(dict.get(), PyTuple_GET_ITEM(node.data.get(), i), children[i]) < 0) return nullptr;
  return dict.release();
}

PyObject* build_registered(const TreeNode& node, PyObject* const* children) {
  PyObject* functions = registration(node.type.get());
  PyRef parts = tuple_of(children, node.arity);
  if (!parts) return nullptr;
  return PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(functions, 1), node.data.get(), parts.get(), nullptr);
}

}  // namespace

const TreeNode& Tree::leaf_node() noexcept {
  static const TreeNode leaf;
  return leaf;
}

bool stack_for_a_level() noexcept {
  return guarded([] {
           check_stack_left("tree");
           return 0;
         }) == 0;
}

bool expand(PyObject* object, TreeNode* node, Leaves* children, bool variables) {
  node->kind = kind_of(object);
  if (PyErr_Occurred()) return false;
  switch (node->kind) {
    case NodeKind::Leaf:
    case NodeKind::None:
      break;
    case NodeKind::List:
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i)
        children->push_back(PyRef::borrow(PyList_GET_ITEM(object, i)));
      break;
    case NodeKind::NamedTuple:
    case NodeKind::StructSequence:
      node->type = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
      [[fallthrough]];
    case NodeKind::Tuple:
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
        children->push_back(PyRef::borrow(PyTuple_GET_ITEM(object, i)));
      break;
    case NodeKind::Dict:
    case NodeKind::OrderedDict:
    case NodeKind::DefaultDict:
      if (!expand_dict(object, node, children)) return false;
      break;
    case NodeKind::Registered:
      if (!expand_registered(object, node, children, variables)) return false;
      break;
  }
  node->arity = static_cast<int32_t>(children->size());
  return true;
}

PyObject* build(const TreeNode& node, PyObject* const* children) {
  switch (node.kind) {
    case NodeKind::Leaf:
    case NodeKind::None:
      return Py_NewRef(Py_None);
    case NodeKind::Tuple:
      return tuple_of(children, node.arity).release();
    case NodeKind::List: {
      PyRef list = PyRef::steal(PyList_New(node.arity));
      for (Py_ssize_t i = 0; list && i < node.arity; ++i) PyList_SET_ITEM(list.get(), i, Py_NewRef(children[i]));
      return list.release();
    }
    case NodeKind::NamedTuple:
      return PyObject_Vectorcall(node.type.get(), children, static_cast<size_t>(node.arity), nullptr);
    case NodeKind::StructSequence: {
      PyRef parts = tuple_of(children, node.arity);
      return parts ? PyObject_CallOneArg(node.type.get(), parts.get()) : nullptr;
    }
    case NodeKind::Dict:
    case NodeKind::OrderedDict:
    case NodeKind::DefaultDict:
      return build_dict(node, children);
    case NodeKind::Registered:
      return build_registered(node, children);
  }
  return nullptr;
}

bool flatten_tree(PyObject* object, PyObject* is_leaf, Leaves* leaves, Tree* tree, bool variables) {
  if (is_tensor(object) && !is_leaf) [[likely]] {
    leaves->push_back(PyRef::borrow(object));
    return true;
  }
  std::vector<TreeNode> nodes;
  if (!append_node(object, is_leaf, leaves, nodes, variables)) return false;
  if (nodes[0].kind != NodeKind::Leaf) tree->nodes().swap(nodes);
  return true;
}

void keep_gradients_only(Tree& tree) noexcept {
  for (TreeNode& node : tree.nodes())
    if (node.gradient_data) node.data = std::move(node.gradient_data);
}

PyObject* unflatten_tree(const Tree& tree, PyObject* const* leaves) {
  if (tree.is_leaf()) return Py_NewRef(leaves[0]);
  size_t position = 0;
  return build_node(tree, &position, &leaves);
}

PyObject* register_tree_type(PyObject*, PyObject* args) {
  PyObject *type = nullptr, *flatten = nullptr, *unflatten = nullptr, *variables = Py_None;
  if (!PyArg_ParseTuple(args, "OOO|O:register", &type, &flatten, &unflatten, &variables)) return nullptr;
  if (!PyType_Check(type))
    return raise(BP_ERROR_TYPE, "tree.register: argument type: found %R, expected a class", type);
  PyObject* functions[] = {flatten, unflatten, variables};
  for (PyObject* function : functions) {
    if (!PyCallable_Check(function) && (function != variables || variables != Py_None))
      return raise(BP_ERROR_TYPE, "tree.register: argument %s: found %R, expected a function",
                   function == flatten     ? "flatten"
                   : function == unflatten ? "unflatten"
                                           : "variables",
                   function);
  }
  if (!find_collections() || (!g_registered && !(g_registered = PyDict_New()))) return nullptr;
  const auto* c_type = reinterpret_cast<PyTypeObject*>(type);
  const bool ours = c_type == &PyTuple_Type || c_type == &PyList_Type || c_type == &PyDict_Type ||
                    c_type == Py_TYPE(Py_None) || c_type == g_tensor_type || type == g_ordered_dict ||
                    type == g_default_dict;
  if (ours || PyDict_Contains(g_registered, type) == 1)
    return raise(BP_ERROR_VALUE, "tree.register: argument type: found %R, which is registered already", type);
  PyRef pair = PyRef::steal(PyTuple_Pack(3, flatten, unflatten, variables));
  if (!pair || PyDict_SetItem(g_registered, type, pair.get()) < 0) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace backplane::python
