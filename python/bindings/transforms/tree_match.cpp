// Comparing structures with each other and with containers; names of leaves for messages.
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/tree.hpp"

namespace backplane::python {
namespace {

bool is_dict(NodeKind kind) {
  return kind == NodeKind::Dict || kind == NodeKind::OrderedDict || kind == NodeKind::DefaultDict;
}

int same_objects(PyObject* a, PyObject* b) { return a == b ? 1 : a && b ? PyObject_RichCompareBool(a, b, Py_EQ) : 0; }

// Are two nodes the same, apart from their children?
int same_node(const TreeNode& a, const TreeNode& b) {
  if (a.kind != b.kind || a.arity != b.arity) return 0;
  if (const int same = same_objects(a.type.get(), b.type.get()); same != 1) return same;
  return same_objects(a.data.get(), b.data.get());
}

// The suffix of a container's name for its child: "[0]", "['w']", ".field".
std::string child_suffix(const TreeNode& node, int32_t child) {
  if (is_dict(node.kind)) return "[" + spelled(PyTuple_GET_ITEM(node.data.get(), child), PyObject_Repr) + "]";
  if (node.kind == NodeKind::NamedTuple) {
    PyRef fields = PyRef::steal(PyObject_GetAttrString(node.type.get(), "_fields"));
    if (fields && PyTuple_Check(fields.get()) && child < PyTuple_GET_SIZE(fields.get()))
      return "." + spelled(PyTuple_GET_ITEM(fields.get(), child), PyObject_Str);
    forget_error();
  }
  return "[" + std::to_string(child) + "]";
}

std::string class_name(PyObject* type) {
  return type && PyType_Check(type) ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "?";
}

// A description of a node: "a tuple of 2", "a dict with the keys ('b', 'w')".
std::string describe(const TreeNode& node) {
  const std::string count = std::to_string(node.arity);
  switch (node.kind) {
    case NodeKind::Leaf:
      return "a leaf";
    case NodeKind::None:
      return "None";
    case NodeKind::Tuple:
      return "a tuple of " + count;
    case NodeKind::List:
      return "a list of " + count;
    case NodeKind::Dict:
    case NodeKind::OrderedDict:
    case NodeKind::DefaultDict:
      return std::string(node.kind == NodeKind::Dict          ? "a dict"
                         : node.kind == NodeKind::OrderedDict ? "an OrderedDict"
                                                              : "a defaultdict") +
             " with the keys " + spelled(node.data.get(), PyObject_Repr);
    default:
      return "a " + class_name(node.type.get()) + " of " + count;
  }
}

std::string describe_object(PyObject* object, const TreeNode& node) {
  if (node.kind != NodeKind::Leaf) return describe(node);
  PyRef kind = found_kind(object);
  return kind ? spelled(kind.get(), PyObject_Str) : "?";
}

bool raise_mismatch(const MatchNames& names, const std::string& path, const std::string& found,
                    const std::string& expected) {
  raise_text(BP_ERROR_VALUE,
             (std::string(names.caller) + ": " + names.first + path + ": found " + found + ", expected " + expected +
              " as in " + names.second + path + (names.fix ? std::string("; ") + names.fix : std::string()))
                 .c_str());
  return false;
}

struct PrefixWalk {
  const Tree& full;
  bool (*stops)(PyObject*);
  const MatchNames& names;
  const std::function<bool(PyObject*, size_t, size_t)>& visit;
  size_t leaf = 0;

