// compile: a function that keeps the graphs of its latest kinds of calls, and the log of its traces.
#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "backplane/log.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/transforms/dynamic_spec.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

constexpr size_t kKeptCalls = 8;
constexpr size_t kKeptLines = 256;

std::deque<std::string>& log_lines() {
  static auto* lines = new std::deque<std::string>;  // outlives functions that are called while the interpreter ends
  return *lines;
}

// For compile_log(), and for BACKPLANE_LOG=guard.
void log_event(std::string line) {
  if (logs(LogTopic::kGuard)) log_line(LogTopic::kGuard, line);
  log_lines().push_back(std::move(line));
  if (log_lines().size() > kKeptLines) log_lines().pop_front();
}

struct CompileOptions final : TransformOptions {
  bool fullgraph = true;
  DynamicSpec dynamic;
  RunOptions run;
  // The latest used first. Under the interpreter lock.
  mutable std::vector<std::shared_ptr<TracedCall>> kept;
  mutable bool untraceable = false;  // without `fullgraph`: calls run as they are
  mutable size_t n_traces = 0;       // since the latest call that found its graph
  mutable bool has_warned = false;
  mutable std::set<std::string> numbers;  // places where numbers changed from call to call
  mutable bool follows_numbers = true;    // false: one went where it cannot be followed
  PyRef words;                            // the options as keyword arguments; null: none
  mutable PyRef with_state;  // the function that takes all calls, since one had an optimiser as an argument

  std::unique_ptr<TransformOptions> clone() const override {
    auto made = std::make_unique<CompileOptions>();
    made->fullgraph = fullgraph;
    made->dynamic = dynamic;
    made->run = run;
    made->words = PyRef::borrow(words.get());
    return made;
  }
  int traverse(visitproc visit, void* arg) const override {
    for (const auto& traced : kept)
      if (const int stop = traced->traverse(visit, arg)) return stop;
    Py_VISIT(words.get());
    Py_VISIT(with_state.get());
    return 0;
  }
  // They are destroyed once the list is empty: that may run code which calls the function.
  void clear() override {
    std::exchange(kept, {});
    const PyRef ended_words = std::move(words), ended_state = std::move(with_state);
  }
};

std::string name_of(PyObject* function) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(function, "__qualname__"));
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  forget_error();
  return text ? text : "a function";
}

PyObject* call_itself(const TransformCall& call) {
  return PyObject_Vectorcall(call.function, call.args, static_cast<size_t>(call.n_args), call.keywords);
}

// The kept call that this one is like. nullptr: none, or a Python error.
std::shared_ptr<TracedCall> find_kept(const CompileOptions& options, const CallInputs& inputs) {
  const bool logged = logs(LogTopic::kGuard);
  for (size_t i = 0; i < options.kept.size(); ++i) {
    const std::shared_ptr<TracedCall> traced = options.kept[i];
    std::string why;
    const int fits = traced->fits(inputs, logged ? &why : nullptr);
    if (fits < 0) return nullptr;
    if (logged)
      log_line(LogTopic::kGuard, name_of(inputs.call.function) + ": kept trace " + std::to_string(i + 1) + " of " +
                                     std::to_string(options.kept.size()) +
                                     (fits ? " answers" : " does not fit: " + why));
    if (fits == 0) continue;
    // A comparison may have run code that changed the list.
    if (i > 0 && i < options.kept.size() && options.kept[i] == traced)
      std::rotate(options.kept.begin(), options.kept.begin() + static_cast<ptrdiff_t>(i),
                  options.kept.begin() + static_cast<ptrdiff_t>(i) + 1);
    options.n_traces = 0;
    return traced;
  }
  return nullptr;
}

// What the Python error says, which there is no more.
std::string taken_error() {
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_Fetch(&type, &value, &trail);
  const PyRef owned[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(trail)};
  PyRef text = PyRef::steal(value ? PyObject_Str(value) : nullptr);
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  forget_error();
  return chars ? chars : "?";
}

// A function that is traced again and again is slower than one that is not compiled: one warning tells why.
bool warn_of_traces(const CompileOptions& options, const std::string& name, const std::string& why) {
  constexpr size_t kMostTraces = 8;
  if (++options.n_traces < kMostTraces || options.has_warned) return true;
  options.has_warned = true;
  return PyErr_WarnFormat(PyExc_UserWarning, 1,
                          "compile: %s has been traced %zu times in a row, which is slow. The latest reason: %s. Fix: "
                          "pass the changing value as a tensor argument, or see compile_log() for all reasons",
                          name.c_str(), options.n_traces, why.c_str()) == 0;
}

