#include "bindings/transforms/traced_call.hpp"

#include <algorithm>
#include <unordered_map>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/static_values.hpp"
#include "bindings/interpreter/context_settings.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/trace_turn.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/transforms/python_function.hpp"

namespace backplane::python {
namespace {

thread_local constinit bool grad_mode_is_read = false;

// Empty where the function does not say.
std::string parameter_name(PyObject* callable, Py_ssize_t position) {
  const PyRef function = python_function(callable, &position);
  PyRef code = PyRef::steal(PyObject_GetAttrString(function.get(), "__code__"));
  PyRef names = PyRef::steal(code ? PyObject_GetAttrString(code.get(), "co_varnames") : nullptr);
  PyRef count = PyRef::steal(code ? PyObject_GetAttrString(code.get(), "co_argcount") : nullptr);
  std::string name;
  if (names && count && PyTuple_Check(names.get()) && position < PyLong_AsSsize_t(count.get()))
    if (const char* text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names.get(), position))) name = text;
  forget_error();
  return name;
}

std::string argument_name(const CallInputs& inputs, const InputTrees::Entry& entry) {
  const std::string named = entry.keyword ? "" : parameter_name(inputs.call.function, entry.position);
  return named.empty() ? InputTrees::root(entry) : named;
}

}  // namespace

void note_grad_mode_read() { grad_mode_is_read = true; }

std::string input_name(const CallInputs& inputs, size_t leaf) {
  for (const InputTrees::Entry& entry : inputs.trees.entries)
    if (leaf < entry.end()) return leaf_path(entry.tree, leaf - entry.first, argument_name(inputs, entry));
  return "?";
}

bool CallInputs::read() {
  for (Py_ssize_t i = 0; i < call.n_args; ++i)
    if (!trees.add(call.args[i], i)) return false;
  for (Py_ssize_t i = 0; i < call.n_keywords(); ++i)
    if (!trees.add(call.args[call.n_args + i], call.n_args + i, PyTuple_GET_ITEM(call.keywords, i))) return false;
  for (size_t i = 0; i < trees.leaves.size(); ++i) {
    PyObject* leaf = trees.leaves[i].get();
    if (!is_input(leaf)) continue;
    Tensor tensor;
    if (read_leaf(leaf, &tensor) != 1) return false;
    tensors.push_back(std::move(tensor));
    places.push_back(i);
  }
  return true;
}

bool CallInputs::are_plain() const {
  for (const Tensor& t : tensors)
    if (is_transformed(t) || (grad_enabled() && requires_grad(t))) return false;
  return true;
}

uint64_t CallInputs::bytes() const noexcept {
  uint64_t sum = 0;
  for (const Tensor& t : tensors) sum += work_of(*t.get());
  return sum;
}

void TracedCall::keep_inputs(const CallInputs& inputs) {
  for (const InputTrees::Entry& entry : inputs.trees.entries)
    arguments_.push_back({entry.tree, entry.tree.n_leaves(), entry.keyword ? PyRef::borrow(entry.keyword) : PyRef{},
                          argument_name(inputs, entry)});
  for (const PyRef& leaf : inputs.trees.leaves) statics_.push_back(leaf);
  for (size_t k = 0; k < inputs.tensors.size(); ++k) {
    const Tensor& t = inputs.tensors[k];
    statics_[inputs.places[k]] = {};
    inputs_.push_back({t.dtype(), t.device(), {t.shape().begin(), t.shape().end()}, {}});
    input_names_.push_back(input_name(inputs, inputs.places[k]));
    input_is_tensor_.push_back(is_tensor(inputs.trees.leaves[inputs.places[k]].get()));
  }
}

// A Generator that nobody else holds was made inside the function, which will make it again.
bool TracedCall::find_generators(TraceScope& scope, GeneratorNotes& notes, const char* name) {
  for (size_t i = 0; i < scope.generators().size(); ++i) {
    const bp_generator_state* state = scope.generators()[i];
    PyRef generator = notes.take(state);
    if (!generator && state == &generator_state(default_generator())) generator = PyRef::borrow(default_generator());
    if (!generator) {
      raise(BP_ERROR_NOT_IMPLEMENTED,
            "%s: random numbers are drawn from a generator that is not an argument or a variable, for example of a "
            "model that is "
            "called with seed=, which a replay cannot advance. Fix: leave the seed out, or pass a Generator",
            name);
      return false;
    }
    if (Py_REFCNT(generator.get()) == 1) scope.fix_generator(i);
    generators_.push_back(std::move(generator));
  }
  return true;
}

