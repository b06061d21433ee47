// Traces of one call at several sizes, and which sizes a replay takes.
#include <algorithm>

#include "bindings/guards/static_values.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/transforms/dynamic_spec.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

// Takes the pending error of a function that cannot be traced at some sizes. Rethrows errors that are not from an op or
// the function, such as an interrupt.
TracedAt take_refusal() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw keep_python_error();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const PyRef owned[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(trace)};
  if (trace) PyException_SetTraceback(value, trace);
  const PyRef text = PyRef::steal(PyObject_Str(value));
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  TracedAt refused{{}, chars ? chars : "the function raises an error", line_of_exception(value), {}};
  forget_error();
  return refused;
}

}  // namespace

std::shared_ptr<TracedCall> TracedCall::trace(const CallInputs& inputs, const RunOptions& options,
                                              const DynamicSpec* dynamic, bool* is_of_this_size) {
  std::vector<DynamicSize> sizes;
  if (dynamic && !dynamic->find(inputs, &sizes)) return nullptr;
  Shapes shapes;
  for (const Tensor& t : inputs.tensors) shapes.emplace_back(t.shape().begin(), t.shape().end());
  std::shared_ptr<TracedCall> traced = trace_once(inputs, options, shapes, !sizes.empty());
  if (!traced || sizes.empty()) return traced;
  std::vector<bool> reads;
  const SizeLog::KnownReads known(&reads);
  if (traced->asks_for_dynamic_) {
    traced->take_back_effects();
    reads = dynamic_reads(inputs, options, shapes, sizes, traced->uses_);
    traced = trace_once(inputs, options, shapes, true);
    if (!traced) return nullptr;
  }
  const PyRef anew = inputs.anew;  // of the first run, which is this call's
  const bool is_done = traced->make_dynamic(inputs, options, sizes);
  inputs.anew = anew;
  if (is_done) return traced;
  traced->take_back_effects();
  if (is_of_this_size) *is_of_this_size = traced->n_traces_ > 1;
  return nullptr;
}

// Which reads of sizes give others where the named sizes are others, as a trace at such sizes tells.
std::vector<bool> TracedCall::dynamic_reads(const CallInputs& inputs, const RunOptions& options, Shapes shapes,
                                            const std::vector<DynamicSize>& sizes, std::span<const SizeUse> first) {
  int64_t more = 1;
  for (const DynamicSize& size : sizes) {
    for (const auto& [input, axis] : size.places) shapes[input][axis] = 2 * shapes[input][axis] + more;
    more += 2;
  }
  RunOptions as_first;
  as_first.guards_variables = options.guards_variables;
  const std::shared_ptr<TracedCall> other = trace_once(inputs, as_first, shapes, true);
  if (!other) return take_refusal(), std::vector<bool>{};
  other->take_back_effects();
  const auto values = [](std::span<const SizeUse> uses) {
    std::vector<int64_t> read;
    for (const SizeUse& use : uses)
      if (use.kind == SizeUse::Kind::kSize) read.push_back(use.value);
    return read;
  };
  const std::vector<int64_t> own = values(first), found = values(other->uses_);
  std::vector<bool> differ;
  for (size_t i = 0; i < std::min(own.size(), found.size()); ++i) differ.push_back(own[i] != found[i]);
  return differ;
}

std::shared_ptr<TracedCall> TracedCall::trace_at_sizes(const CallInputs& inputs, const RunOptions& options) {
  Shapes shapes;
  for (const Tensor& t : inputs.tensors) shapes.emplace_back(t.shape().begin(), t.shape().end());
  return trace_once(inputs, options, shapes, true);
}

// A stored size becomes a plain number once the trace has ended.
bool TracedCall::find_stored_sizes(const SizeLog& log) {
  std::vector<PyObject*> sizes;
  hides_sizes_ = !effects_.find_sizes(&sizes);
  for (PyObject* size : sizes)
    if (log.use_of(size) != SizeUse::Operand::kNone) stored_sizes_[size] = log.use_of(size);
  if (sizes.empty()) return true;
  effects_.take_back();
  return effects_.replay(plain_number, nullptr);
}

