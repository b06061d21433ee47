// Selecting a further signature of an op, and making the call that it means.
#include "bindings/ops/spellings.hpp"

#include <algorithm>
#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/op_object.hpp"
#include "bindings/ops/op_type.hpp"
#include "bindings/ops/spelling_table.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bp_spellings.hpp"

namespace backplane::python {
namespace {

// A word that NumPy, the array API or PyTorch has for an operand of its functions.
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

bool is_word(PyObject* name, std::string_view word) noexcept {
  return PyUnicode_GET_LENGTH(name) == static_cast<Py_ssize_t>(word.size()) &&
         PyUnicode_CompareWithASCIIString(name, word.data()) == 0;
}

// The only axis or axes, or keepdims.
int32_t find_dim(bool keepdim, const std::vector<Parameter>& parameters) noexcept {
  int32_t found = -1;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bp_arg_def& spec = parameters[i].spec;
    const bool is_axis = spec.type == BP_TYPE_AXIS || spec.type == BP_TYPE_AXES;
    if (keepdim ? std::string_view(spec.name) != "keepdims" : !is_axis) continue;
    if (found >= 0) return -1;
    found = static_cast<int32_t>(i);
  }
  return found;
}

PyObject* new_literal(const SpelledLiteral& literal) {
  switch (literal.kind) {
    case SpelledLiteral::kBool:
      return PyBool_FromLong(literal.integer != 0);
    case SpelledLiteral::kInt:
      return PyLong_FromLongLong(literal.integer);
    case SpelledLiteral::kFloat:
      return PyFloat_FromDouble(literal.number);
    case SpelledLiteral::kText:
      return PyUnicode_FromString(literal.text);
    case SpelledLiteral::kDtype:
      return wrap_dtype(static_cast<bp_dtype>(literal.integer));
    case SpelledLiteral::kNone:
      break;
  }
  return Py_NewRef(Py_None);
}

// The type word `none` of a spelling: the parameter accepts None alone.
constexpr uint16_t kNoneType = 0;

bool is_dtype(PyObject* object) noexcept {
  bp_dtype dtype{};
  if (PyIndex_Check(object) || is_tensor(object) || PySequence_Check(object) != PyUnicode_Check(object)) return false;
  const int read = read_dtype(object, &dtype);
  if (read < 0) PyErr_Clear();
  return read > 0;
}

bool is_int(PyObject* object) noexcept { return PyIndex_Check(object) && !PyBool_Check(object); }

// May the object be meant as the parameter? Its exact reading, with the error of a wrong element, is the op's.
bool fits(const bp_arg_def& spec, PyObject* object) noexcept {
  if (object == Py_None) return (spec.flags & BP_ARG_OPTIONAL) != 0;
  switch (spec.type) {
    case kNoneType:
      return false;
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      return (spec.flags & BP_ARG_LIST) ? PySequence_Check(object) != 0 || is_int(object) : is_int(object);
    case BP_TYPE_AXES:
    case BP_TYPE_SHAPE:
      return is_int(object) || PyTuple_Check(object) || PyList_Check(object);
    case BP_TYPE_SCALAR:
      return !is_tensor(object) && PyNumber_Check(object) != 0;
    case BP_TYPE_BOOL:
      return PyBool_Check(object) || PyLong_Check(object);
    case BP_TYPE_STR:
      return PyUnicode_Check(object);
    case BP_TYPE_DTYPE:
      return is_dtype(object);
    default:
      return !PyUnicode_Check(object);
  }
}

// PyTorch reads no axes as all of them, and lets one name an axis of a tensor that has none.
bool means_all_axes(const bp_arg_def& spec, PyObject* object, PyObject* x) noexcept {
  if (spec.type != BP_TYPE_AXES || !(spec.flags & BP_ARG_OPTIONAL)) return false;
  if (!PyLong_Check(object)) return (PyTuple_Check(object) || PyList_Check(object)) && PyObject_Size(object) == 0;
  if (!x || !is_tensor(x) || handle_of(x)->dl.ndim != 0) return false;
  int overflow = 0;
  const long long axis = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 && (axis == 0 || axis == -1);
}

// Owns a few objects; a PyRef for each possible one would cost more than it keeps.
class KeptObjects {
 public:
  KeptObjects() = default;
  KeptObjects(const KeptObjects&) = delete;
  KeptObjects& operator=(const KeptObjects&) = delete;
  ~KeptObjects() {
    for (size_t i = 0; i < count_; ++i) Py_DECREF(objects_[i]);
  }
  void keep(PyObject* object) noexcept { objects_[count_++] = object; }