GraphOptions TracedCall::graph_options(const CallInputs& inputs, const RunOptions& options, size_t n_numbers) const {
  GraphOptions made{{}, options.memory_budget};
  const std::vector<Py_ssize_t>& donated = options.donated;
  if (donated.empty()) return made;
  for (const size_t place : inputs.places)
    for (const InputTrees::Entry& entry : inputs.trees.entries)
      if (place >= entry.first && place < entry.end())
        made.donated.push_back(!entry.keyword &&
                               std::find(donated.begin(), donated.end(), entry.position) != donated.end());
  made.donated.resize(made.donated.size() + n_numbers, false);
  return made;
}

PyObject* TracedCall::call_traced(const CallInputs& inputs, CallArray& array, Recorder& recorder, SizeLog* log,
                                  NumberLog* numbers) {
  const TransformCall& call = inputs.call;
  for (size_t i = 0; i < statics_.size(); ++i)
    if (statics_[i]) recorder.reads().name(statics_[i].get(), "static argument " + leaf_name(i), true);
  PyObject* self = PyMethod_Check(call.function) ? PyMethod_GET_SELF(call.function) : call.function;
  recorder.reads().name(self, "static argument self", true);
  recorder.note_function(call.function);
  for (size_t i = 0; i < arguments_.size(); ++i)
    recorder.hands_over(array.at(inputs.trees.entries[i].position), arguments_[i].name);
  const bool outer_read = std::exchange(grad_mode_is_read, false), grad_mode = recorded_outside();
  const bool records = grad_enabled();
  PyObject* returned = nullptr;
  {
    const SizeLog::Use noting(log ? log : SizeLog::current());
    const NumberLog::Use following(numbers ? numbers : NumberLog::current());
    recorder.reads().follow(numbers);
    returned = array.call(call.function, call.n_args, call.keywords);
  }
  if (grad_mode_is_read) grad_mode_ = grad_mode;
  grad_mode_is_read |= outer_read;
  recorder.stop();
  if (returned && left_settings(records)) {
    Py_CLEAR(returned);
    raise(BP_ERROR_VALUE,
          "%s: the function changes the default device, the default dtype or the recording of gradients for its "
          "caller, which a graph "
          "cannot do. Fix: set it outside, or in a with block",
          call.name);
  }
  return returned;
}

// Of compile with state=: the function runs once more for this call (python/backplane/_graphs/_replaced_entries.py).
static bool runs_again() {
  const PyTypeObject* type = reinterpret_cast<PyTypeObject*>(PyErr_Occurred());
  for (; type; type = type->tp_base)
    if (std::string_view(type->tp_name) == "RunsAgain") return true;
  return false;
}

