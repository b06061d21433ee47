// Calls of an op: its signature is selected, its arguments are read, and it runs. See op_object.hpp.
#include "bindings/ops/op_object.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "backplane/changed_arguments.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/op_describe.hpp"
#include "bindings/ops/op_results.hpp"
#include "bindings/ops/op_work.hpp"
#include "bindings/tensor/default_float.hpp"
#include "bindings/tensor/named_dims.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr int32_t kInlineResults = 8;

// A call as Python made it: the positional objects, then one object for each keyword (a tuple of names, or NULL).
struct CallSite {
  PyObject* const* args;
  size_t n_positional;
  PyObject* keywords;

  bool has_named_dims() const { return any_has_named_dims(args, n_positional, keywords); }
};

// `count` outs given by the caller, borrowed, as slots of the call.
bool read_outs(OpObject* self, PyObject* out, bp_value* outs, int32_t count) {
  const bool single = count == 1 && is_tensor(out);
  PyObject* const* elements = single ? &out : PyTuple_Check(out) ? &PyTuple_GET_ITEM(out, 0) : nullptr;
  const Py_ssize_t found = single ? 1 : elements ? PyTuple_GET_SIZE(out) : -1;
  for (int32_t i = 0; i < count; ++i) {
    if (found != count || !is_tensor(elements[i])) {
      PyRef kind = found_kind(out);
      if (kind) {
        raise(BP_ERROR_TYPE, "%U: argument 'out': found %U, expected %s", self->name, kind.get(),
              count == 1 ? "a Tensor" : "a tuple with a Tensor per result");
      }
      return false;
    }
    outs[i] = tensor_value(handle_of(elements[i]));
    outs[i].flags = BP_VALUE_GIVEN;
  }
  return true;
}

PyTypeObject* results_type(OpObject* self, const OpSignature& signature) {
  if (!self->results) self->results = new_results_type(self->name, signature);
  return self->results;
}

PyObject* wrap_results(OpObject* self, const OpSignature& signature, bp_value* outs) {
  const int32_t count = signature.result_count();
  if (count == 1) return outs[0].tag == BP_TAG_TENSOR ? wrap_tensor(outs[0].u.t) : wrap_result(outs[0]);
  PyTypeObject* type = results_type(self, signature);
  PyRef results = PyRef::steal(type ? PyStructSequence_New(type) : nullptr);
  for (int32_t i = 0; i < count; ++i) {
    PyObject* result = wrap_result(outs[i]);
    if (results) {
      PyStructSequence_SetItem(results.get(), i, result);
      if (!result) results = PyRef{};
    } else {
      Py_XDECREF(result);
    }
  }
  return results.release();
}

PyObject* run_functional(OpObject* self, const OpSignature& signature, const bp_value* values, int32_t count,
                         PyObject* out) {
  const int32_t n_results = signature.result_count();
  bp_value inline_outs[kInlineResults];
  std::fill_n(inline_outs, std::min(n_results, kInlineResults), bp_value{});
  std::vector<bp_value> many(n_results > kInlineResults ? static_cast<size_t>(n_results) : 0);
  bp_value* outs = many.empty() ? inline_outs : many.data();
  if (out && !read_outs(self, out, outs, n_results)) return nullptr;
  if (bp_status status = call_op(self->op, values, count, outs, n_results, bytes_of_call(signature, values, count)))
      [[unlikely]] {
    return raise_status(status);
  }
  return out ? Py_NewRef(out) : wrap_results(self, signature, outs);
}

// Where floats that name no dtype are not the core's.
[[gnu::cold, gnu::noinline]] PyObject* run_with_default(OpObject* self, const OpSignature& signature,
                                                        const bp_value* values, int32_t count, PyObject* out) {
  const StatedArguments stated(self->op, values, count);
  return run_functional(self, signature, stated.values(), stated.count(), out);
}

const Overload* select(const OpSignature& signature, const CallSite& site, PyObject** values, PyObject** out,
                       const bp_tensor* first = nullptr) {
  return signature.select(site.args, site.n_positional, site.keywords, values, out, first);
}

PyObject* run_with_named_dims(OpObject* self, const CallSite& site) {
  return call_with_named_dims(reinterpret_cast<PyObject*>(self), site.args, site.n_positional, site.keywords);
}

// What the op's Python function answers, which knows arguments by the entry's own names; NotImplemented: nothing.
[[gnu::cold, gnu::noinline]] PyRef run_form(const OpSignature& signature, const CallSite& site) {
  PyObject* form = signature.other_form();
  if (!form) return PyRef::borrow(Py_NotImplemented);
  const PyRef names = PyRef::steal(signature.own_names(site.keywords));
  return PyRef::steal(PyObject_Vectorcall(form, site.args, site.n_positional, names.get()));
}

