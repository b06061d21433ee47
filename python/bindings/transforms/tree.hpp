// Nested containers: taking one apart into leaves and a structure, and putting it together again.
//
// Containers are tuple, list, dict (leaves in the order of sorted keys, or of insertion where these cannot be sorted;
// rebuilt in the order of insertion), OrderedDict, defaultdict, named tuples, the named results of ops, None (a
// container of nothing), and registered types. Everything else is a leaf, subclasses of containers too. A structure
// owns the objects that it names; all functions need the interpreter lock and, where they fail, set a Python error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"
#include "bindings/transforms/inline_vector.hpp"

namespace backplane::python {

using Leaves = InlineVector<PyRef, 8>;

enum class NodeKind : uint8_t {
  Leaf,
  None,
  Tuple,
  List,
  Dict,
  OrderedDict,
  DefaultDict,
  NamedTuple,
  StructSequence,
  Registered
};

struct TreeNode {
  NodeKind kind = NodeKind::Leaf;
  int32_t arity = 0;
  int32_t n_leaves = 1;  // below it; 1 for a leaf
  int32_t n_nodes = 1;   // with itself
  PyRef type;            // the class of named tuples, named results and registered types; a defaultdict's factory
  PyRef data;            // keys in the order of the leaves; what a registered type keeps beside its children
  PyRef order;           // a dict's keys in the order of insertion, where that is another
  PyRef gradient_data;   // of the variables of a registered type: `data` for a container of their gradients
};

// A structure: its nodes, parents before children. A single leaf has no nodes, so that it costs nothing.
class Tree {
 public:
  const TreeNode& node(size_t i) const noexcept { return nodes_.empty() ? leaf_node() : nodes_[i]; }
  bool is_leaf() const noexcept { return nodes_.empty(); }
  size_t n_leaves() const noexcept { return static_cast<size_t>(node(0).n_leaves); }
  std::vector<TreeNode>& nodes() noexcept { return nodes_; }

 private:
  static const TreeNode& leaf_node() noexcept;
  std::vector<TreeNode> nodes_;
};

// ---- tree.cpp ------------------------------------------------------------------------------------------------------

// One level: what `object` is, and its children as new references.
// Is there stack for one level more of a container? False: with a Python error; Python's own limit may be out of the
// way.
bool stack_for_a_level() noexcept;

// `variables`: of registered types that tell them apart, only the children that are differentiated.
bool expand(PyObject* object, TreeNode* node, Leaves* children, bool variables = false);
// The container of a node from children, whose references stay the caller's.
PyObject* build(const TreeNode& node, PyObject* const* children);

// Appends the leaves of `object` and writes its structure. `is_leaf`: a callable that may stop the descent, or nullptr.
bool flatten_tree(PyObject* object, PyObject* is_leaf, Leaves* leaves, Tree* tree, bool variables = false);
// Turns a tree of variables into the tree of their gradients, which holds no constants.
void keep_gradients_only(Tree& tree) noexcept;
inline bool flatten_tree(PyObject* object, Leaves* leaves, Tree* tree) {
  return flatten_tree(object, nullptr, leaves, tree);
}
// Takes the tree's number of leaves from `leaves`, borrowed.
PyObject* unflatten_tree(const Tree& tree, PyObject* const* leaves);

// register(type, flatten, unflatten, variables).
PyObject* register_tree_type(PyObject* module, PyObject* args);

// ---- tree_match.cpp ------------------------------------------------------------------------------------------------

// 1 where the structures are equal; dicts are equal whatever the order of insertion. -1: a comparison raised.
int same_tree(const Tree& a, const Tree& b);
// The same of dicts' orders of insertion, of equal structures.
int same_order(const Tree& a, const Tree& b);

// The place of a leaf, behind the name of the whole: "args[0]['w']".
std::string leaf_path(const Tree& tree, size_t leaf, std::string root);

// What two trees are called in an error: "vmap", "in_axes", "args".
struct MatchNames {
  const char* caller;
  std::string first;
  std::string second;
  const char* fix = nullptr;  // ends the sentence
};

// Walks `prefix` along `full`: `visit(element, first leaf, number of leaves)` for each element of the prefix that
// `stops` accepts or that is a leaf.
bool walk_prefix(PyObject* prefix, const Tree& full, bool (*stops)(PyObject*), const MatchNames& names,
                 const std::function<bool(PyObject* element, size_t first, size_t count)>& visit);

// The parts of `object` at the tree's leaves. It must have the tree's structure, and may go deeper.
bool flatten_up_to(const Tree& tree, PyObject* object, const MatchNames& names, Leaves* parts);

// "*", "(*, {'w': *})": the structure as text; nullptr with an error.
PyObject* tree_text(const Tree& tree);

// ---- tree_type.cpp -------------------------------------------------------------------------------------------------

// The Structure type and the functions tree_* of the module.
bool add_tree(PyObject* module);

}  // namespace backplane::python
