// Matching positions and keywords against a record, and the errors that say what would have matched.
#include "bindings/ops/op_signature.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/ops/op_describe.hpp"
#include "bindings/ops/other_forms.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/number_hook.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

template <class T>
T element_of(const bp_array& array, uint32_t index) noexcept {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + size_t{index} * array.stride);
}

// `tags` are words between commas.
bool has_tag(const char* tags, std::string_view tag) noexcept {
  const std::string_view all(tags ? tags : "");
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(',', begin), all.size());
    if (all.substr(begin, end - begin) == tag) return true;
    begin = end + 1;
  }
  return false;
}

// 0 or -1: a reduction may name such an axis of a number, which has none.
bool is_axis_of_number(PyObject* axis) noexcept {
  if (!axis || !PyLong_CheckExact(axis)) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(axis, &overflow);
  return overflow == 0 && (number == 0 || number == -1);
}

// An empty sequence for axes that may be absent, which then mean all.
bool no_axes(const bp_arg_def& spec, PyObject* value) noexcept {
  return spec.type == BP_TYPE_AXES && (spec.flags & BP_ARG_OPTIONAL) &&
         ((PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 0) ||
          (PyList_Check(value) && PyList_GET_SIZE(value) == 0));
}

}  // namespace

PyObject* OpSignature::other_form() const {
  if (!other_form_) other_form_ = &find_other_form(def_->name, name_);
  return *other_form_;
}

PyObject* OpSignature::own_names(PyObject* keywords) const {
  if (!keywords) return nullptr;
  const Py_ssize_t count = PyTuple_GET_SIZE(keywords);
  PyRef names = PyRef::steal(PyTuple_New(count));
  if (!names) throw keep_python_error();
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* name = PyTuple_GET_ITEM(keywords, k);
    const int32_t index = spellings_->find_word(name);
    PyTuple_SET_ITEM(names.get(), k, Py_NewRef(index < 0 ? name : parameters_[static_cast<size_t>(index)].name.get()));
  }
  return names.release();
}