// For arguments that do not match the entry's signature, before anything runs: what another signature or the op's
// Python function answers, or the error of the match, which is set.
[[gnu::cold]] PyObject* run_other_form(OpObject* self, const CallSite& site, bool selects = true) {
  const OpSignature& signature = *signature_of(self);
  if (site.has_named_dims()) {
    PyErr_Clear();
    return run_with_named_dims(self, site);
  }
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyObject *values[Overload::kMost], *out = nullptr;
  const Overload* overload = selects ? select(signature, site, values, &out) : nullptr;
  PyRef result = overload ? PyRef::steal(overload->run(values, out)) : run_form(signature, site);
  if (!overload && result.get() == Py_NotImplemented) {
    PyErr_Restore(type, error, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return result.release();
}

// A call with a keyword that only further signatures of the op have: one of them is selected before anything runs.
PyObject* run_overload(OpObject* self, const CallSite& site) {
  const OpSignature& signature = *signature_of(self);
  if (site.has_named_dims()) return run_with_named_dims(self, site);
  PyObject *values[Overload::kMost], *out = nullptr;
  if (const Overload* overload = select(signature, site, values, &out)) [[likely]]
    return overload->run(values, out);
  return signature.raise_no_signature(site.args, site.n_positional, site.keywords);
}

// The call of the op's own signature that matched arguments spell: by position as far as it goes, the others by name.
class GivenCall {
 public:
  GivenCall(const OpSignature& signature, PyObject* const* given, PyObject* out) {
    const auto count = static_cast<size_t>(signature.count());
    size_t n = 0;
    while (n < static_cast<size_t>(signature.positional()) && given[n]) args_.push_back(given[n++]);
    n_positional_ = n;
    std::vector<PyObject*> names;
    for (; n < count; ++n) {
      if (!given[n]) continue;
      names.push_back(signature.parameters()[n].name.get());
      args_.push_back(given[n]);
    }
    if (out) {
      names.push_back(out_keyword());
      args_.push_back(out);
    }
    if (names.empty()) return;
    keywords_ = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    if (!keywords_) throw keep_python_error();
    for (size_t i = 0; i < names.size(); ++i)
      PyTuple_SET_ITEM(keywords_.get(), static_cast<Py_ssize_t>(i), Py_NewRef(names[i]));
  }

  CallSite site() const { return {args_.data(), n_positional_, keywords_.get()}; }

 private:
  std::vector<PyObject*> args_;
  size_t n_positional_ = 0;
  PyRef keywords_;
};

// The in-place form of an op with several results: the changed arguments, by name.
PyObject* change_several(OpObject* self, const OpSignature& signature, PyObject* const* given, const bp_value* values,
                         int32_t count) {
  const std::vector<int32_t> changed = changed_arguments(self->op);
  for (size_t i = 0; i < changed.size(); ++i)
    if (changed[i] < 0 || !given[changed[i]] || !is_tensor(given[changed[i]]))
      return raise(BP_ERROR_TYPE, "%U: argument '%s' is changed in place, so it must be a Tensor", self->name,
                   signature.result_name(static_cast<int32_t>(i)));
  use_context_settings();
  if (bp_status status = call_op_inplace(self->op, values, count, bytes_of_call(signature, values, count)))
    return raise_status(status);
  PyTypeObject* type = results_type(self, signature);
  PyRef results = PyRef::steal(type ? PyStructSequence_New(type) : nullptr);
  for (size_t i = 0; results && i < changed.size(); ++i)
    PyStructSequence_SetItem(results.get(), static_cast<Py_ssize_t>(i), Py_NewRef(given[changed[i]]));
  return results.release();
}

// Runs the op on arguments that were read. `site_of_form` makes the call for the op's Python function.
template <class Site>
PyObject* run_read(OpObject* self, const OpSignature& signature, PyObject* const* given, CallArguments& arguments,
                   int32_t count, PyObject* out, Site site_of_form) {
  if (self->variant == Variant::Functional) {
    if (signature.selects_by_dtype(arguments.values())) [[unlikely]] {
      const GivenCall call(signature, given, out);
      PyObject *values[Overload::kMost], *other_out = nullptr;
      if (const Overload* overload = select(signature, call.site(), values, &other_out, arguments.values()[0].u.t))
        return overload->run(values, other_out);
    }
    if (signature.is_for_other_form(given, arguments.values())) [[unlikely]] {
      PyRef answered = run_form(signature, site_of_form());
      if (answered.get() != Py_NotImplemented) return answered.release();
    }
    PyObject* result = is_core_default() ? run_functional(self, signature, arguments.values(), count, out)
                                         : run_with_default(self, signature, arguments.values(), count, out);
    // A trace runs no kernel, so its refusal is of the op itself.
    if (!result && is_pending(BP_ERROR_NOT_IMPLEMENTED) && every_call_taken() && lacks_shape_rule(self->op))
        [[unlikely]]
      return raise_no_shape_rule(self->op, self->name);
    return result;
  }
  if (signature.result_count() > 1) return change_several(self, signature, given, arguments.values(), count);
  if (!given[0] || !is_tensor(given[0])) {
    return raise(BP_ERROR_TYPE, "%U: its first argument is changed in place, so it must be a Tensor", self->name);
  }
  use_context_settings();
  const uint64_t bytes = bytes_of_call(signature, arguments.values(), count);
  if (bp_status status = call_op_inplace(self->op, arguments.values(), count, bytes)) return raise_status(status);
  return Py_NewRef(given[0]);
}

PyObject* run(OpObject* self, PyObject* const* args, size_t n_positional, PyObject* keywords) {
  const OpSignature& signature = *signature_of(self);
  CallArguments arguments(signature.count());
  PyObject* inline_given[CallArguments::kInline];
  PyObject** given = signature.count() <= CallArguments::kInline
                         ? inline_given
                         : arguments.allocate<PyObject*>(static_cast<size_t>(signature.count()));
  std::fill_n(given, signature.count(), nullptr);
  PyObject* out = nullptr;
  if (!signature.match(args, n_positional, keywords, given, &out)) [[unlikely]]
    return run_other_form(self, {args, n_positional, keywords});
  const int32_t count = signature.read(given, arguments);
  if (count < 0) [[unlikely]]
    return run_other_form(self, {args, n_positional, keywords});
  return run_read(self, signature, given, arguments, count, out, [&] {
    return CallSite{args, n_positional, keywords};
  });
}

// x.reshape(2, 3): the ints beyond the last positional parameter become its tuple.
PyObject* run_gathering(OpObject* self, PyObject* const* args, size_t n_positional, PyObject* keywords) {
  const auto fixed = static_cast<size_t>(signature_of(self)->positional() - 1);
  PyObject* no_int = nullptr;  // after the first, which may be the tuple itself
  for (size_t i = fixed; i < n_positional; ++i) {
    if (PyBool_Check(args[i])) {
      signature_of(self)->raise_gathered(args[i]);
      // Of a reduction the last of two may be PyTorch's keepdim, which the op's Python function knows.
      const bool may_be_flag = signature_of(self)->ends_in_axes() && i == fixed + 1 && n_positional == fixed + 2;
      return may_be_flag ? run_other_form(self, {args, n_positional, keywords}, false) : nullptr;
    }
    if (i > fixed && !no_int && !PyIndex_Check(args[i])) no_int = args[i];
  }
  PyRef ints = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(n_positional - fixed)));
  if (!ints) return nullptr;
  for (size_t i = fixed; i < n_positional; ++i) {
    PyTuple_SET_ITEM(ints.get(), static_cast<Py_ssize_t>(i - fixed), Py_NewRef(args[i]));
  }
  if (!no_int && signature_of(self)->has_numpy_order(n_positional - fixed))
    return signature_of(self)->raise_numpy_order(ints.get());
  std::vector<PyObject*> gathered(args, args + fixed);
  gathered.push_back(ints.get());
  const Py_ssize_t n_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  gathered.insert(gathered.end(), args + n_positional, args + n_positional + n_keywords);
  if (no_int) {
    signature_of(self)->raise_gathered(no_int);
    return run_other_form(self, {gathered.data(), fixed + 1, keywords});
  }
  return run(self, gathered.data(), fixed + 1, keywords);
}