// Keeps it, at the price of the one that was longest unused.
void keep(const CompileOptions& options, std::shared_ptr<TracedCall> traced, const std::string& name) {
  options.kept.insert(options.kept.begin(), std::move(traced));
  if (options.kept.size() <= kKeptCalls) return;
  options.kept.pop_back();
  log_event(name + ": the least recently used kind of call is evicted; at most " + std::to_string(kKeptCalls) +
            " are kept");
}

// Follows numbers that differ from the numbers of the kept calls.
std::shared_ptr<TracedCall> trace_with_numbers(const CompileOptions& options, const CallInputs& inputs,
                                               bool* is_of_this_size) {
  RunOptions run = options.run;
  for (size_t i = 0; options.follows_numbers && i < options.kept.size(); ++i) {
    const std::shared_ptr<TracedCall> traced = options.kept[i];
    traced->find_changed_numbers(inputs, &options.numbers);
  }
  const std::set<std::string> numbers = options.numbers;
  run.numbers = options.follows_numbers && !numbers.empty() ? &numbers : nullptr;
  std::shared_ptr<TracedCall> traced = TracedCall::trace(inputs, run, &options.dynamic, is_of_this_size);
  const bool is_refused = !traced && run.numbers && is_backplane_error();
  if (!is_refused && !(traced && traced->hides_numbers())) return traced;
  forget_error();
  options.follows_numbers = is_refused;
  return TracedCall::trace(inputs, options.run, &options.dynamic, is_of_this_size);
}

std::shared_ptr<TracedCall> trace(const CompileOptions& options, const CallInputs& inputs) {
  std::string why = "first call";
  if (!options.kept.empty() && options.kept.front()->fits(inputs, &why) < 0) return nullptr;
  const std::string name = name_of(inputs.call.function);
  bool is_of_this_size = false;  // the function does something of its own there
  std::shared_ptr<TracedCall> traced = trace_with_numbers(options, inputs, &is_of_this_size);
  if (!traced && is_of_this_size && PyErr_ExceptionMatches(PyExc_Exception)) {
    log_event(name + ": traced for this size alone: " + taken_error());
    traced = TracedCall::trace(inputs, options.run);
  }
  if (!traced) return nullptr;
  const std::string times = traced->graph().is_dynamic()
                                ? " for any size (" + std::to_string(traced->trace_count()) + " runs)"
                                : std::string();
  log_event(name + ": traced" + times + ", " + std::to_string(traced->graph().size()) + " nodes: " + why);
  const std::string refusal = traced->transform_refusal();
  if (!refusal.empty()) log_event(name + ": runs as it is where it is transformed or differentiated: " + refusal);
  if (!warn_of_traces(options, name, traced->why_unkept().empty() ? why : traced->why_unkept())) return nullptr;
  if (traced->uses_transformed()) return traced;
  if (!traced->why_unkept().empty()) {
    log_event(name + ": traced for this call alone: " + traced->why_unkept());
    return traced;
  }
  keep(options, traced, name);
  return traced;
}

// Runs the function at sizes that no trace has covered. Uses the kept graph if it is the same there, else the
// function's own. nullptr: a Python error. `has_run`: what the function stores has been stored.
std::shared_ptr<TracedCall> run_at_sizes(const CompileOptions& options, const CallInputs& inputs,
                                         std::shared_ptr<TracedCall> kept, bool* has_run) {
  const std::string name = name_of(inputs.call.function), why = kept->why_run_at_sizes();
  std::shared_ptr<TracedCall> own = TracedCall::trace_at_sizes(inputs, options.run);
  *has_run = true;
  if (!own) return nullptr;
  if (kept->accept_sizes(inputs, *own)) {
    own->take_back_effects();
    inputs.anew = {};
    *has_run = false;
    log_event(name + ": ran once at new sizes, since it " + why);
    return kept;
  }
  if (!own->why_unkept().empty() || own->uses_transformed()) {
    log_event(name + ": traced for this call alone: " + own->why_unkept());
    return own;
  }
  log_event(name + ": traced for this size alone, since it " + why);
  keep(options, own, name);
  return own;
}

// Is there an argument for each donated position? By name or by position: what came by name is not donated.
bool check_donated(const TransformCall& call, const std::vector<Py_ssize_t>& donated) {
  const Py_ssize_t count = call.n_args + call.n_keywords();
  for (const Py_ssize_t position : donated) {
    if (position < count) continue;
    raise(BP_ERROR_TYPE,
          "compile: argument donate: found %zd, but the call of %s has %zd argument%s, counted from 0 on", position,
          name_of(call.function).c_str(), count, count == 1 ? "" : "s");
    return false;
  }
  return true;
}

