// A call of a user's function as a graph: how its arguments are taken apart, which calls are like the one that was
// traced, and how a result is put together. What `make_graph` gives and what `compile` keeps.
//
// All functions need the interpreter lock, and set a Python error where they fail.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "backplane/autocast.hpp"
#include "backplane/graph.hpp"
#include "bindings/guards/recorder/recorder.hpp"
#include "bindings/guards/renewal.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/transforms/transform_values.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {

class DynamicSpec;  // dynamic_spec.hpp

// The arguments of one call. Tensors and other libraries' arrays are inputs; every other leaf is static.
class CallInputs {
 public:
  explicit CallInputs(const TransformCall& call) : call(call) {}
  bool read();
  // Is there none that a transform or the tape follows?
  bool are_plain() const;
  uint64_t bytes() const noexcept;

  const TransformCall& call;
  InputTrees trees;
  InlineVector<Tensor, 8> tensors;
  InlineVector<size_t, 8> places;  // of the tensors, among trees.leaves
  // What the function computes of the call's numbers, by step of the program (bindings/sizes/number_log.hpp) of the
  // traced call that was asked last whether these inputs fit.
  mutable std::vector<PyRef> numbers;
  mutable std::vector<Tensor> number_tensors;  // those of them that the graph takes
  // What the function makes anew at each call and stores or returns (guards/renewal.hpp), as this call has it: a list.
  mutable PyRef anew;
};

// How the graph of a call is to be run.
struct RunOptions {
  std::vector<Py_ssize_t> donated;  // positions of arguments whose tensors a run may overwrite
  std::optional<uint64_t> memory_budget;
  bool takes_back = false;  // of an error of the function's own, all that it stored is taken back too
  const std::set<std::string>* numbers = nullptr;  // places whose numbers change, and are followed; nullptr: none are
  bool guards_variables = false;  // another value of a variable that the function reads makes another kind of call
};

class TracedCall {
 public:
  // Runs the call's function with traced tensors in place of its own. nullptr: a Python error.
  // `dynamic`: names of sizes for which the graph must be valid at any value; the function then runs about ten times.
  // `is_of_this_size`: true where it was traced, but no graph holds for others.
  static std::shared_ptr<TracedCall> trace(const CallInputs& inputs, const RunOptions& options = {},
                                           const DynamicSpec* dynamic = nullptr, bool* is_of_this_size = nullptr);
  // Of these sizes alone, with notes of what the function makes of them.
  static std::shared_ptr<TracedCall> trace_at_sizes(const CallInputs& inputs, const RunOptions& options);
  size_t trace_count() const noexcept { return n_traces_; }

  const Graph& graph() const noexcept { return graph_; }
  // The same kind of call with another graph, of the same inputs, results and draws.
  std::shared_ptr<const TracedCall> with_graph(Graph graph) const;
  // 1: a replay with these inputs does what the function would do. 0: not, and `why` says the first reason, where it is
  // not nullptr. -1: a comparison of static arguments raised.
  int fits(const CallInputs& inputs, std::string* why) const;
  // Adds the places of numbers that differ from the trace's.
  void find_changed_numbers(const CallInputs& inputs, std::set<std::string>* places) const;
  // Which tensors that a run changes in place share memory, so that it would do something else; empty: none do.
  std::string shared_memory(const CallInputs& inputs) const {
    return graph_.shared_memory({inputs.tensors.data(), inputs.tensors.size()});
  }
  PyObject* run(const CallInputs& inputs) const;
  // What the function stored outside of itself: again, for a call that did not run it (false: a Python error); taken
  // back, for a call that will run it once more; or never to be taken back.
  bool repeat_effects(const CallInputs& inputs) const;
  void take_back_effects() { effects_.take_back(); }
  void settle_effects() { effects_.forget_befores(); }
  // Was a number found where it cannot be followed? Then the trace cannot be used.
  bool hides_numbers() const noexcept { return hides_numbers_; }
  const std::string& why_unkept() const noexcept { return unkept_; }
  // For a graph of any size: an operation of the function whose result at other sizes is unknown, so the
  // function is run at each one before the graph is. Empty: nothing.
  const std::string& why_run_at_sizes() const noexcept { return unknown_; }
  bool has_to_run_at(const CallInputs& inputs) const;
  // `own`: of these inputs alone. True: the graph is right at their sizes, from now on without another run.
  bool accept_sizes(const CallInputs& inputs, TracedCall& own);
  // Where a transform is active or the tape follows: its derivatives and batches are graphs, made when first needed.
  PyObject* run_transformed(const CallInputs& inputs);
  // Why that would not be what the function does, and it has to be called itself; empty: it is.
  std::string transform_refusal() const;
  // Does the function use a tensor of a transform from outside, which ends with that?
  bool uses_transformed() const;
  // Does the tape follow a tensor that the function uses from outside?
  bool wants_tape() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Argument {
    Tree tree;
    size_t n_leaves;
    PyRef keyword;  // empty: by position
    std::string name;
  };
  struct Input {
    bp_dtype dtype;
    bp_device device;
    std::vector<int64_t> shape;
    std::vector<bool> dynamic;  // per axis; empty: none is
  };
  using Shapes = std::vector<std::vector<int64_t>>;  // of the inputs
  static std::shared_ptr<TracedCall> trace_once(const CallInputs& inputs, const RunOptions& options,
                                                const Shapes& shapes, bool notes_sizes);
  static std::vector<bool> dynamic_reads(const CallInputs& inputs, const RunOptions& options, Shapes shapes,
                                         const std::vector<DynamicSize>& sizes, std::span<const SizeUse> first);
  bool make_dynamic(const CallInputs& inputs, const RunOptions& options, const std::vector<DynamicSize>& sizes);
  std::string other_result(const TracedCall& other) const;
  bool check_uses(const CallInputs& inputs, const RunOptions& options, const std::vector<DynamicSize>& sizes);
  bool find_stored_sizes(const SizeLog& log);
  bool find_numbers(NumberLog& log);
  void keep_new(const CallInputs& inputs, const Recorder& recorder);
  bool make_anew(const CallInputs& inputs) const;
  void enter_numbers(NumberLog& log, InlineVector<PyObject*, 8>& leaves);
  // Of the values of the roots: the other numbers, and the tensors.
  bool same_numbers(const CallInputs& inputs, std::string* why) const;
  std::vector<int64_t> sizes_of(const CallInputs& inputs) const;
  PyRef number_of(uint32_t use, const CallInputs& inputs) const;
  void keep_inputs(const CallInputs& inputs);
  bool keep_result(PyObject* returned, const Leaves& entered, const SizeLog* log, const NumberLog* numbers,
                   bool all_are_outputs, const Recorder& recorder, std::vector<Tensor>* results, const char* name);
  bool left_settings(bool records) const;
  bool same_settings(std::string* why) const;
  void note_losable();
  bool has_constants(std::string* why) const;
  bool returns_input(size_t input) const;
  bool find_generators(TraceScope& scope, class GeneratorNotes& notes, const char* name);
  PyObject* call_traced(const CallInputs& inputs, CallArray& array, Recorder& recorder, SizeLog* log,
                        NumberLog* numbers);
  std::string leaf_name(size_t leaf) const;
  GraphOptions graph_options(const CallInputs& inputs, const RunOptions& options, size_t n_numbers = 0) const;
  int same_arguments(const CallInputs& inputs, std::string* why) const;
  bool same_tensors(const CallInputs& inputs, std::string* why) const;
  bool same_sizes(const CallInputs& inputs, std::string* why) const;
  PyObject* result_of(std::vector<Tensor>& tensors, const CallInputs& inputs) const;
  template <class Runnable>
  PyObject* run_with(const Runnable& runnable, const CallInputs& inputs) const;

