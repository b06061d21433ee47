// Watches the Python code that this thread runs, instruction by instruction, and notes its reads and stores.
//
// It is a trace function of the interpreter: one that is there already (a debugger, a coverage tool, another recorder)
// is called as before. Code of this package is not watched, only the values passed to it. All functions need the
// interpreter lock.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bindings/guards/frame_stack.h"
#include "bindings/guards/reads.hpp"
#include "bindings/guards/recorder/instructions.hpp"

namespace backplane::python {

class Recorder {
 public:
  // From now on. `transform`: the caller in messages. `scope`: what writes the ops down. `alone`: no other thread
  // traces.
  Recorder(const char* transform, const TraceScope& scope, bool alone);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  Reads& reads() { return reads_; }
  const Reads& reads() const { return reads_; }
  // The traced tensor that stands for leaf `leaf` of the call, and the caller's own object.
  void stands_for(PyObject* traced, size_t leaf, PyObject* original);

  // An argument of the call, rebuilt with traced tensors.
  void hands_over(PyObject* argument, const std::string& path);

  // Notes the object to which the called function is bound.
  void note_function(PyObject* function);

  void stop();
  // False: a Python error, of what the code did that no graph can repeat.
  bool close(std::span<const Tensor> used, std::span<const Tensor> inputs, bool guards_variables, Guards* guards,
             std::string* unkept);
  // While it lives, nothing is noted on this thread.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;

   private:
    Recorder* outermost_;
    Py_tracefunc function_ = nullptr;
    PyRef object_;
  };
  // When the function has returned: tells the trace of the tensors that the run made and the trace did not.
  void note_made_tensors();
  // Did the run make the tensor, and change it in place? Its new value comes when the graph runs.
  bool has_changed(PyObject* made) const { return changed_.count(handle_of(made)) > 0; }
  // After `close`: does each call need a value of its own in place of this result?
  bool is_new(PyObject* value) const { return reads_.is_new_value(made_, value); }

 private:
  struct Code {
    PyRef object;
    bool is_watched = false, is_library = false, is_opaque = false, is_package = false;
    std::unordered_map<int, Instruction> instructions;
    PyRef depths;  // of the stack, by offset; none: the frame knows
  };
  struct StandIn {
    PyRef traced, original;
    size_t leaf;
    Py_ssize_t count_before;  // of references to `traced`
  };
  static int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* argument);
  int forward(PyFrameObject* frame, int what, PyObject* argument) const;
  Code& code_of(PyFrameObject* frame);
  static int depth_of(const Code& code, int offset);
  void enter_or_leave(PyFrameObject* frame, bool enters);
  void enter(PyFrameObject* frame);
  void note(PyFrameObject* frame);
  void note(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack);
  // False for other instructions.
  bool note_read(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack);
  bool note_store(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack);
  void note_operation(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack);
  void note_call(PyFrameObject* frame, const FrameStack& stack, const Instruction& instruction);
  void note_call_of(PyObject* callable, std::vector<PyObject*> arguments, PyObject* keywords, const Reads::Storing& at);
  void note_tensor_attribute(PyObject* tensor, PyObject* name, const Reads::Storing& at);
  // ---- recorder_arrays.cpp
  bool is_wide_array(PyObject* traced) const;
  void note_array_item(PyObject* traced, PyObject* key, const Reads::Storing& at);
  void note_array_call(PyObject* callable, std::span<PyObject* const> arguments, bool is_method,
                       const Reads::Storing& at);
  void note_sizes(const Instruction& instruction, const FrameStack& stack) const;
  // ---- recorder_numbers.cpp
  void put_root(PyFrameObject* frame, Code& code, int offset);
  void note_numbers(PyFrameObject* frame, const Code& code, const Instruction& instruction, const FrameStack& stack);
  void note_number_calls(PyFrameObject* frame, const Instruction& instruction, const FrameStack& stack);
  bool returns_to_code_of_c(PyFrameObject* frame, const Code& code);
  void expect_root(PyFrameObject* frame, Action action);
  void note_class_pattern(const FrameStack& stack, int count);
  void note_truth(PyObject* object);
  void note_special_methods(const Instruction& instruction, const FrameStack& stack);
  std::vector<MemorySpan> changed_memory() const;
  void note_super(PyObject* callable, PyObject* type, PyObject* object, PyObject* name, const Reads::Storing& at);
  void note_text(PyObject* object, const Reads::Storing& at);
  void note_identity(PyObject* a, PyObject* b, const Reads::Storing& at);
  static PyObject* before_collection(PyObject* self, PyObject* args);
  static void watch_collections();
  Objects made_objects() const;
  bool is_made_now(PyObject* object);
  bool has_imported() const;

  const StandIn* stand_in_of(PyObject* traced) const;

  const char* transform_;
  const TraceScope& scope_;
  Reads reads_;
  std::unordered_map<PyObject*, Code> codes_;
  std::set<std::pair<PyObject*, PyTypeObject*>> entered_;  // functions, by the class of their first argument
  std::vector<StandIn> stand_ins_;
  std::vector<Guards::Distinct> distinct_;
  Objects before_, made_, handed_;
  std::unordered_set<const bp_tensor*> changed_;  // tensors that the run made
  Objects moved_on_;  // made by the run, and seen by a collection meanwhile; some of them live no more
  bool has_paused_ = false;
  std::vector<Guards::LeafAttribute> leaf_attributes_;
  PyRef keywords_;  // names of the call that comes next, where an instruction of its own gives them
  PyFrameObject* makes_iterator_ = nullptr;  // its latest instruction did; compared, not followed
  struct {
    PyFrameObject* frame = nullptr;  // compared, not followed
    Reads::Loaded loaded;
    int waits = 0;  // so many of its instructions come before
  } expected_;      // what its latest instruction loads, and the root that takes the place
  std::unordered_map<PyFrameObject*, bool> calls_c_;  // is the latest callable one that may read digits?
  Py_ssize_t n_modules_ = 0;
  int opaque_ = 0;                     // frames of opaque code that are open
  PyRef callbacks_;                    // of the collector, from before
  PyFrameObject* callback_ = nullptr;  // the open frame of one; compared, not followed
  PyRef capsule_;
  Py_tracefunc outer_ = nullptr;
  PyRef outer_object_;
  bool has_entered_ = false, has_seen_ = false;  // code that is watched; an instruction
  bool had_collector_ = false, is_running_ = false;
  bool is_blind_ = false;  // nothing is seen, as inside a debugger's own call, or another trace function was set
  Recorder* outer_recorder_ = nullptr;
};

// forbid_keeping(tensors): the traced function may not store any of these tensors.
PyObject* forbid_keeping(PyObject* module, PyObject* tensors);

// unguarded(fun, *args, **kwargs): calls fun; its reads are not guarded, and its stores are not repeated.
PyObject* unguarded(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords);

}  // namespace backplane::python
