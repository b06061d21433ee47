// What a traced function stores outside of itself: attributes, entries, variables, changes of containers.
//
// The function ran once, with all effects. A call that replays the graph repeats them, in order. If the trace
// fails, they are undone. Values come from the trace, and the guards keep them valid: each replay stores a
// new list or dict of its own (renewal.hpp), a tensor of the trace has no value and is refused. All functions need the
// interpreter lock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

class Effects {
 public:
  struct Effect {
    PyRef holder;    // that changes
    PyRef function;  // called with `arguments`; none: the cell `holder` is set to their last one, or emptied
    PyRef arguments;
    PyRef keywords;            // a dict, or none
    PyRef had;                 // what stood there before, where that is one object
    std::string place;         // "self.t"
    std::string line;          // that did it: "file:line"
    bool by_library = false;   // the code that did it is not the user's
    std::vector<bool> is_new;  // per argument: made by the trace, so each replay needs one of its own
    // update(holder, **keywords) becomes update(holder, keywords), whose arguments each have a mark.
    void take_keywords();
  };
  // The earlier value, to be restored.
  struct Before {
    PyRef holder;
    PyRef key;    // of an attribute or an entry; none: a cell, or all of a container
    PyRef value;  // none: there was none
    enum Of : uint8_t { kAttribute, kEntry, kCell, kContent, kContext } of;
  };

  void add(Effect effect) {
    effect.take_keywords();
    effects_.push_back(std::move(effect));
  }
  void add(Before before) { before_.push_back(std::move(before)); }
  std::vector<Effect>& all() { return effects_; }
  const std::vector<Effect>& all() const { return effects_; }
  bool stores(PyObject* object, const std::function<bool(PyObject*)>& is_made) const;
  const std::vector<Before>& befores() const { return before_; }  // in the order of the changes
  void forget_befores() { before_.clear(); }                      // they hold what stood there
  // Restores the earlier contents. Keeps a Python error.
  void take_back();
  // The same where a tensor of the trace was stored, which has no value once that has ended.
  void take_back_tensors();

  // Traced numbers that attributes, entries and variables hold become plain ones. False: others are in containers.
  bool settle_numbers();

  // What each replay needs anew: appended to the list, in order.
  void add_new(PyObject* list) const;
  // Once more. `number`: what a size or traced number that was stored (bindings/sizes) is now. `anew`: in place of what
  // add_new appended; nullptr: that itself. False: a Python error.
  bool replay(const std::function<PyRef(PyObject*)>& number, PyObject* anew) const;
  // Does another run of the same function store the same? `same`: are two sizes?
  bool are_like(const Effects& other, const std::function<bool(PyObject*, PyObject*)>& same) const;
  // Sizes that are stored as they are, or in a tuple. False: others are, in objects that lead to them.
  bool find_sizes(std::vector<PyObject*>* sizes) const;
  // The same for traced numbers.
  bool find_numbers(std::vector<PyObject*>* numbers) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  std::vector<Effect> effects_;
  std::vector<Before> before_;
};

}  // namespace backplane::python
