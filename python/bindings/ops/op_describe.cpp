// Signatures and documentation, built on demand.
#include "bindings/ops/op_describe.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/value_objects.hpp"

namespace backplane::python {
namespace {

bool optional(const Parameter& parameter) {
  return !parameter.required && parameter.spec.default_value.tag == BP_TAG_ABSENT;
}

std::string annotation(const Parameter& parameter) {
  std::string word = type_word(parameter.spec.type);
  if (parameter.spec.flags & BP_ARG_LIST) {
    word = parameter.spec.flags & BP_ARG_OPTIONAL_ELEMENTS ? "Sequence[" + word + " | None]" : "Sequence[" + word + "]";
  }
  return optional(parameter) ? word + " | None" : word;
}

bool append_default(std::string& text, const Parameter& parameter) {
  PyRef value = PyRef::steal(value_object(parameter.spec.default_value));
  PyRef repr = PyRef::steal(value ? PyObject_Repr(value.get()) : nullptr);
  const char* words = repr ? PyUnicode_AsUTF8(repr.get()) : nullptr;
  if (words) text += std::string("=") + words;
  return words != nullptr;
}

// Without parentheses; false with a Python error.
bool append_parameters(std::string& text, const OpSignature& signature) {
  for (int32_t i = 0; i < signature.count(); ++i) {
    const Parameter& parameter = signature.parameters()[static_cast<size_t>(i)];
    if (i > 0) text += ", ";
    if (i == signature.positional()) text += "*, ";
    text += parameter.spec.name;
    if (!parameter.required && !append_default(text, parameter)) return false;
    if (i + 1 == signature.positional_only()) text += ", /";
  }
  if (signature.takes_out()) {
    if (signature.count() > 0) text += ", ";
    text += signature.positional() == signature.count() ? "*, out=None" : "out=None";
  }
  return true;
}

PyObject* describe_parameter(const Parameter& parameter, bool keyword_only) {
  PyRef value = PyRef::steal(value_object(parameter.spec.default_value));
  const bool positional_only = (parameter.spec.flags & BP_ARG_POSITIONAL_ONLY) != 0;
  return value ? Py_BuildValue("(OOOOsO)", parameter.name.get(), keyword_only ? Py_True : Py_False,
                               parameter.required ? Py_False : Py_True, value.get(), annotation(parameter).c_str(),
                               positional_only ? Py_True : Py_False)
               : nullptr;
}

// The help text of a record: the summary, lines "argument: meaning", and the rest.
struct RecordDoc {
  explicit RecordDoc(const std::string& text) : summary(text.substr(0, text.find('\n'))) {
    for (size_t at = summary.size(); at < text.size();) {
      const size_t end = std::min(text.find('\n', at + 1), text.size());
      rest += text.substr(at + 1, end - at - 1) + "\n";
      at = end;
    }
    rest.erase(0, rest.find_first_not_of('\n'));
  }

  // The meaning of an argument, which the rest no longer contains; "" where the record states none.
  std::string take(const std::string& name) {
    const std::string start = name + ": ";
    size_t at = 0;
    while (at < rest.size() && rest.compare(at, start.size(), start) != 0) at = rest.find('\n', at) + 1;
    if (at >= rest.size()) return "";
    const size_t end = rest.find('\n', at);
    const std::string meaning = rest.substr(at + start.size(), end - at - start.size());
    rest.erase(at, end + 1 - at);
    rest.erase(0, rest.find_first_not_of('\n'));
    return meaning;
  }

  std::string summary, rest;
};

}  // namespace

PyObject* op_text_signature(const OpSignature& signature) noexcept {
  return guarded([&]() -> PyObject* {
    std::string text = "(";
    if (!append_parameters(text, signature)) return nullptr;
    text += ")";
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

PyObject* op_documentation(OpHandle op, const OpSignature& signature, PyObject* name) noexcept {
  return guarded([&]() -> PyObject* {
    const bp_op_def& def = op_def(op);
    RecordDoc doc(def.doc ? def.doc : "");
    std::string arguments;
    for (const Parameter& parameter : signature.parameters()) {
      const std::string meaning = doc.take(parameter.spec.name);
      arguments += std::string("    ") + parameter.spec.name + ": " + annotation(parameter) +
                   (meaning.empty() ? "" : ". " + meaning) + "\n";
    }
    std::string text = std::string(PyUnicode_AsUTF8(name)) + "(";
    if (!append_parameters(text, signature)) return nullptr;
    text += ")\n\n" + doc.summary + "\n";
    if (!signature.spellings().empty()) text += "\nFurther signatures: " + signature.spellings().signatures() + "\n";
    if (!arguments.empty()) text += "\nArguments:\n" + arguments;
    if (!doc.rest.empty()) text += "\n" + doc.rest;
    if (def.file) text += std::string("\nRegistered at ") + def.file + ":" + std::to_string(def.line) + "\n";
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

PyObject* op_parameters(const OpSignature& signature) noexcept {
  return guarded([&]() -> PyObject* {
    const int32_t count = signature.count();
    PyRef tuple = PyRef::steal(PyTuple_New(count + (signature.takes_out() ? 1 : 0)));
    for (int32_t i = 0; tuple && i < count; ++i) {
      PyObject* row = describe_parameter(signature.parameters()[static_cast<size_t>(i)], i >= signature.positional());
      if (!row) return nullptr;
      PyTuple_SET_ITEM(tuple.get(), i, row);
    }
    if (tuple && signature.takes_out()) {
      PyObject* row = Py_BuildValue("(sOOOsO)", "out", Py_True, Py_True, Py_None, "Tensor | None", Py_False);
      if (!row) return nullptr;
      PyTuple_SET_ITEM(tuple.get(), count, row);
    }
    return tuple.release();
  });
}

bool lacks_shape_rule(OpHandle op) {
  const bp_op_def& def = op_def(op);
  return (def.flags & BP_OP_DYNAMIC) && def.tags && std::string_view(def.tags) == "python";
}

PyObject* raise_no_shape_rule(OpHandle op, PyObject* name) {
  return raise(BP_ERROR_NOT_IMPLEMENTED,
               "%s: no shape rule is registered; add one with @%U.register_shape, or state shape= in custom_op",
               op_def(op).name, name);
}

}  // namespace backplane::python