OpSignature::OpSignature(OpHandle op, Variant variant, PyObject* python_name)
    : op_(op), def_(hold_op_def(op)), name_(PyUnicode_AsUTF8(python_name)) {
  parameters_.reserve(def_->args.count);
  for (uint32_t i = 0; i < def_->args.count; ++i) {
    const auto spec = element_of<bp_arg_def>(def_->args, i);
    const bool required = !(spec.flags & (BP_ARG_HAS_DEFAULT | BP_ARG_OPTIONAL)) && spec.type != BP_TYPE_GENERATOR;
    parameters_.push_back({PyRef::steal(PyUnicode_InternFromString(spec.name)), spec, required});
    if (spec.type == BP_TYPE_GENERATOR) generator_ = static_cast<int32_t>(i);
    if (!(spec.flags & BP_ARG_KEYWORD_ONLY)) positional_ = static_cast<int32_t>(i) + 1;
    if (spec.flags & BP_ARG_POSITIONAL_ONLY) positional_only_ = static_cast<int32_t>(i) + 1;
  }
  spellings_ = std::make_unique<const Spellings>(def_->name, name_, variant == Variant::InPlace, parameters_);
  selects_by_dtype_ = variant == Variant::Functional && spellings_->selects_by_dtype();
  if (variant == Variant::Functional) form_kinds_ = form_kinds_of(def_->name);
  if (def_->shapes.count > 0) {
    const auto shape = element_of<bp_shape_rule>(def_->shapes, 0);
    const bool reduces = std::string_view(shape.name) == "reduce" && shape.n_args > 1 && shape.args[0] == 0;
    if (reduces && shape.args[1] < def_->args.count && (parameters_[shape.args[1]].spec.flags & BP_ARG_OPTIONAL))
      reduced_axis_ = static_cast<int32_t>(shape.args[1]);
  }
  numbers_have_axis_ = reduced_axis_ >= 0 && !has_tag(def_->tags, "numbers:no_axis");
  makes_view_ = (def_->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  takes_out_ = variant == Variant::Functional && (def_->flags & BP_OP_OUT);
  if (positional_ > 0) {
    const bp_arg_def& last = parameters_[static_cast<size_t>(positional_ - 1)].spec;
    ends_in_axes_ = last.type == BP_TYPE_AXES;
    gathers_ints_ = last.type == BP_TYPE_SHAPE || ends_in_axes_;
    const auto is_number_by_name = [](const Parameter& parameter) {
      return (parameter.spec.flags & BP_ARG_KEYWORD_ONLY) && parameter.spec.type == BP_TYPE_SCALAR;
    };
    two_numbers_follow_ = positional_ == 1 && last.type == BP_TYPE_SHAPE &&
                          std::count_if(parameters_.begin(), parameters_.end(), is_number_by_name) == 2;
  }
}

const char* OpSignature::result_name(int32_t result) const noexcept {
  return element_of<bp_result_def>(def_->results, static_cast<uint32_t>(result)).name;
}

int32_t OpSignature::find(PyObject* name) const noexcept {
  for (int32_t i = 0; i < count(); ++i) {
    if (parameters_[static_cast<size_t>(i)].name.get() == name) return i;
  }
  for (const auto& [known, index] : synonyms_)
    if (known.get() == name) return -1;
  for (int32_t i = 0; i < count(); ++i) {
    if (same_name(parameters_[static_cast<size_t>(i)].name.get(), name)) return i;
  }
  return -1;
}

int32_t OpSignature::find_synonym(PyObject* name) const {
  for (const auto& [known, index] : synonyms_)
    if (known.get() == name) return index;
  int32_t index = spellings_->find_word(name);
  if (index < 0 && !spellings_->claims(name)) index = find_derived_word(name, parameters_);
  constexpr size_t kMostKnown = 8;
  if (index >= 0 && PyUnicode_CHECK_INTERNED(name) && synonyms_.size() < kMostKnown)
    synonyms_.emplace_back(PyRef::borrow(name), index);
  return index;
}

bool OpSignature::raise_unknown(PyObject* keyword) const {
  std::string names;
  for (const Parameter& parameter : parameters_)
    names += (names.empty() ? "" : ", ") + std::string(parameter.spec.name);
  if (takes_out_) names += ", out";
  if (!spellings_->empty()) names += "; or " + spellings_->signatures();
  forget_error();
  raise(BP_ERROR_TYPE, "%s: found an argument '%U', expected one of: %s", name_, keyword, names.c_str());
  return false;
}

PyObject* OpSignature::earlier_word(PyObject* keywords, Py_ssize_t before, int32_t index) const {
  for (Py_ssize_t k = 0; k < before; ++k) {
    PyObject* word = PyTuple_GET_ITEM(keywords, k);
    const int32_t own = find(word);
    if ((own < 0 ? find_synonym(word) : own) == index) return word;
  }
  return nullptr;
}

bool OpSignature::match_keywords(PyObject* const* values, PyObject* keywords, PyObject** given, PyObject** out) const {
  const Py_ssize_t n_keywords = PyTuple_GET_SIZE(keywords);
  bool reduces_dim = false;
  for (Py_ssize_t k = 0; k < n_keywords; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    int32_t index = find(keyword);
    if (index < 0) [[unlikely]] {
      index = find_synonym(keyword);
      const bool is_dim = index >= 0 && PyUnicode_CompareWithASCIIString(keyword, "dim") == 0;
      if (is_dim && no_axes(parameters_[static_cast<size_t>(index)].spec, values[k])) {
        raise(BP_ERROR_VALUE,
              "%s: argument 'dim': found no axes, which PyTorch takes as all axes. Fix: leave it out, or use "
              "axis for none",
              name_);
        return false;
      }
      reduces_dim |= is_dim && index == reduced_axis_;
    }
    if (index < 0) {
      if (!takes_out_ || !same_name(keyword, out_keyword())) return raise_unknown(keyword);
      *out = values[k] == Py_None ? nullptr : values[k];
    } else if (given[index]) {
      if (PyObject* earlier = earlier_word(keywords, k, index))
        raise(BP_ERROR_TYPE, "%s: found %U and %U, expected one of them; the argument was given twice", name_, earlier,
              keyword);
      else
        raise(BP_ERROR_TYPE, "%s: argument '%U' was given twice, by position and by name", name_, keyword);
      return false;
    } else {
      given[index] = values[k];
    }
  }
  if (reduces_dim && given[0] && is_tensor(given[0]) && handle_of(given[0])->dl.ndim == 0 &&
      is_axis_of_number(given[reduced_axis_]))
    given[reduced_axis_] = Py_None;
  return true;
}

bool OpSignature::match(PyObject* const* args, size_t n_positional, PyObject* keywords, PyObject** given,
                        PyObject** out) const {
  if (n_positional > static_cast<size_t>(positional_)) {
    const bool more = positional_ < count();
    raise(BP_ERROR_TYPE, "%s: found %zu arguments by position, expected at most %d%s%s%s", name_, n_positional,
          positional_, more ? "; '" : "", more ? parameters_[static_cast<size_t>(positional_)].spec.name : "",
          more ? "' is keyword-only" : "");
    return false;
  }
  for (size_t i = 0; i < n_positional; ++i) given[i] = args[i];
  return !keywords || match_keywords(args + n_positional, keywords, given, out);
}

PyObject* OpSignature::raise_unread(const Parameter& parameter, PyObject* object) const {
  PyRef found = found_kind(object);
  if (!found) return nullptr;
  const bool wants_tensor = parameter.spec.type == BP_TYPE_TENSOR;
  const bool number_for_tensor = parameter.spec.type == BP_TYPE_SCALAR;
  const char* fix = wants_tensor        ? "; make one with backplane.asarray(value)"
                    : number_for_tensor ? "; an argument of kind Scalar is static: pass x.item() for a tensor x, "
                                          "a constant through which no gradient flows"
                                        : "";
  return raise(BP_ERROR_TYPE, "%s: argument '%s': found %U, expected %s%s%s", name_, parameter.spec.name, found.get(),
               expected_kind(parameter.spec), parameter.spec.flags & BP_ARG_OPTIONAL ? " or None" : "", fix);
}

PyObject* OpSignature::raise_numpy_order(PyObject* ints) const {
  std::vector<const char*> names;
  for (const Parameter& parameter : parameters_)
    if (parameter.spec.type == BP_TYPE_SCALAR) names.push_back(parameter.spec.name);
  return raise(
      BP_ERROR_TYPE,
      "%s: found the ints %R by position: they may be a shape, or %s, %s and a shape in NumPy's order. Fix: %s(shape, "
      "%s=..., %s=...), or %s(%R) for that shape",
      name_, ints, names[0], names[1], name_, names[0], names[1], name_, ints);
}

PyObject* OpSignature::raise_gathered(PyObject* object) const {
  std::string names;
  for (const Parameter& parameter : parameters_) {
    if (!(parameter.spec.flags & BP_ARG_KEYWORD_ONLY)) continue;
    names += (names.empty() ? "; by name it would be one of: " : ", ") + std::string(parameter.spec.name);
  }
  if (PyBool_Check(object) && !spellings_->empty()) names += "; PyTorch's signatures are " + spellings_->signatures();
  const bp_arg_def& last = parameters_[static_cast<size_t>(positional_ - 1)].spec;
  return raise(BP_ERROR_TYPE, "%s: found %R by position among the ints of argument '%s', expected %s%s", name_, object,
               last.name, expected_kind(last), names.c_str());
}

namespace {

// "Tensor, int, dim=tuple"
std::string found_arguments(PyObject* const* args, size_t n_positional, PyObject* keywords) {
  std::string text;
  const size_t n_keywords = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  for (size_t i = 0; i < n_positional + n_keywords; ++i) {
    if (i > 0) text += ", ";
    if (i >= n_positional) {
      const char* word = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i - n_positional)));
      text += std::string(word ? word : "?") + "=";
    }
    const std::string_view type(Py_TYPE(args[i])->tp_name);
    text += type.substr(type.rfind('.') + 1);
  }
  return text;
}

}  // namespace