 private:
  PyObject* objects_[Overload::kMost];
  size_t count_ = 0;
};

uint8_t dtypes_of(bp_dtype dtype) noexcept {
  if (dtype == BP_BOOL) return SpelledParameter::kBools;
  const uint32_t bit = BP_DTYPE_BIT(dtype);
  if (bit & BP_MASK_COMPLEX) return SpelledParameter::kComplex;
  return (bit & BP_MASK_INTEGER) != 0 ? uint8_t{SpelledParameter::kIntegers} : uint8_t{0};
}

}  // namespace

bool same_name(PyObject* a, PyObject* b) noexcept { return a == b || PyUnicode_Compare(a, b) == 0; }

PyObject* out_keyword() {
  static PyObject* name = PyUnicode_InternFromString("out");
  return name;
}

int32_t find_derived_word(PyObject* name, const std::vector<Parameter>& parameters) noexcept {
  const bool keepdim = is_word(name, "keepdim");
  if (keepdim || is_word(name, "dim")) return find_dim(keepdim, parameters);
  for (const OperandWord& operand : kOperandWords) {
    if (!is_word(name, operand.word)) continue;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const bp_arg_def& spec = parameters[i].spec;
      if (spec.type == BP_TYPE_TENSOR && (operand.name.empty() ? i == operand.position : operand.name == spec.name))
        return static_cast<int32_t>(i);
    }
  }
  return -1;
}

Overload::Overload(const SpelledCall& call, bool in_place, PyObject* name)
    : call_(call), in_place_(in_place), name_(PyRef::borrow(name)) {
  for (size_t i = 0; i < call.n_parameters; ++i) {
    const SpelledParameter& stated = kSpelledParameters[call.first_parameter + i];
    bp_arg_def spec{};
    spec.name = stated.name;
    spec.type = stated.type;
    spec.flags = stated.flags;
    const bool required = !(stated.flags & BP_ARG_HAS_DEFAULT);
    parameters_.push_back({PyRef::steal(PyUnicode_InternFromString(stated.name)), spec, required});
    const bool has_value = stated.default_value.kind != SpelledLiteral::kNone;
    defaults_.push_back(has_value ? PyRef::steal(new_literal(stated.default_value)) : PyRef{});
    if (!(stated.flags & BP_ARG_KEYWORD_ONLY)) positional_ = i + 1;
    if (std::string_view(stated.name) == "dim") dim_ = i;
  }
}

uint8_t Overload::dtypes() const noexcept {
  return call_.n_parameters > 0 ? static_cast<uint8_t>(kSpelledParameters[call_.first_parameter].dtypes) : uint8_t{0};
}

const char* Overload::signature() const noexcept { return call_.signature; }

bool Overload::place(PyObject* keyword, PyObject* object, PyObject** values, PyObject** out) const {
  size_t index = 0;
  while (index < parameters_.size() && parameters_[index].name.get() != keyword) ++index;
  if (index == parameters_.size()) {
    index = 0;
    while (index < parameters_.size() && !same_name(parameters_[index].name.get(), keyword)) ++index;
  }
  if (index == parameters_.size()) {
    const int32_t derived = find_derived_word(keyword, parameters_);
    if (derived >= 0) {
      index = static_cast<size_t>(derived);
    } else if (same_name(keyword, out_keyword()) && !in_place_) {
      *out = object == Py_None ? nullptr : object;
      return true;
    } else {
      return false;
    }
  }
  if (values[index] || !fits(parameters_[index].spec, object)) return false;
  values[index] = object;
  return true;
}

