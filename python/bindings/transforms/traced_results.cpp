// The result of a traced call: what the graph gives, what the caller gave, and constants.
#include <algorithm>
#include <unordered_map>

#include "backplane/attached.hpp"
#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

// A result that is not a tensor is returned unchanged. One that leads to a tensor of the trace would have no value, and
// an iterator would be exhausted after its first use.
bool check_static_result(PyObject* leaf, const std::string& path, const char* name) {
  if (PyIter_Check(leaf)) return raise_leaf(name, path, leaf, "tensors, in a tuple or a list");
  if (!leads_to_traced(leaf)) return true;
  return raise_leaf(name, path, leaf,
                    "tensors in registered containers: tensors in other objects have no value once the "
                    "trace has ended. Fix: return them in a tuple or a dict, or register the class with tree.register");
}

}  // namespace

PyObject* holds_tensor(PyObject*, PyObject* object) {
  return PyBool_FromLong(leads_to_tensor(object, [](const Tensor&) { return true; }));
}

namespace {

// A container that was there before, or that is stored, is given as it is: a callable that tells so. It lives as long
// as the recorder.
PyRef is_known_container(const Recorder& recorder) {
  static PyMethodDef definition = {
      "is_known",
      [](PyObject* self, PyObject* object) -> PyObject* {
        const auto* known = static_cast<const Recorder*>(PyCapsule_GetPointer(self, nullptr));
        const Reads& reads = known->reads();
        return PyBool_FromLong(is_container(object) && (reads.was_read(object) || reads.stores(object)) &&
                               !reads.is_copy(object) && !leads_to_traced(object));
      },
      METH_O, nullptr};
  const PyRef self = PyRef::steal(PyCapsule_New(const_cast<Recorder*>(&recorder), nullptr, nullptr));
  return PyRef::steal(self ? PyCFunction_New(&definition, self.get()) : nullptr);
}

}  // namespace

namespace {

// As x.detach() is: over the same memory; of a tensor of a transform a constant.
PyRef detached(Tensor tensor) {
  const PyRef attached = PyRef::steal(wrap_tensor(std::move(tensor)));
  return PyRef::steal(attached ? PyObject_CallMethod(attached.get(), "detach", nullptr) : nullptr);
}

}  // namespace

// Is it a tensor that was there before, or that is stored as well, with the value that it has now?
static bool is_kept_tensor(PyObject* tensor, const Recorder& recorder) {
  if (is_transformed(tensor_of(tensor))) return false;
  return recorder.reads().was_read(tensor) || (recorder.reads().stores(tensor) && !recorder.has_changed(tensor));
}

// The caller's own tensor is the result, as where the function is not traced. An array of another library became a
// tensor, which is a new one.
bool TracedCall::returns_input(size_t input) const { return input_is_tensor_[input]; }

// `all_are_outputs`: of a graph that somebody looks at each tensor is an output, also one that is an input.
bool TracedCall::keep_result(PyObject* returned, const Leaves& entered, const SizeLog* log, const NumberLog* numbers,
                             bool all_are_outputs, const Recorder& recorder, std::vector<Tensor>* results,
                             const char* name) {
  Leaves leaves;
  const PyRef known_containers = all_are_outputs ? PyRef{} : is_known_container(recorder);
  if (!flatten_tree(returned, known_containers.get(), &leaves, &result_)) return false;
  std::unordered_map<PyObject*, size_t> known;  // a result that is there already; held by `leaves`
  for (size_t i = 0; i < leaves.size(); ++i) {
    PyObject* leaf = leaves[i].get();
    const auto is_it = [&](const PyRef& one) { return one.get() == leaf; };
    const auto input = std::find_if(entered.begin(), entered.end(), is_it);
    Result result;
    if (is_tensor(leaf) && all_are_outputs) {
      result.output = results->size();
      results->push_back(tensor_of(leaf));
    } else if (!is_tensor(leaf) || is_kept_tensor(leaf, recorder)) {
      if (!check_static_result(leaf, leaf_path(result_, i, "the function's result"), name)) return false;
      result.constant = untraced(plain_number(leaf).get());
      if (numbers && is_traced_number(leaf)) {
        if (const uint32_t step = numbers->step_of(leaf); step != NumberProgram::Operand::kConstant) result.step = step;
      } else if (numbers && leads_to_number(leaf)) {
        hides_numbers_ = true;
      }
      if (log && is_size(leaf) && !all_are_outputs && log->use_of(leaf) != SizeUse::Operand::kNone)
        result.size = log->use_of(leaf);
    } else if (input != entered.end() && returns_input(static_cast<size_t>(input - entered.begin()))) {
      result.input = static_cast<size_t>(input - entered.begin());
    } else {
      const auto [at, is_new] = known.try_emplace(leaf, i);
      if (is_new) {
        const Tensor own = tensor_of(leaf), source = attached(own);
        result.output = results->size();
        // A tensor from outside over the memory of one that is changed: the graph gives that one.
        result.is_detached = own.get() != source.get() || (!is_transformed(own) && !requires_grad(own));
        results->push_back(source);
      } else {
        result.same_as = at->second;
      }
    }
    results_.push_back(std::move(result));
  }
  return true;
}