// fullgraph=False: an op or Python code that cannot be traced is not an error.
PyObject* run_untraced(const TransformCall& call, const CompileOptions& options) {
  log_event(name_of(call.function) + ": runs as it is from now on: " + taken_error());
  options.untraceable = true;
  return call_itself(call);
}

bool has_optimizer(const TransformCall& call) {
  const auto is_one = [](PyObject* argument) {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(argument));  // an object may answer to every name
    return has_attribute(type, "init_state") && has_attribute(type, "add_param_group");
  };
  return std::any_of(call.args, call.args + call.n_args + call.n_keywords(), is_one);
}

// An optimiser knows its parameters by identity, so modules beside it have to stay the same objects too, as with
// state=.
bool make_with_state(const TransformCall& call, const CompileOptions& options) {
  const PyRef home = imported_module("backplane._graphs._compiled_arguments");
  const PyRef type = PyRef::steal(home ? PyObject_GetAttrString(home.get(), "StatefulArguments") : nullptr);
  const PyRef args = PyRef::steal(type ? PyTuple_Pack(1, call.function) : nullptr);
  if (args) options.with_state = PyRef::steal(PyObject_Call(type.get(), args.get(), options.words.get()));
  return static_cast<bool>(options.with_state);
}

PyObject* call_with_state(const TransformCall& call, const CompileOptions& options) {
  return PyObject_Vectorcall(options.with_state.get(), call.args, static_cast<size_t>(call.n_args), call.keywords);
}

PyObject* run_compiled(const TransformCall& call, const TransformOptions& base) {
  const auto& options = static_cast<const CompileOptions&>(base);
  if (!check_donated(call, options.run.donated)) return nullptr;
  check_stack_left("compile");  // a compiled function may call itself, and no frame of Python lie between
  if (options.untraceable || every_call_taken()) return call_itself(call);
  if (options.with_state) return call_with_state(call, options);
  CallInputs inputs(call);
  if (!inputs.read()) return nullptr;
  std::shared_ptr<TracedCall> traced = find_kept(options, inputs);
  if (!traced && !PyErr_Occurred() && has_optimizer(call))
    return make_with_state(call, options) ? call_with_state(call, options) : nullptr;
  bool has_run = false;  // the function, for this call
  const bool is_at_new_sizes = traced && traced->has_to_run_at(inputs);
  if (is_at_new_sizes || (!traced && !PyErr_Occurred())) {
    has_run = !is_at_new_sizes;
    traced = is_at_new_sizes ? run_at_sizes(options, inputs, traced, &has_run) : trace(options, inputs);
    if (!traced && !options.fullgraph && PyErr_ExceptionMatches(PyExc_Exception)) return run_untraced(call, options);
  }
  if (!traced) return nullptr;
  for (Tensor& tensor : inputs.number_tensors) inputs.tensors.push_back(std::move(tensor));
  if (const std::string shared = traced->shared_memory(inputs); !shared.empty()) {
    const std::string line = name_of(call.function) + ": runs as it is where tensors overlap: " + shared;
    if (log_lines().empty() || log_lines().back() != line) log_event(line);
    if (has_run) traced->take_back_effects();
    return call_itself(call);
  }
  const bool is_plain = !transforms_active() && inputs.are_plain() && !traced->wants_tape();
  if (!is_plain && !traced->transform_refusal().empty()) {
    if (has_run) traced->take_back_effects();
    return call_itself(call);
  }
  PyRef result = PyRef::steal(is_plain ? traced->run(inputs) : traced->run_transformed(inputs));
  if (result && !has_run && !traced->repeat_effects(inputs)) return nullptr;
  if (has_run) traced->settle_effects();
  return result.release();
}

}  // namespace