  bool walk(PyObject* prefix, size_t position, const std::string& path) {
    const TreeNode& node = full.node(position);
    const auto count = static_cast<size_t>(node.n_leaves);
    TreeNode found;
    Leaves children;
    if (!stack_for_a_level() || (!stops(prefix) && !expand(prefix, &found, &children))) return false;
    if (found.kind == NodeKind::Leaf) {
      const size_t first = leaf;
      leaf += count;
      return visit(prefix, first, count);
    }
    const int same = same_node(found, node);
    if (same < 0) return false;
    if (!same) return raise_mismatch(names, path, describe_object(prefix, found), describe(node));
    size_t child = position + 1;
    for (int32_t i = 0; i < node.arity; ++i) {
      if (!walk(children[static_cast<size_t>(i)].get(), child, path + child_suffix(node, i))) return false;
      child += static_cast<size_t>(full.node(child).n_nodes);
    }
    return true;
  }
};

bool collect_parts(const Tree& tree, size_t position, PyObject* object, const MatchNames& names,
                   const std::string& path, Leaves* parts) {
  const TreeNode& node = tree.node(position);
  if (node.kind == NodeKind::Leaf) {
    parts->push_back(PyRef::borrow(object));
    return true;
  }
  TreeNode found;
  Leaves children;
  const bool variables = static_cast<bool>(node.gradient_data);
  if (!stack_for_a_level() || !expand(object, &found, &children, variables)) return false;
  const int same = same_node(found, node);
  if (same < 0) return false;
  if (!same) return raise_mismatch(names, path, describe_object(object, found), describe(node));
  size_t child = position + 1;
  for (int32_t i = 0; i < node.arity; ++i) {
    PyObject* part = children[static_cast<size_t>(i)].get();
    if (!collect_parts(tree, child, part, names, path + child_suffix(node, i), parts)) return false;
    child += static_cast<size_t>(tree.node(child).n_nodes);
  }
  return true;
}

std::string node_text(const Tree& tree, size_t* position) {
  check_stack_left("tree");
  const TreeNode& node = tree.node((*position)++);
  if (node.kind == NodeKind::Leaf) return "*";
  if (node.kind == NodeKind::None) return "None";
  std::string text;
  for (int32_t i = 0; i < node.arity; ++i) {
    if (i > 0) text += ", ";
    if (is_dict(node.kind)) text += spelled(PyTuple_GET_ITEM(node.data.get(), i), PyObject_Repr) + ": ";
    text += node_text(tree, position);
  }
  switch (node.kind) {
    case NodeKind::Tuple:
      return "(" + text + (node.arity == 1 ? ",)" : ")");
    case NodeKind::List:
      return "[" + text + "]";
    case NodeKind::Dict:
      return "{" + text + "}";
    case NodeKind::OrderedDict:
      return "OrderedDict({" + text + "})";
    case NodeKind::DefaultDict:
      return "defaultdict({" + text + "})";
    default:
      return class_name(node.type.get()) + "(" + text + ")";
  }
}

}  // namespace

int same_tree(const Tree& a, const Tree& b) {
  const auto count = static_cast<size_t>(a.node(0).n_nodes);
  if (count != static_cast<size_t>(b.node(0).n_nodes)) return 0;
  for (size_t i = 0; i < count; ++i)
    if (const int same = same_node(a.node(i), b.node(i)); same != 1) return same;
  return 1;
}

int same_order(const Tree& a, const Tree& b) {
  for (size_t i = 0, count = static_cast<size_t>(a.node(0).n_nodes); i < count; ++i)
    if (const int same = same_objects(a.node(i).order.get(), b.node(i).order.get()); same != 1) return same;
  return 1;
}

std::string leaf_path(const Tree& tree, size_t leaf, std::string root) {
  size_t position = 0;
  while (tree.node(position).kind != NodeKind::Leaf) {
    const TreeNode& node = tree.node(position++);
    int32_t i = 0;
    for (; leaf >= static_cast<size_t>(tree.node(position).n_leaves); ++i) {
      leaf -= static_cast<size_t>(tree.node(position).n_leaves);
      position += static_cast<size_t>(tree.node(position).n_nodes);
    }
    root += child_suffix(node, i);
  }
  return root;
}

bool walk_prefix(PyObject* prefix, const Tree& full, bool (*stops)(PyObject*), const MatchNames& names,
                 const std::function<bool(PyObject*, size_t, size_t)>& visit) {
  return PrefixWalk{full, stops, names, visit}.walk(prefix, 0, "");
}

bool flatten_up_to(const Tree& tree, PyObject* object, const MatchNames& names, Leaves* parts) {
  return collect_parts(tree, 0, object, names, "", parts);
}

PyObject* tree_text(const Tree& tree) {
  return guarded([&] {
    size_t position = 0;
    return PyUnicode_FromString(node_text(tree, &position).c_str());
  });
}

}  // namespace backplane::python