bool Overload::match(PyObject* const* args, size_t n_positional, PyObject* keywords, const std::vector<Parameter>& own,
                     const bp_tensor* first, PyObject** values, PyObject** out) const {
  if (n_positional > positional_) return false;
  std::fill_n(values, parameters_.size(), nullptr);
  *out = nullptr;
  for (size_t i = 0; i < n_positional; ++i) {
    const bp_arg_def& spec = parameters_[i].spec;
    const bool is_operand = spec.type == BP_TYPE_TENSOR;
    const bool is_own_operand = i < own.size() && own[i].spec.type == BP_TYPE_TENSOR;
    if (is_tensor(args[i]) ? !is_operand : (is_operand && !is_own_operand) || !fits(spec, args[i])) return false;
    values[i] = args[i];
  }
  const Py_ssize_t n_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t k = 0; k < n_keywords; ++k)
    if (!place(PyTuple_GET_ITEM(keywords, k), args[n_positional + static_cast<size_t>(k)], values, out)) return false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!values[i] && parameters_[i].required) return false;
    if (const uint8_t dtypes = kSpelledParameters[call_.first_parameter + i].dtypes; dtypes != 0) {
      const bp_tensor* tensor = i == 0 && first                     ? first
                                : values[i] && is_tensor(values[i]) ? handle_of(values[i])
                                                                    : nullptr;
      if (!tensor || !(dtypes & dtypes_of(tensor->dtype))) return false;
    }
    if (!values[i])
      values[i] = defaults_[i].get();
    else if (values[i] == Py_None || (i == dim_ && means_all_axes(parameters_[i].spec, values[i], values[0])))
      values[i] = nullptr;
  }
  return true;
}

void Overload::name_error(const SpelledNode& call) const {
  if (std::string_view(call.op) == call_.op) return;
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  PyRef text = PyRef::steal(error ? PyObject_Str(error) : nullptr);
  PyRef prefix = PyRef::steal(PyUnicode_FromFormat("%s: ", call.op));
  const bool is_named = text && prefix && PyUnicode_Tailmatch(text.get(), prefix.get(), 0, PY_SSIZE_T_MAX, -1) == 1;
  PyRef rest = PyRef::steal(
      is_named ? PyUnicode_Substring(text.get(), PyUnicode_GET_LENGTH(prefix.get()), PY_SSIZE_T_MAX) : nullptr);
  PyRef args =
      PyRef::steal(rest ? Py_BuildValue("(N)", PyUnicode_FromFormat("%s: %U", call_.op, rest.get())) : nullptr);
  if (args) PyObject_SetAttrString(error, "args", args.get());
  PyErr_Clear();
  PyErr_Restore(type, error, trace);
}