// max(x, axis=None, *, keepdims=False, out=None); max(x, dim, *, keepdim=False)
std::string OpSignature::all_signatures() const {
  PyRef own = PyRef::steal(op_text_signature(*this));
  const char* text = own ? PyUnicode_AsUTF8(own.get()) : nullptr;
  if (!text) PyErr_Clear();
  return std::string(name_) + (text ? text : "(...)") + "; " + spellings_->signatures();
}

PyObject* OpSignature::raise_no_signature(PyObject* const* args, size_t n_positional, PyObject* keywords) const {
  return raise(BP_ERROR_TYPE, "%s: found (%s), expected the arguments of one of these signatures: %s", name_,
               found_arguments(args, n_positional, keywords).c_str(), all_signatures().c_str());
}

namespace {

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// Calls visit(object, handle) for each tensor that was read of `given`.
template <class Visit>
void for_tensors(PyObject* given, bp_value& value, Visit visit) {
  if (value.tag == BP_TAG_TENSOR) visit(given, value.u.t);
  if (value.tag != BP_TAG_TENSOR_LIST || !is_sequence(given)) return;
  auto* handles = const_cast<bp_tensor**>(value.u.tensors);  // of the call's own room
  for (uint32_t k = 0; k < value.count && k < PySequence_Fast_GET_SIZE(given); ++k) {
    PyRef element = PyRef::borrow(PySequence_Fast_GET_ITEM(given, k));  // another thread may change the list
    if (handles[k]) visit(element.get(), handles[k]);
  }
}

// Floats of lists were read in the default dtype. Beside a tensor of float64 or complex128 they are read again in it,
// so that none loses its digits. False with a Python error.
[[gnu::cold, gnu::noinline]] bool keep_digits(PyObject* const* given, CallArguments& arguments, int32_t count) {
  bool wide = false, made = true;
  const auto look = [&](PyObject*, bp_tensor* t) { wide |= t->dtype == BP_FLOAT64 || t->dtype == BP_COMPLEX128; };
  const auto read_again = [&](PyObject* data, bp_tensor*& t) {
    if (!made || !is_sequence(data) || (t->dtype != BP_FLOAT32 && t->dtype != BP_COMPLEX64)) return;
    PyRef tensor = PyRef::steal(tensor_of_data(data, t->dtype == BP_FLOAT32 ? BP_FLOAT64 : BP_COMPLEX128));
    if (tensor)
      tensor = PyRef::steal(guarded([&] { return wrap_tensor(to_device(tensor_of(tensor.get()), default_device())); }));
    made = static_cast<bool>(tensor);
    if (!made) return;
    t = handle_of(tensor.get());
    arguments.keep_alive(std::move(tensor));
  };
  for (int32_t i = 0; i < count; ++i)
    if (given[i]) for_tensors(given[i], arguments.values()[i], look);
  for (int32_t i = 0; wide && i < count; ++i)
    if (given[i]) for_tensors(given[i], arguments.values()[i], read_again);
  return made;
}

}  // namespace