// A tensor where the axes stand: a second operand, where another signature takes one, and else read as ints.
[[gnu::cold]] PyObject* run_with_tensor_last(OpObject* self, const CallSite& site) {
  const OpSignature& signature = *signature_of(self);
  PyObject *values[Overload::kMost], *out = nullptr;
  if (const Overload* overload = select(signature, site, values, &out)) return overload->run(values, out);
  PyRef result = run_form(signature, site);
  if (result.get() != Py_NotImplemented) return result.release();
  return run(self, site.args, site.n_positional, site.keywords);
}

}  // namespace

PyObject* call_given(OpObject* self, PyObject** given, PyObject* out) {
  const OpSignature& signature = *signature_of(self);
  CallArguments arguments(signature.count());
  const int32_t count = signature.read(given, arguments);
  if (count < 0) [[unlikely]]
    return run_other_form(self, GivenCall(signature, given, out).site(), false);
  std::optional<GivenCall> made;
  return run_read(self, signature, given, arguments, count, out,
                  [&] { return made.emplace(signature, given, out).site(); });
}

PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
  return guarded_call([&] {
    OpObject* self = op_object(callable);
    const auto n_positional = static_cast<size_t>(PyVectorcall_NARGS(flagged_count));
    const OpSignature& signature = *signature_of(self);
    if (keywords && signature.needs_overload(keywords)) [[unlikely]]
      return run_overload(self, {args, n_positional, keywords});
    if (signature.gathers_ints() && n_positional >= static_cast<size_t>(signature.positional())) {
      if (n_positional > static_cast<size_t>(signature.positional())) [[unlikely]]
        return run_gathering(self, args, n_positional, keywords);
      if (is_tensor(args[n_positional - 1]) && signature.ends_in_axes()) [[unlikely]]
        return run_with_tensor_last(self, {args, n_positional, keywords});
    }
    return run(self, args, n_positional, keywords);
  });
}

}  // namespace backplane::python
