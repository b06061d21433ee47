#include "bindings/guards/attribute_readers.hpp"

#include <cctype>
#include <string_view>

#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr size_t kMostPairs = 10'000;  // of an object and a name

// Objects of classes of Python, and names, among the arguments and in their containers.
struct Found {
  std::vector<PyRef> objects, names;

  void add(PyObject* object, int levels = 3) {
    if (PyUnicode_Check(object)) return names.push_back(PyRef::borrow(object));
    if (is_tensor(object)) return;
    if (is_instance(object) || PyType_Check(object)) objects.push_back(PyRef::borrow(object));
    const PyRef content = levels > 0 && has_content(object) ? copied_content(object) : PyRef{};
    for (Py_ssize_t i = 0; content && i < PyList_GET_SIZE(content.get()); ++i)
      add(PyList_GET_ITEM(content.get(), i), levels - 1);
  }
};

// "a.b": each attribute of what the one before it gives.
void read_chain(PyObject* object, std::string_view chain, Reads& reads) {
  PyRef at = PyRef::borrow(object);
  while (at && !chain.empty()) {
    const size_t end = std::min(chain.find('.'), chain.size());
    const PyRef name = PyRef::steal(PyUnicode_FromStringAndSize(chain.data(), static_cast<Py_ssize_t>(end)));
    if (!name) break;
    reads.attribute(at.get(), name.get());
    chain.remove_prefix(std::min(end + 1, chain.size()));
    at = PyRef::steal(chain.empty() ? nullptr : PyObject_GetAttr(at.get(), name.get()));
  }
  forget_error();
}

// The names of an operator.attrgetter, in its __reduce__.
void add_getter_names(PyObject* getter, Found& found) {
  const PyRef parts = PyRef::steal(PyObject_CallMethod(getter, "__reduce__", nullptr));
  PyObject* names = parts && PyTuple_Check(parts.get()) && PyTuple_GET_SIZE(parts.get()) > 1
                        ? PyTuple_GET_ITEM(parts.get(), 1)
                        : nullptr;
  for (Py_ssize_t i = 0; names && PyTuple_Check(names) && i < PyTuple_GET_SIZE(names); ++i)
    if (PyUnicode_Check(PyTuple_GET_ITEM(names, i))) found.names.push_back(PyRef::borrow(PyTuple_GET_ITEM(names, i)));
  forget_error();
}

// The identifiers behind dots in a format's text.
void add_format_names(PyObject* format, Found& found) {
  const char* text = PyUnicode_AsUTF8(format);
  forget_error();
  for (const char* at = text; at && *at; ++at) {
    if (*at != '.') continue;
    const char* end = at + 1;
    while (std::isalnum(static_cast<unsigned char>(*end)) || *end == '_') ++end;
    if (end > at + 1) found.names.push_back(PyRef::steal(PyUnicode_FromStringAndSize(at + 1, end - at - 1)));
  }
  forget_error();
}

bool reads_attributes(PyObject* callable) {
  if (is_named(callable, "operator.attrgetter")) return true;
  const PyRef name = PyRef::steal(PyCFunction_Check(callable) ? PyObject_GetAttrString(callable, "__name__") : nullptr);
  forget_error();
  return name && PyUnicode_Check(name.get()) &&
         (PyUnicode_CompareWithASCIIString(name.get(), "getattr") == 0 ||
          PyUnicode_CompareWithASCIIString(name.get(), "hasattr") == 0);
}

}  // namespace

void note_attribute_readers(PyObject* function, const std::string& name, const std::string& module,
                            std::span<PyObject* const> arguments, Reads& reads) {
  Found found;
  bool reads_any = false;
  const auto look_at = [&](PyObject* callable) {
    if (!reads_attributes(callable)) return;
    reads_any = true;
    if (is_named(callable, "operator.attrgetter")) add_getter_names(callable, found);
  };
  look_at(function);
  for (PyObject* argument : arguments) look_at(argument);
  if (name == "format" && !arguments.empty() && PyUnicode_Check(arguments[0])) {
    reads_any = true;
    add_format_names(arguments[0], found);
  }
  const bool reads_all = module == "_pickle" || module == "marshal" || module == "_json";
  if (!reads_any && !reads_all) return;
  for (PyObject* argument : arguments) found.add(argument);
  if (reads_all)
    for (const PyRef& object : found.objects) reads.all_attributes(object.get());
  if (name == "reduce") {  // each of what the one before it gives
    std::string chain;
    for (const PyRef& part : found.names)
      if (const char* text = PyUnicode_AsUTF8(part.get())) chain += (chain.empty() ? "" : ".") + std::string(text);
    for (const PyRef& object : found.objects) read_chain(object.get(), chain, reads);
    return forget_error();
  }
  size_t pairs = 0;
  for (const PyRef& object : found.objects)
    for (const PyRef& chain : found.names) {
      const char* text = chain ? PyUnicode_AsUTF8(chain.get()) : nullptr;
      if (text && pairs++ < kMostPairs) read_chain(object.get(), text, reads);
    }
  forget_error();
}

}  // namespace backplane::python