namespace {

// None, a position, or a tuple or list of positions.
bool read_positions(PyObject* object, std::vector<Py_ssize_t>* positions) {
  if (object == Py_None) return true;
  PyRef sequence =
      PyRef::steal(PyTuple_Check(object) || PyList_Check(object) ? PySequence_Tuple(object) : PyTuple_Pack(1, object));
  for (Py_ssize_t i = 0; sequence && i < PyTuple_GET_SIZE(sequence.get()); ++i) {
    PyObject* const one = PyTuple_GET_ITEM(sequence.get(), i);
    const PyRef number = PyRef::steal(PyIndex_Check(one) ? PyNumber_Index(one) : nullptr);
    if (!number && PyErr_Occurred()) return false;  // of its __index__
    const Py_ssize_t position = number ? PyNumber_AsSsize_t(number.get(), PyExc_OverflowError) : -1;
    if (position >= 0) {
      positions->push_back(position);
      continue;
    }
    forget_error();
    raise(BP_ERROR_TYPE,
          "compile: argument donate: found %R, expected the position of an argument, from 0 on, or several", object);
    return false;
  }
  return static_cast<bool>(sequence);
}

// Bytes, from 0 on.
bool read_budget(PyObject* object, std::optional<uint64_t>* budget) {
  if (object == Py_None) return true;
  const PyRef number = PyRef::steal(PyIndex_Check(object) ? PyNumber_Index(object) : nullptr);
  if (!number && PyErr_Occurred()) return false;  // of its __index__
  const uint64_t bytes = number ? PyLong_AsUnsignedLongLong(number.get()) : 0;
  if (!number || PyErr_Occurred()) {
    forget_error();
    raise(BP_ERROR_TYPE, "compile: argument memory_budget: found %R, expected a number of bytes, or None", object);
    return false;
  }
  *budget = bytes;
  return true;
}

}  // namespace

// compile(**options), as a decorator is written: functools.partial of it.
static PyObject* compile_with(PyObject* module, PyObject* options) {
  const PyRef functools = imported_module("functools");
  const PyRef partial = PyRef::steal(functools ? PyObject_GetAttrString(functools.get(), "partial") : nullptr);
  const PyRef compile = PyRef::steal(PyObject_GetAttrString(module, "compile"));
  const PyRef args = PyRef::steal(partial && compile ? PyTuple_Pack(1, compile.get()) : nullptr);
  return args ? PyObject_Call(partial.get(), args.get(), options) : nullptr;
}

// With state=, inputs= or outputs=, Python keeps the state's tensors in place
// (python/backplane/_graphs/_compiled_state.py).
static bool names_state(PyObject* kwargs) {
  for (const char* word : {"state", "inputs", "outputs"})
    if (kwargs && PyDict_GetItemString(kwargs, word)) return true;
  return false;
}

static PyObject* compile_with_state(PyObject* args, PyObject* kwargs) {
  const PyRef home = imported_module("backplane._graphs._compiled_state");
  const PyRef function = PyRef::steal(home ? PyObject_GetAttrString(home.get(), "compile_with_state") : nullptr);
  return function ? PyObject_Call(function.get(), args, kwargs) : nullptr;
}

PyObject* compile_function(PyObject* module, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) == 0 && kwargs && !PyDict_GetItemString(kwargs, "fun"))
    return compile_with(module, kwargs);
  if (names_state(kwargs)) return compile_with_state(args, kwargs);
  static const char* keywords[] = {"fun", "dynamic", "donate", "fullgraph", "memory_budget", nullptr};
  PyObject *function = nullptr, *dynamic = Py_None, *donate = Py_None, *budget = Py_None;
  int fullgraph = 1;
  PyObject *word = nullptr, *given = nullptr;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &word, &given);)
    if (std::none_of(keywords, std::end(keywords) - 1,
                     [&](const char* own) { return PyUnicode_CompareWithASCIIString(word, own) == 0; }))
      return raise(BP_ERROR_TYPE,
                   "compile: found an option '%S', expected dynamic, donate, fullgraph, memory_budget or state. "
                   "Arguments that are "
                   "no tensors are static anyway; donate is what jax.jit calls donate_argnums; the device of the "
                   "tensors chooses "
                   "the compiler",
                   word);
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOpO:compile", const_cast<char**>(keywords), &function, &dynamic,
                                   &donate, &fullgraph, &budget))
    return nullptr;
  auto options = std::make_unique<CompileOptions>();
  if (!options->dynamic.read("compile", dynamic)) return nullptr;
  if (!read_positions(donate, &options->run.donated)) return nullptr;
  if (!read_budget(budget, &options->run.memory_budget)) return nullptr;
  options->fullgraph = fullgraph != 0;
  options->run.takes_back = !options->fullgraph;
  options->run.guards_variables = true;
  options->words = PyRef::borrow(kwargs);
  return make_transformed("compile", function, run_compiled, std::move(options));
}

PyObject* compile_log(PyObject*, PyObject*) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const std::string& line : log_lines()) {
    PyRef text = PyRef::steal(text_of(line));
    if (!list || !text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace backplane::python
