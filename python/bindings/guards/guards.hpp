// What a traced function read, and whether it would read the same again.
//
// A guard holds on to an object, knows what the function read of it, and asks at a call for the same: identity of
// objects, equality of numbers and strings, form (or identity) of tensors. Since the function's run depends on nothing
// but its arguments and its reads, a call that passes all guards does the same as the trace. All functions need the
// interpreter lock.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backplane/graph.hpp"
#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Numbers, strings and the like, which are compared by value.
bool is_plain_value(PyObject* object) noexcept;
// The same object, or equal plain values (also in tuples).
bool same_value(PyObject* own, PyObject* found) noexcept;
// The same of lists, dicts, slices and ranges that are made anew at each read, of such values.
bool same_contents(PyObject* own, PyObject* found) noexcept;

// A tensor that was read somewhere: which one it has to be, or how it has to look.
struct TensorGuard {
  const bp_tensor* tensor = nullptr;  // nullptr: any of the form
  Tensor held;                        // that tensor: no other one comes to lie where it does
  std::optional<TensorRead> read;     // its values were read
  std::vector<std::byte> bytes;       // these values, where another library may write them
  bool requires_grad = false;
  bp_dtype dtype{};
  bp_device device{};
  std::vector<int64_t> shape;

  bool accepts(const Tensor& found) const;
  const char* difference(const Tensor& found) const;
  std::string text() const;
};

// The elements of a tensor in host memory that other libraries may write without a new version; empty: too many to look
// at, or elsewhere.
std::vector<std::byte> shared_bytes(const Tensor& tensor);

// Something that was read of an object.
struct GuardItem {
  PyRef key;    // a name, a key or a position
  PyRef value;  // none: it was absent, or a tensor
  std::optional<TensorGuard> tensor;
  // A number that the graph takes from each call: `value` says its type, and this is its step (number_log.hpp).
  std::optional<uint32_t> step = std::nullopt;
};

struct Guard {
  enum Kind : uint8_t {
    kEntries,     // of a dict, by key
    kAttributes,  // entries of the dict of `owner`'s attributes
    kClass,       // what a class and its bases say under a name, and its special methods
    kType,        // the class of an object
    kGeneric,     // attributes that only the object itself knows
    kElements,    // of a list or tuple by position
    kSubscripts,  // of anything else that is subscripted
    kCell,        // the variable of an enclosing function
    kContent,     // all elements of a container
    kBytes,       // all bytes of a buffer
    kFunction,    // code, defaults and keyword defaults
    kContext,     // the value of a ContextVar
    kResult,      // what a function of C gives, by its arguments
    kCache,       // how many entries functools.lru_cache has made, and holds
  } kind;
  PyRef holder;
  PyRef owner;       // kAttributes
  PyRef owner_type;  // its class
  std::string path;
  bool of_argument = false;  // reached from an argument, not from a variable
  bool of_variable = false;  // kEntries: of a module or of builtins; path: "global "
  std::vector<GuardItem> items;
  PyRef content;  // kContent, kBytes: a copy; kFunction: a tuple; kType: the class; kClass: class_protocol, or none
  // kClass: the interpreter's number of the class's state in which all of this was found to hold; 0: none is known.
  mutable unsigned version = 0;
};

class Guards {
 public:
  void add(Guard guard) { guards_.push_back(std::move(guard)); }
  // Of an argument, by the number of its leaf: its attribute must be this.
  struct LeafAttribute {
    size_t leaf;
    PyRef name, value;
  };
  void add(LeafAttribute attribute) { leaf_attributes_.push_back(std::move(attribute)); }
  // Two arguments, or an argument and another object, that must not be the same object.
  struct Distinct {
    size_t leaf;
    std::optional<size_t> other_leaf;
    PyRef other;
  };
  void add(Distinct distinct) { distinct_.push_back(std::move(distinct)); }
  // What another run of the same function read, too.
  void merge(Guards other);

  // 1: everything is as it was read. 0: not, and `why` says the first difference, where it is not nullptr. -1: a
  // Python error. `numbers`: by step, those that the graph takes from the call.
  int fit(std::string* why, std::vector<PyRef>* numbers = nullptr) const;
  // Adds the places of numbers that are others than they were.
  void find_changed_numbers(std::set<std::string>* places) const;
  // The same of arguments' identities. `leaf(i)`: the object that is leaf i now.
  template <class Leaf>
  bool fit_leaves(Leaf leaf, std::string* why) const {
    for (const Distinct& d : distinct_) {
      if (leaf(d.leaf) != (d.other_leaf ? leaf(*d.other_leaf) : d.other.get())) continue;
      if (why) *why = "two tensors that the function compares by identity are the same object now";
      return false;
    }
    for (const LeafAttribute& a : leaf_attributes_)
      if (!fits_leaf(leaf(a.leaf), a, why)) return false;
    return true;
  }
  int traverse(visitproc visit, void* arg) const;

 private:
  static bool fits_leaf(PyObject* leaf, const LeafAttribute& attribute, std::string* why);
  std::vector<Guard> guards_;
  std::vector<Distinct> distinct_;
  std::vector<LeafAttribute> leaf_attributes_;
};

// A copy of a container's elements, as a list (of a dict: keys, then values); of a buffer its bytes; of a function its
// code, defaults and keyword defaults. Empty for other objects.
PyRef copied_content(PyObject* container);
PyRef copied_bytes(PyObject* buffer);
PyRef copied_function(PyObject* function);
// How many results a function of functools.lru_cache has computed, and how many it keeps.
PyRef cache_counts(PyObject* cached_function);
// Does the object still have the contents that it had when it was read?
bool still_holds(const Guard& guard);
// Containers, which kContent guards check.
bool has_content(PyObject* object) noexcept;
// Buffers, which kBytes guards check: bytearray, array.array, memoryview, NumPy's arrays.
bool has_bytes(PyObject* object) noexcept;

// "cfg.scale", "cfg['scale']", "global scale".
std::string place_of(const Guard& guard, PyObject* key);

// A key as it stands between brackets.
std::string text_of_key(PyObject* key);

}  // namespace backplane::python