  Graph graph_;
  // Of the latest sizes; one where none is dynamic.
  std::vector<std::pair<Graph, std::shared_ptr<TransformableGraph>>> transformable_;
  std::vector<Argument> arguments_;
  std::vector<PyRef> statics_;  // per leaf; empty: a tensor
  Guards guards_;               // of what the function read
  Effects effects_;             // of what it stored
  Renewal renewal_;             // of what it made, and then stored or returned
  std::string unkept_;          // why no other call may use the graph; empty: others may
  std::vector<Input> inputs_;
  std::vector<std::string> input_names_;
  std::vector<bool> input_is_tensor_;  // and no array of another library
  Tree result_;
  // A leaf of the result: one of these.
  struct Result {
    std::optional<size_t> output;   // of the graph
    std::optional<size_t> input;    // the caller's own tensor
    bool is_detached = false;       // the output is given without its history
    std::optional<size_t> same_as;  // another leaf
    PyRef constant;
    bool is_new = false;           // each call gets a constant of its own
    std::optional<uint32_t> size;  // the constant is this use of a size
    std::optional<uint32_t> step;  // of the numbers
  };
  std::vector<Result> results_;
  std::vector<PyRef> generators_;
  std::vector<Tensor> constants_;
  std::vector<Tensor> losable_;  // constants on devices, whose elements were there
  size_t n_traces_ = 1;
  std::vector<SizeUse> uses_;
  bool asks_for_dynamic_ = false;                         // which sizes are
  std::unordered_map<PyObject*, uint32_t> stored_sizes_;  // among the effects, which hold them
  bool hides_sizes_ = false;                              // in objects that it stores
  NumberProgram program_;
  std::vector<std::optional<uint32_t>> static_steps_;       // per leaf: a number of the call
  std::unordered_map<PyObject*, uint32_t> stored_numbers_;  // among the effects
  bool hides_numbers_ = false;
  SizeNotes notes_;  // of a graph for any size
  std::string unknown_;
  mutable std::set<std::vector<int64_t>> right_sizes_, wrong_sizes_;  // where the function was run
  mutable std::vector<int64_t> accepted_;  // dynamic sizes, in order, which the constraints were found to take
  bp_device default_device_{};             // where the function made tensors of no other device
  bp_dtype default_float_ = BP_FLOAT32;    // of which dtype its floats without another were
  Autocast autocast_;                      // in which it ran
  std::optional<bool> grad_mode_;          // was the tape recording? Where the function asked
};

// A function that is traced on this thread has asked whether gradients are recorded.
void note_grad_mode_read();

// "x['w']": the place of a leaf, by the name of the function's parameter where that is known.
std::string input_name(const CallInputs& inputs, size_t leaf);

void bind_control(pybind11::module_& module);                                       // control.cpp
void bind_model_file(pybind11::module_& module);                                    // model_file.cpp
void bind_graph(pybind11::module_& module);                                         // make_graph.cpp
PyObject* make_graph_function(PyObject* module, PyObject* args, PyObject* kwargs);  // make_graph.cpp
PyObject* compile_function(PyObject* module, PyObject* args, PyObject* kwargs);     // compile.cpp
PyObject* compile_log(PyObject* module, PyObject* none);
PyObject* holds_tensor(PyObject* module, PyObject* object);  // traced_results.cpp

}  // namespace backplane::python