int32_t OpSignature::read(PyObject* const* given, CallArguments& arguments) const {
  int32_t used = 0;
  bool of_data = false, of_numbers = false;
  bp_value* values = arguments.values();
  for (int32_t i = 0; i < count(); ++i) {
    const Parameter& parameter = parameters_[static_cast<size_t>(i)];
    if (given[i]) {
      int read = read_argument(parameter.spec, given[i], arguments, &values[i]);
      if (read < 0 && (def_->dtype_flags & BP_DTYPE_COMPARES) && read_compared(given[i], &values[i])) read = 1;
      if (read == 0) return raise_unread(parameter, given[i]), -1;
      if (read < 0) return place_error(name_, parameter.spec.name), -1;
      of_data |= read == 2;
      of_numbers |= read == 3;
      used = i + 1;
    } else if (parameter.required) {
      raise(BP_ERROR_TYPE, "%s: missing argument '%s', expected %s", name_, parameter.spec.name,
            expected_kind(parameter.spec));
      return -1;
    } else {
      values[i] = parameter.spec.default_value;
    }
  }
  if (of_data && !keep_digits(given, arguments, used)) [[unlikely]]
    return -1;
  if (of_numbers) [[unlikely]]
    g_number_hook.follow(op_, given, values, used);
  if (numbers_have_axis_ && values[0].tag == BP_TAG_TENSOR && values[0].u.t->dl.ndim == 0) [[unlikely]] {
    if (is_axis_of_number(given[reduced_axis_]))
      values[reduced_axis_] = parameters_[static_cast<size_t>(reduced_axis_)].spec.default_value;
  }
  if (generator_ < 0) [[likely]]
    return used;
  if (!reserve(given, arguments)) return -1;
  return std::max(used, generator_ + 1);
}

bool OpSignature::reserve(PyObject* const* given, CallArguments& arguments) const {
  bp_value* values = arguments.values();
  PyObject* generator = given[generator_] == Py_None ? nullptr : given[generator_];
  auto* state = arguments.allocate<bp_generator_state>(1);
  if (!reserve_positions(generator, op_, {values, static_cast<size_t>(count())}, state)) return false;
  values[generator_] = bp_value{};
  values[generator_].tag = BP_TAG_GENERATOR;
  values[generator_].u.g = state;
  return true;
}

}  // namespace backplane::python