std::shared_ptr<TracedCall> TracedCall::trace_once(const CallInputs& inputs, const RunOptions& options,
                                                   const Shapes& shapes, bool notes_sizes) {
  const TransformCall& call = inputs.call;
  SizeLog log;
  auto traced = std::make_shared<TracedCall>();
  const bool follows = options.numbers && !options.numbers->empty() && !notes_sizes;
  traced->keep_inputs(inputs);
  traced->default_device_ = default_device();
  traced->default_float_ = default_float();
  traced->autocast_ = autocast();
  GeneratorNotes notes;
  TraceScope scope(call.name, user_line);
  if (options.guards_variables) scope.runs_only();
  NumberLog numbers(scope, [&](const std::string& place) { return options.numbers->count(place) > 0; });
  InlineVector<PyObject*, 8> leaves;
  Leaves entered;
  for (const PyRef& leaf : inputs.trees.leaves) leaves.push_back(leaf.get());
  for (size_t k = 0; k < inputs.tensors.size(); ++k) {
    PyRef tensor = PyRef::steal(wrap_tensor(scope.enter(inputs.tensors[k], traced->input_names_[k], Shape(shapes[k]))));
    if (!tensor) return nullptr;
    leaves[inputs.places[k]] = tensor.get();
    entered.push_back(std::move(tensor));
  }
  if (follows) traced->enter_numbers(numbers, leaves);
  CallArray array(call.args, call.n_args + call.n_keywords());
  for (const InputTrees::Entry& entry : inputs.trees.entries) {
    PyRef argument = PyRef::steal(unflatten_tree(entry.tree, leaves.data() + entry.first));
    if (!argument) return nullptr;
    array.replace(entry.position, std::move(argument));
  }
  std::vector<Tensor> results;
  const TraceTurn turn;
  // What waits to be raised would be lost in the callbacks of the collector, which the recorder runs.
  if (PyErr_Occurred() || Py_MakePendingCalls() < 0) return nullptr;
  Recorder recorder(call.name, scope, turn.is_own());
  struct AfterFailure {
    Recorder* recorder;
    ~AfterFailure() {
      if (!recorder) return;
      recorder->stop();
      // What the function did before it raised an error of its own stays, as where it is not traced.
      if (takes_back || is_backplane_error() || runs_again())
        recorder->reads().effects().take_back();
      else
        recorder->reads().effects().take_back_tensors(), recorder->reads().effects().settle_numbers();
    }
    bool takes_back;
  } failure{&recorder, options.takes_back};
  for (size_t k = 0; k < entered.size(); ++k)
    recorder.stands_for(entered[k].get(), inputs.places[k], inputs.trees.leaves[inputs.places[k]].get());
  {
    const SizeLog* noted = notes_sizes ? &log : nullptr;
    PyRef returned = PyRef::steal(
        traced->call_traced(inputs, array, recorder, notes_sizes ? &log : nullptr, follows ? &numbers : nullptr));
    if (returned) recorder.note_made_tensors();
    if (!returned || !traced->keep_result(returned.get(), entered, noted, follows ? &numbers : nullptr,
                                          !options.guards_variables, recorder, &results, call.name))
      return nullptr;
  }
  if (!traced->find_generators(scope, notes, call.name)) return nullptr;
  traced->graph_ = scope.leave(results, traced->graph_options(inputs, options, numbers.input_count()));
  traced->constants_ = traced->graph_.constants();
  const std::span<const Tensor> own_inputs(inputs.tensors.data(), inputs.tensors.size());
  std::vector<Tensor> used = traced->constants_;
  for (const Result& result : traced->results_)  // a tensor from outside that is returned as it is
    if (PyObject* constant = result.constant.get(); constant && is_tensor(constant))
      used.push_back(tensor_of(constant));
  if (!recorder.close(used, own_inputs, options.guards_variables, &traced->guards_, &traced->unkept_)) return nullptr;
  for (Result& result : traced->results_) result.is_new = result.constant && recorder.is_new(result.constant.get());
  traced->effects_ = std::move(recorder.reads().effects());
  failure.recorder = nullptr;
  if (follows && !traced->find_numbers(numbers)) return nullptr;
  inputs.numbers = numbers.values();
  inputs.number_tensors.clear();
  traced->program_.make_tensors(inputs.numbers, &inputs.number_tensors);
  if (notes_sizes && !traced->find_stored_sizes(log)) return nullptr;
  traced->keep_new(inputs, recorder);
  traced->note_losable();
  traced->asks_for_dynamic_ = log.was_asked();
  traced->uses_ = log.take_uses();
  return traced;
}

std::shared_ptr<const TracedCall> TracedCall::with_graph(Graph graph) const {
  auto other = std::make_shared<TracedCall>(*this);
  other->graph_ = std::move(graph);
  other->constants_ = other->graph_.constants();
  other->transformable_.clear();
  return other;
}

std::string TracedCall::leaf_name(size_t leaf) const {
  for (const Argument& argument : arguments_) {
    if (leaf < argument.n_leaves) return leaf_path(argument.tree, leaf, argument.name);
    leaf -= argument.n_leaves;
  }
  return "?";
}

int TracedCall::same_arguments(const CallInputs& inputs, std::string* why) const {
  const auto& entries = inputs.trees.entries;
  const auto differ = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return 0;
  };
  if (entries.size() != arguments_.size())
    return differ("found " + std::to_string(entries.size()) + " arguments, had " + std::to_string(arguments_.size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    const Argument& own = arguments_[i];
    const bool same_name =
        entries[i].keyword == own.keyword.get() ||
        (entries[i].keyword && own.keyword && PyUnicode_Compare(entries[i].keyword, own.keyword.get()) == 0);
    int same = same_name ? same_tree(entries[i].tree, own.tree) : 0;
    if (same == 1) same = same_order(entries[i].tree, own.tree);  // the function may go through a dict
    if (same < 0) return -1;
    if (!same) return differ("argument " + own.name + " has another structure");
  }
  for (size_t i = 0; i < statics_.size(); ++i) {
    PyObject *own = statics_[i].get(), *found = inputs.trees.leaves[i].get();
    if (!static_steps_.empty() && static_steps_[i] && Py_TYPE(found) == Py_TYPE(own)) {
      inputs.numbers[*static_steps_[i]] = PyRef::borrow(found);
      continue;
    }
    const bool tensor = is_input(found);
    if (!own && tensor) continue;
    const int same = own && !tensor ? same_static(own, found) : 0;
    if (same < 0) return -1;
    if (!same && why)
      *why = "static argument " + leaf_name(i) + ": found " + (tensor ? "a tensor" : spelled(found)) + ", had " +
             (own ? spelled(own) : "a tensor");
    if (!same) return 0;
  }
  return 1;
}