// Why a trace at other sizes gives something else than tensors like this one's; empty: it does not.
std::string TracedCall::other_result(const TracedCall& other) const {
  if (same_tree(result_, other.result_) != 1) {
    forget_error();
    return "the function returns another structure";
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].input != other.results_[i].input || results_[i].same_as != other.results_[i].same_as)
      return "the function returns a different argument";
    PyObject *own = results_[i].constant.get(), *found = other.results_[i].constant.get();
    if ((!own && !found) || (results_[i].size && results_[i].size == other.results_[i].size)) continue;
    if (own && found && same_static(own, found) == 1) continue;
    forget_error();
    return "the function returns a different object that is not a tensor. Fix: return a size as bp.full((), size)";
  }
  if (uses_.empty()) return "";
  const auto same = [&](PyObject* a, PyObject* b) {
    const auto own = stored_sizes_.find(a), found = other.stored_sizes_.find(b);
    return own != stored_sizes_.end() && found != other.stored_sizes_.end() && own->second == found->second;
  };
  return effects_.are_like(other.effects_, same) ? "" : "the function stores something else";
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
      const std::shared_ptr<TracedCall> other = trace_once(inputs, as_first, shapes, true);
      if (!other) return take_refusal();
      other->take_back_effects();
      guards_.merge(std::move(other->guards_));
      if (unkept_.empty()) unkept_ = other->unkept_;
      const std::string why = other_result(*other);
      return why.empty() ? TracedAt{other->graph_, "", {}, other->uses_} : TracedAt{{}, why, {}, {}};
    } catch (const Error& error) {
      if (error.code() == BP_ERROR_PYTHON) throw;
      return {{}, error.what(), {}, {}};
    }
  };
  notes_.uses = uses_;
  const PyObject* const done = guarded([&]() -> PyObject* {
    graph_ = with_dynamic_sizes(graph_, sizes, trace_at, graph_options(inputs, options), &notes_);
    return Py_None;
  });
  return done && check_uses(inputs, options, sizes);
}

// A graph that is kept with its function may be checked by running that at each size; one that stands alone may not.
bool TracedCall::check_uses(const CallInputs& inputs, const RunOptions& options,
                            const std::vector<DynamicSize>& sizes) {
  unknown_ = notes_.unknown;
  const auto is_unknown = [&](uint32_t use) { return !notes_.expressions[use]; };
  for (const Result& result : results_)
    if (unknown_.empty() && result.size && is_unknown(*result.size))
      unknown_ = "returns a number that it computes from a size";
  for (const auto& stored : stored_sizes_)
    if (unknown_.empty() && is_unknown(stored.second)) unknown_ = "stores a number that it computes from a size";
  if (unknown_.empty() && hides_sizes_ && !uses_.empty()) unknown_ = "stores an object that may hold a size";
  if (unknown_.empty()) return true;
  if (options.guards_variables) {
    right_sizes_.insert(sizes_of(inputs));
    return true;
  }
  raise(BP_ERROR_SHAPE,
        "%s: the size \"%s\" cannot be dynamic: the function %s, and its result at other sizes is unknown. Fix: "
        "leave it out of `dynamic`, or use the size only in +, -, *, // and %% with numbers, and in comparisons",
        inputs.call.name, sizes[0].name.c_str(), unknown_.c_str());
  return false;
}

std::vector<int64_t> TracedCall::sizes_of(const CallInputs& inputs) const {
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < inputs_.size(); ++k)
    for (size_t axis = 0; axis < inputs_[k].dynamic.size(); ++axis)
      if (inputs_[k].dynamic[axis]) sizes.push_back(inputs.tensors[k].shape()[axis]);
  return sizes;
}

bool TracedCall::has_to_run_at(const CallInputs& inputs) const {
  return !unknown_.empty() && right_sizes_.count(sizes_of(inputs)) == 0;
}

bool TracedCall::accept_sizes(const CallInputs& inputs, TracedCall& own) {
  constexpr size_t kMostSizes = 4096;
  const std::span<const Tensor> tensors(inputs.tensors.data(), inputs.tensors.size());
  const auto is_unknown = [&](const Result& result) { return result.size && !notes_.expressions[*result.size]; };
  const bool stores_unknown =
      hides_sizes_ || std::any_of(stored_sizes_.begin(), stored_sizes_.end(),
                                  [&](const auto& stored) { return !notes_.expressions[stored.second]; });
  const bool is_right = !stores_unknown && own.unkept_.empty() &&
                        std::none_of(results_.begin(), results_.end(), is_unknown) && other_result(own).empty() &&
                        graph_.difference(own.graph_, tensors).empty();
  std::set<std::vector<int64_t>>& sizes = is_right ? right_sizes_ : wrong_sizes_;
  if (sizes.size() == kMostSizes) sizes.erase(sizes.begin());
  sizes.insert(sizes_of(inputs));
  if (is_right) guards_.merge(own.guards_);
  return is_right;
}

bool TracedCall::same_sizes(const CallInputs& inputs, std::string* why) const {
  std::vector<int64_t> sizes = sizes_of(inputs);
  if (sizes == accepted_) return true;
  if (!wrong_sizes_.empty() && wrong_sizes_.count(sizes)) {
    if (why) *why = "it does something else at these sizes, where it " + unknown_;
    return false;
  }
  std::string refusal = graph_.refusal_of_sizes({inputs.tensors.data(), inputs.tensors.size()});
  if (refusal.empty())
    accepted_ = std::move(sizes);
  else if (why)
    *why = std::move(refusal);
  return refusal.empty();
}

}  // namespace backplane::python