// The caller of the traced call has the trace's own objects.
void TracedCall::keep_new(const CallInputs& inputs, const Recorder& recorder) {
  const PyRef list = PyRef::steal(PyList_New(0));
  if (!list) return forget_error();
  effects_.add_new(list.get());
  for (const Result& result : results_)
    if (result.is_new) PyList_Append(list.get(), result.constant.get());
  const std::string why = renewal_.keep(list.get(), [&](PyObject* object) { return recorder.is_new(object); });
  if (unkept_.empty()) unkept_ = why;
  inputs.anew = list;
}

bool TracedCall::make_anew(const CallInputs& inputs) const {
  if (inputs.anew || renewal_.is_empty()) return true;
  inputs.anew = renewal_.renewed();
  return static_cast<bool>(inputs.anew);
}

PyObject* TracedCall::result_of(std::vector<Tensor>& tensors, const CallInputs& inputs) const {
  if (result_.is_leaf() && results_[0].output && !results_[0].is_detached) return wrap_tensor(std::move(tensors[0]));
  if (!make_anew(inputs)) return nullptr;
  PyObject* const anew = inputs.anew.get();
  const Py_ssize_t n_anew = anew ? PyList_GET_SIZE(anew) : 0;
  Py_ssize_t n_left = std::count_if(results_.begin(), results_.end(), [](const Result& r) { return r.is_new; });
  Leaves owned;
  InlineVector<PyObject*, 8> leaves;
  for (const Result& result : results_) {
    const Py_ssize_t place = n_anew - (result.is_new ? n_left-- : 0);  // behind what it stores
    PyRef leaf = result.is_detached            ? detached(std::move(tensors[*result.output]))
                 : result.output               ? PyRef::steal(wrap_tensor(std::move(tensors[*result.output])))
                 : result.step                 ? inputs.numbers[*result.step]
                 : result.size                 ? number_of(*result.size, inputs)
                 : result.input                ? inputs.trees.leaves[inputs.places[*result.input]]
                 : result.same_as              ? PyRef::borrow(leaves[*result.same_as])
                 : result.is_new && place >= 0 ? PyRef::borrow(PyList_GET_ITEM(anew, place))
                                               : result.constant;
    if (!leaf) return nullptr;
    leaves.push_back(leaf.get());
    owned.push_back(std::move(leaf));
  }
  return unflatten_tree(result_, leaves.data());
}

PyRef TracedCall::number_of(uint32_t use, const CallInputs& inputs) const {
  if (!graph_.is_dynamic()) return PyRef::steal(PyLong_FromLongLong(uses_[use].value));
  const int64_t number = graph_.size_at(*notes_.expressions[use], {inputs.tensors.data(), inputs.tensors.size()});
  return PyRef::steal(PyLong_FromLongLong(number));
}

}  // namespace backplane::python
