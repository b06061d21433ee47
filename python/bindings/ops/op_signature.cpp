// Matching positions and keywords against a record, and the errors that say what would have matched.
#include "bindings/ops/op_signature.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/generator.hpp"
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

// "out", interned.
PyObject* out_keyword() {
  static PyObject* name = PyUnicode_InternFromString("out");
  return name;
}

bool same_name(PyObject* a, PyObject* b) noexcept { return a == b || PyUnicode_Compare(a, b) == 0; }

// Each keyword of each call is asked, so the length first.
bool is_dim(PyObject* name) noexcept {
  return PyUnicode_GET_LENGTH(name) == 3 && PyUnicode_CompareWithASCIIString(name, "dim") == 0;
}
bool is_keepdim(PyObject* name) noexcept {
  return PyUnicode_GET_LENGTH(name) == 7 && PyUnicode_CompareWithASCIIString(name, "keepdim") == 0;
}

// An empty sequence for axes that may be absent, which then mean all.
bool no_axes(const bp_arg_def& spec, PyObject* value) noexcept {
  return spec.type == BP_TYPE_AXES && (spec.flags & BP_ARG_OPTIONAL) &&
         ((PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 0) ||
          (PyList_Check(value) && PyList_GET_SIZE(value) == 0));
}

}  // namespace

PyObject* OpSignature::dim_form() const {
  if (!dim_form_) dim_form_ = find_dim_form(def_->name, name_);
  return *dim_form_;
}

PyObject* OpSignature::other_form() const {
  if (!other_form_) other_form_ = find_other_form(def_->name, name_);
  return *other_form_;
}

bool spells_dim(PyObject* keywords) noexcept {
  const Py_ssize_t count = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(keywords, i);
    if (is_dim(name) || is_keepdim(name)) return true;
  }
  return false;
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
  if (variant == Variant::Functional) form_kinds_ = form_kinds_of(def_->name);
  makes_view_ = (def_->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  takes_out_ = variant == Variant::Functional && (def_->flags & BP_OP_OUT);
  if (positional_ > 0) {
    const bp_arg_def& last = parameters_[static_cast<size_t>(positional_ - 1)].spec;
    ends_in_axes_ = last.type == BP_TYPE_AXES;
    gathers_ints_ = last.type == BP_TYPE_SHAPE || ends_in_axes_;
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

namespace {

// What NumPy, the array API and PyTorch call the operands of their functions.
struct OperandWord {
  std::string_view word;
  std::string_view name;  // of our parameter; empty: the first or second one
  size_t position;
};
constexpr OperandWord kOperandWords[] = {{"x1", "x", 0}, {"x", "x1", 0},    {"a", "", 0},       {"input", "", 0},
                                         {"arr", "", 0}, {"ary", "", 0},    {"m", "", 0},       {"array", "", 0},
                                         {"A", "", 0},   {"arrays", "", 0}, {"tensors", "", 0}, {"x2", "y", 1},
                                         {"y", "x2", 1}, {"b", "", 1},      {"other", "", 1},   {"mat2", "", 1},
                                         {"vec", "", 1}, {"vec2", "", 1},   {"tensor", "", 1}};

}  // namespace

int32_t OpSignature::find_operand(PyObject* name) const noexcept {
  for (const OperandWord& operand : kOperandWords) {
    if (PyUnicode_CompareWithASCIIString(name, operand.word.data()) != 0) continue;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const bp_arg_def& spec = parameters_[i].spec;
      if (spec.type == BP_TYPE_TENSOR && (operand.name.empty() ? i == operand.position : operand.name == spec.name))
        return static_cast<int32_t>(i);
    }
  }
  return -1;
}

int32_t OpSignature::find_known_synonym(PyObject* name) const {
  for (const auto& [known, index] : synonyms_)
    if (known.get() == name) return index;
  const int32_t index = find_synonym(name);
  constexpr size_t kMostKnown = 8;
  if (index >= 0 && PyUnicode_CHECK_INTERNED(name) && synonyms_.size() < kMostKnown)
    synonyms_.emplace_back(PyRef::borrow(name), index);
  return index;
}

int32_t OpSignature::find_synonym(PyObject* name) const noexcept {
  const bool keepdim = is_keepdim(name);
  if (!keepdim && !is_dim(name)) return find_operand(name);
  int32_t found = -1;
  for (int32_t i = 0; i < count(); ++i) {
    const bp_arg_def& spec = parameters_[static_cast<size_t>(i)].spec;
    const bool axis = spec.type == BP_TYPE_AXIS || spec.type == BP_TYPE_AXES;
    if (keepdim ? std::string_view(spec.name) != "keepdims" : !axis) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

bool OpSignature::raise_unknown(PyObject* keyword) const {
  std::string names;
  for (const Parameter& parameter : parameters_)
    names += (names.empty() ? "" : ", ") + std::string(parameter.spec.name);
  if (takes_out_) names += ", out";
  forget_error();
  raise(BP_ERROR_TYPE, "%s: found an argument '%U', expected one of: %s", name_, keyword, names.c_str());
  return false;
}

bool OpSignature::match_keywords(PyObject* const* values, PyObject* keywords, PyObject** given, PyObject** out) const {
  const Py_ssize_t n_keywords = PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t k = 0; k < n_keywords; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    int32_t index = find(keyword);
    if (index < 0) [[unlikely]] {
      index = find_known_synonym(keyword);
      if (index >= 0 && no_axes(parameters_[static_cast<size_t>(index)].spec, values[k])) {
        raise(BP_ERROR_VALUE,
              "%s: argument 'dim': found no axes, which PyTorch reads as all of them; leave it out, or use "
              "axis for none",
              name_);
        return false;
      }
    }
    if (index < 0) {
      if (!takes_out_ || !same_name(keyword, out_keyword())) return raise_unknown(keyword);
      *out = values[k] == Py_None ? nullptr : values[k];
    } else if (given[index]) {
      raise(BP_ERROR_TYPE, "%s: argument '%U' was given twice, by position and by name", name_, keyword);
      return false;
    } else {
      given[index] = values[k];
    }
  }
  return true;
}

bool OpSignature::match(PyObject* const* args, size_t n_positional, PyObject* keywords, PyObject** given,
                        PyObject** out) const {
  if (n_positional > static_cast<size_t>(positional_)) {
    const bool more = positional_ < count();
    raise(BP_ERROR_TYPE, "%s: found %zu arguments by position, expected at most %d%s%s%s", name_, n_positional,
          positional_, more ? "; '" : "", more ? parameters_[static_cast<size_t>(positional_)].spec.name : "",
          more ? "' goes by name" : "");
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

PyObject* OpSignature::raise_gathered(PyObject* object) const {
  std::string names;
  bool corrects = false;  // PyTorch's `unbiased` says it
  for (const Parameter& parameter : parameters_) {
    if (!(parameter.spec.flags & BP_ARG_KEYWORD_ONLY)) continue;
    names += (names.empty() ? "; by name it would be one of: " : ", ") + std::string(parameter.spec.name);
    corrects = corrects || std::string_view(parameter.spec.name) == "correction";
  }
  if (PyBool_Check(object) && dim_form())
    names += "; PyTorch's is x." + std::string(name_) + "(dim=0, " + (corrects ? "unbiased" : "keepdim") + "=True)";
  const bp_arg_def& last = parameters_[static_cast<size_t>(positional_ - 1)].spec;
  return raise(BP_ERROR_TYPE, "%s: found %R by position among the ints of argument '%s', expected %s%s", name_, object,
               last.name, expected_kind(last), names.c_str());
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