bool TracedCall::same_tensors(const CallInputs& inputs, std::string* why) const {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const Input& own = inputs_[k];
    const bp_tensor& found = *inputs.tensors[k].get();
    const bool same_device = found.backend == own.device.backend && found.ordinal == own.device.ordinal;
    bool same_shape = static_cast<size_t>(found.dl.ndim) == own.shape.size();
    for (size_t axis = 0; same_shape && axis < own.shape.size(); ++axis)
      same_shape = found.dl.shape[axis] == own.shape[axis] || (!own.dynamic.empty() && own.dynamic[axis]);
    if (found.dtype == own.dtype && same_device && same_shape) continue;
    if (!why) return false;
    *why = input_names_[k] + ": found ";
    if (found.dtype != own.dtype)
      *why += std::string("dtype ") + dtype_name(found.dtype) + ", had " + dtype_name(own.dtype);
    else if (!same_shape)
      *why += "shape " + shape_text(inputs.tensors[k].shape()) + ", had " + shape_text(own.shape);
    else
      *why += "another device";
    return false;
  }
  return !graph_.is_dynamic() || same_sizes(inputs, why);
}

int TracedCall::fits(const CallInputs& inputs, std::string* why) const {
  if (!same_settings(why) || !has_constants(why)) return 0;
  inputs.numbers.assign(program_.steps.size(), PyRef{});
  inputs.number_tensors.clear();
  const int same = same_arguments(inputs, why);
  if (same != 1) return same;
  if (!guards_.fit_leaves([&](size_t i) { return inputs.trees.leaves[i].get(); }, why)) return 0;
  const int guarded = guards_.fit(why, &inputs.numbers);
  if (guarded != 1) return guarded;
  return same_tensors(inputs, why) && (program_.empty() || same_numbers(inputs, why));
}

bool TracedCall::wants_tape() const {
  return grad_enabled() &&
         std::any_of(constants_.begin(), constants_.end(), [](const Tensor& t) { return requires_grad(t); });
}

bool TracedCall::uses_transformed() const {
  return std::any_of(constants_.begin(), constants_.end(), [](const Tensor& t) { return is_transformed(t); });
}

std::string TracedCall::transform_refusal() const {
  if (uses_transformed()) return "it uses a tensor of a transform from outside; make that an argument";
  const std::string& name = TransformableGraph::refusal(graph_);
  return name.empty() ? "" : "it uses " + name;
}

template <class Runnable>
PyObject* TracedCall::run_with(const Runnable& runnable, const CallInputs& inputs) const {
  std::vector<bp_generator_state*> states;
  for (const PyRef& generator : generators_) states.push_back(&generator_state(generator.get()));
  const std::span<const Tensor> tensors(inputs.tensors.data(), inputs.tensors.size());
  std::vector<Tensor> results;
  // The lock guards the generators.
  if (states.empty() && inputs.bytes() >= kReleaseGilBytes) {
    WithoutGil unlocked;
    results = runnable.call(tensors);
  } else {
    results = runnable.call(tensors, states);
  }
  return result_of(results, inputs);
}

PyObject* TracedCall::run(const CallInputs& inputs) const { return run_with(graph_, inputs); }

PyObject* TracedCall::run_transformed(const CallInputs& inputs) {
  constexpr size_t kKeptSizes = 8;
  const Graph at_sizes = graph_.at_sizes_of({inputs.tensors.data(), inputs.tensors.size()});
  const auto is_it = [&](const auto& known) { return known.first.get() == at_sizes.get(); };
  const auto known = std::find_if(transformable_.begin(), transformable_.end(), is_it);
  if (known != transformable_.end()) return run_with(*std::shared_ptr(known->second), inputs);
  if (transformable_.size() == kKeptSizes) transformable_.erase(transformable_.begin());
  const auto made = std::make_shared<TransformableGraph>(at_sizes);
  transformable_.emplace_back(at_sizes, made);
  return run_with(*made, inputs);
}

int TracedCall::traverse(visitproc visit, void* arg) const {
  for (const auto* list : {&statics_, &generators_})
    for (const PyRef& object : *list) Py_VISIT(object.get());
  for (const Result& result : results_) Py_VISIT(result.constant.get());
  if (const int stop = program_.traverse(visit, arg)) return stop;
  if (const int stop = guards_.traverse(visit, arg)) return stop;
  if (const int stop = renewal_.traverse(visit, arg)) return stop;
  return effects_.traverse(visit, arg);
}

}  // namespace backplane::python
