// Traces of one call at several sizes, and which sizes a replay takes.
#include <algorithm>

#include "bindings/guards/static_values.hpp"
#include "bindings/guards/user_line.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/dynamic_spec.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

// Takes the pending error, of a function that cannot be traced at some sizes. Throws what is none of an op's or of the
// function's own, as an interrupt.
TracedAt take_refusal() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw keep_python_error();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const PyRef owned[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(trace)};
  if (trace) PyException_SetTraceback(value, trace);
  const PyRef text = PyRef::steal(PyObject_Str(value));
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  TracedAt refused{{}, chars ? chars : "the function raises an error", line_of_exception(value)};
  forget_error();
  return refused;
}

}  // namespace

std::shared_ptr<TracedCall> TracedCall::trace(const CallInputs& inputs, const RunOptions& options,
                                              const DynamicSpec* dynamic) {
  std::vector<DynamicSize> sizes;
  if (dynamic && !dynamic->find(inputs, &sizes)) return nullptr;
  Shapes shapes;
  for (const Tensor& t : inputs.tensors) shapes.emplace_back(t.shape().begin(), t.shape().end());
  std::shared_ptr<TracedCall> traced = trace_once(inputs, options, shapes);
  if (!traced || sizes.empty()) return traced;
  return traced->make_dynamic(inputs, options, sizes) ? traced : nullptr;
}

// Why a trace at other sizes gives something else than tensors like this one's; empty: it does not.
std::string TracedCall::other_result(const TracedCall& other) const {
  if (same_tree(result_, other.result_) != 1) {
    forget_error();
    return "the function returns another structure";
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].input != other.results_[i].input || results_[i].same_as != other.results_[i].same_as)
      return "the function returns another one of its arguments";
    PyObject *own = results_[i].constant.get(), *found = other.results_[i].constant.get();
    if (!own && !found) continue;
    if (own && found && same_static(own, found) == 1) continue;
    forget_error();
    return "the function returns something else that is no tensor. Fix: return a size as bp.full((), size)";
  }
  return "";
}

bool TracedCall::make_dynamic(const CallInputs& inputs, const RunOptions& options,
                              const std::vector<DynamicSize>& sizes) {
  Shapes shapes;
  for (Input& input : inputs_) {
    shapes.push_back(input.shape);
    input.dynamic.assign(input.shape.size(), false);
  }
  for (const DynamicSize& size : sizes)
    for (const auto& [input, axis] : size.places) inputs_[input].dynamic[axis] = true;
  const auto trace_at = [&](std::span<const int64_t> numbers) -> TracedAt {
    for (size_t s = 0; s < sizes.size(); ++s)
      for (const auto& [input, axis] : sizes[s].places) shapes[input][axis] = numbers[s];
    ++n_traces_;
    try {
      RunOptions as_first;
      as_first.guards_variables = options.guards_variables;
      const std::shared_ptr<TracedCall> other = trace_once(inputs, as_first, shapes);
      if (!other) return take_refusal();
      other->take_back_effects();
      guards_.merge(std::move(other->guards_));
      if (unkept_.empty()) unkept_ = other->unkept_;
      const std::string why = other_result(*other);
      return why.empty() ? TracedAt{other->graph_, "", {}} : TracedAt{{}, why, {}};
    } catch (const Error& error) {
      if (error.code() == BP_ERROR_PYTHON) throw;
      return {{}, error.what(), {}};
    }
  };
  const PyObject* const done = guarded([&]() -> PyObject* {
    graph_ = with_dynamic_sizes(graph_, sizes, trace_at, graph_options(inputs, options));
    return Py_None;
  });
  return done != nullptr;
}

bool TracedCall::same_sizes(const CallInputs& inputs, std::string* why) const {
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < inputs_.size(); ++k)
    for (size_t axis = 0; axis < inputs_[k].dynamic.size(); ++axis)
      if (inputs_[k].dynamic[axis]) sizes.push_back(inputs.tensors[k].shape()[axis]);
  if (sizes == accepted_) return true;
  std::string refusal = graph_.refusal_of_sizes({inputs.tensors.data(), inputs.tensors.size()});
  if (refusal.empty())
    accepted_ = std::move(sizes);
  else if (why)
    *why = std::move(refusal);
  return refusal.empty();
}

}  // namespace backplane::python
