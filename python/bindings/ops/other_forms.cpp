// The tables of forms, and the kinds of operands that choose one.
#include "bindings/ops/other_forms.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/ops/op_signature.hpp"

namespace backplane::python {
namespace {

// By full name and name in Python, what the package's module of them sets, which is imported when one is first looked
// for. The functions live as long as the process.
class Forms {
 public:
  explicit Forms(const char* module) : module_(module) {}

  // Borrowed; throws Error.
  PyObject* const& find(const char* full_name, const char* name) {
    if (!imported_ && !imported_module(module_)) throw keep_python_error();
    imported_ = true;
    return by_name_[{full_name, name}];
  }

  PyObject* set(PyObject* args) {
    const char *full_name = nullptr, *name = nullptr;
    PyObject* function = nullptr;
    if (!PyArg_ParseTuple(args, "ssO:set_form", &full_name, &name, &function)) return nullptr;
    return guarded([&] {
      by_name_[std::pair(std::string(full_name), std::string(name))] = Py_NewRef(function);
      Py_RETURN_NONE;
    });
  }

 private:
  const char* module_;
  bool imported_ = false;
  std::map<std::pair<std::string, std::string>, PyObject*> by_name_;
};
Forms& other_forms() {
  static auto* forms = new Forms("backplane._calls._other_forms");
  return *forms;
}

// The kinds of first operands for which another form answers, before the op runs.
enum FormKind : uint8_t { kBool = 1, kInteger = 2, kNumber = 4, kNoAxis = 8 };
constexpr std::pair<std::string_view, FormKind> kFormKinds[] = {
    {"bool", kBool}, {"integer", kInteger}, {"number", kNumber}, {"no_axis", kNoAxis}};

std::map<std::string, uint8_t, std::less<>>& form_kinds() {
  static auto* kinds = new std::map<std::string, uint8_t, std::less<>>;
  return *kinds;
}

uint8_t kind_of(bp_dtype dtype) noexcept {
  if (dtype == BP_BOOL) return kBool;
  return (BP_DTYPE_BIT(dtype) & BP_MASK_INTEGER) != 0 ? uint8_t{kInteger} : uint8_t{0};
}

}  // namespace

PyObject* const& find_other_form(const char* full_name, const char* name) {
  return other_forms().find(full_name, name);
}

uint8_t form_kinds_of(std::string_view full_name) noexcept {
  const auto kinds = form_kinds().find(full_name);
  return kinds == form_kinds().end() ? uint8_t{0} : kinds->second;
}

bool has_form_kind(uint8_t kinds, const std::vector<Parameter>& parameters, PyObject* const* given,
                   const bp_value* values) noexcept {
  if (values[0].tag != BP_TAG_TENSOR) return false;
  if (kinds & kind_of(values[0].u.t->dtype)) return true;
  if (!(kinds & (kNumber | kNoAxis))) return false;
  bool names_axis = false;
  for (size_t i = 1; i < parameters.size(); ++i) {
    const bp_arg_def& spec = parameters[i].spec;
    names_axis |= (spec.type == BP_TYPE_AXIS || spec.type == BP_TYPE_AXES) && given[i] && given[i] != Py_None;
  }
  const int32_t ndim = values[0].u.t->dl.ndim;
  return ((kinds & kNumber) && ndim == 0 && names_axis) || ((kinds & kNoAxis) && ndim != 1 && !names_axis);
}

PyObject* set_form_kinds(PyObject*, PyObject* kinds) {
  return guarded([&]() -> PyObject* {
    PyObject *kind = nullptr, *names = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(kinds, &at, &kind, &names);) {
      const auto* known = std::find_if(std::begin(kFormKinds), std::end(kFormKinds), [&](const auto& row) {
        return PyUnicode_CompareWithASCIIString(kind, row.first.data()) == 0;
      });
      if (known == std::end(kFormKinds)) return raise(BP_ERROR_VALUE, "set_form_kinds: found an unknown kind %R", kind);
      PyRef list = PyRef::steal(PySequence_Fast(names, "set_form_kinds: expected lists of full names"));
      for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list.get()); ++i)
        form_kinds()[PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list.get(), i))] |= known->second;
      if (!list) return nullptr;
    }
    Py_RETURN_NONE;
  });
}

PyObject* set_other_form(PyObject*, PyObject* args) { return other_forms().set(args); }

}  // namespace backplane::python
