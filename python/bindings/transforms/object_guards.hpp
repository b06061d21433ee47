// What a traced function read of objects that are static arguments, and of variables: the graph holds it as it was, so
// another value makes another kind of call.
//
// Looked at are attributes whose names stand in the code that ran while the function was traced, of the objects, of
// what such attributes lead to (dicts, lists, tuples, other objects), and of their classes; globals and variables of
// enclosing functions that this code reads, and what they lead to. What the trace itself
// changed is a side effect of the function and no part of it, unless it leaves a tensor of the trace there, which is an
// error. All functions need the interpreter lock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backplane/graph.hpp"
#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/transforms/names_of_run.hpp"
#include "bindings/transforms/state_before.hpp"

namespace backplane::python {

class ObjectGuards {
 public:
  // Before the trace: an object that is guarded after it, and what messages call it.
  void add(PyObject* object, std::string name);
  bool is_empty() const { return roots_.empty() && watches_.empty(); }
  StateBefore& state() { return state_; }
  const StateBefore& state() const { return state_; }
  // After it. `guards_variables`: globals and cells are guarded too. `used`: tensors that the graph holds; `reads`:
  // those whose values the function read, which must not change; of others the form alone counts. False: a Python
  // error, as where the trace, `transform`'s, put a tensor of its own somewhere: then what was there is there again.
  bool close(const NamesOfRun& names, bool guards_variables, std::span<const Tensor> used,
             std::span<const TensorRead> reads, const char* transform);
  // As TracedCall::fits.
  int fit(std::string* why) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Root {
    PyRef object, before;  // snapshot_of(object)
    std::string name;
  };
  struct Form {
    const bp_tensor* tensor;  // nullptr: any of the form
    std::optional<TensorRead> read;
    bool requires_grad;
    bp_dtype dtype;
    bp_device device;
    std::vector<int64_t> shape;
    bool is_of(const Tensor& found) const;
    const char* other(const Tensor& found) const;  // how one that is not of it differs
    std::string text() const;
  };
  struct Item {
    PyRef key, value;  // no value: there is none, or it is a tensor
    std::optional<Form> tensor;
  };
  // Entries of a dict or a list, attributes in an object's __slots__ or of a class, a variable; all that a set, a
  // deque, a long dict or list, or a buffer holds.
  struct Watch {
    enum Kind { kDict, kList, kSlots, kType, kGlobal, kCell, kWhole, kBuffer } kind;
    PyRef holder;
    Py_ssize_t size;  // -1: entries that are none of the items do not count
    std::string path;
    std::vector<Item> items;
    PyRef whole;  // a copy
  };
  class Walk;
  int fit(const Watch& watch, std::string* why) const;
  int fit(const Watch& watch, const Item& item, std::string* why) const;
  static int same_order(const Watch& watch);

  std::vector<Root> roots_;
  StateBefore state_;
  std::vector<Watch> watches_;
};

}  // namespace backplane::python