PyObject* Overload::run(PyObject* const* values, PyObject* out) const {
  const SpelledNode* nodes = kSpelledNodes + call_.first_node;
  if (made_.empty()) made_.resize(call_.n_nodes);
  KeptObjects results;  // of the calls before the last
  PyObject* of_node[kMost];
  for (uint16_t n = 0; n < call_.n_nodes; ++n) {
    const SpelledNode& node = nodes[n];
    if (node.kind == SpelledNode::kParameter) {
      of_node[n] = values[node.parameter];
      continue;
    }
    const bool is_last = n + 1 == call_.n_nodes;
    if (!made_[n]) {
      const bool changes = is_last && in_place_;
      made_[n] = PyRef::steal(
          node.kind == SpelledNode::kLiteral
              ? new_literal(node.literal)
              : new_op(g_op_type, find_op(node.op), changes ? Variant::InPlace : Variant::Functional, name_.get()));
      if (!made_[n]) return nullptr;
    }
    of_node[n] = made_[n].get();
    if (node.kind == SpelledNode::kLiteral) continue;
    OpObject* called = op_object(made_[n].get());
    const auto count = static_cast<size_t>(signature_of(called)->count());
    PyObject* inline_given[kMost];
    std::vector<PyObject*> many(count > kMost ? count : 0);
    PyObject** given = many.empty() ? inline_given : many.data();
    std::fill_n(given, count, nullptr);
    for (uint16_t i = 0; i < node.n_inputs; ++i) {
      const SpelledInput& input = kSpelledInputs[node.first_input + i];
      given[input.argument] = of_node[input.node];
    }
    PyObject* result = call_given(called, given, is_last ? out : nullptr);
    if (!result) [[unlikely]]
      name_error(node);
    if (is_last || !result) return result;
    results.keep(result);
    of_node[n] = result;
  }
  return nullptr;
}

Spellings::Spellings(const char* op, const char* name, bool in_place, const std::vector<Parameter>& own) {
  const std::string_view full_name(op);
  std::string_view called(name);
  if (in_place && called.ends_with('_')) called.remove_suffix(1);
  for (const SpelledWord& word : kSpelledWords)
    if (word.op && full_name == word.op)
      words_.emplace_back(PyRef::steal(PyUnicode_InternFromString(word.word)), word.argument);
  PyRef python_name;
  for (const SpelledCall& call : kSpelledCalls) {
    if (!call.op || full_name != call.op || called != call.name) continue;
    // An in-place form only has signatures that mean a call of the op itself.
    if (in_place && full_name != kSpelledNodes[call.first_node + call.n_nodes - 1].op) continue;
    if (!python_name) python_name = PyRef::steal(PyUnicode_FromString(name));
    overloads_.emplace_back(call, in_place, python_name.get());
  }
  for (const Overload& overload : overloads_) {
    dtypes_ |= overload.dtypes();
    for (const Parameter& parameter : overload.parameters()) {
      PyObject* word = parameter.name.get();
      const bool is_own = std::any_of(own.begin(), own.end(), [&](const Parameter& p) { return p.name.get() == word; });
      if (!is_own && find_word(word) < 0 && !claims(word)) claimed_.push_back(parameter.name);
    }
  }
}

bool Spellings::may_select(bp_dtype dtype) const noexcept { return (dtypes_ & dtypes_of(dtype)) != 0; }

int32_t Spellings::find_word(PyObject* name) const noexcept {
  for (const auto& [word, argument] : words_)
    if (word.get() == name || same_name(word.get(), name)) return argument;
  return -1;
}

bool Spellings::claims(PyObject* name) const noexcept {
  for (const PyRef& word : claimed_)
    if (word.get() == name) return true;
  return !PyUnicode_CHECK_INTERNED(name) &&
         std::any_of(claimed_.begin(), claimed_.end(), [&](const PyRef& word) { return same_name(word.get(), name); });
}

bool Spellings::claims_any(PyObject* keywords) const noexcept {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k)
    if (claims(PyTuple_GET_ITEM(keywords, k))) return true;
  return false;
}

const Overload* Spellings::select(PyObject* const* args, size_t n_positional, PyObject* keywords,
                                  const std::vector<Parameter>& own, const bp_tensor* first, PyObject** values,
                                  PyObject** out) const {
  for (const Overload& overload : overloads_) {
    if (first && overload.dtypes() == 0) continue;
    if (overload.match(args, n_positional, keywords, own, first, values, out)) return &overload;
  }
  return nullptr;
}

std::string Spellings::signatures() const {
  std::string text;
  for (const Overload& overload : overloads_) text += (text.empty() ? "" : "; ") + std::string(overload.signature());
  return text;
}

}  // namespace backplane::python
