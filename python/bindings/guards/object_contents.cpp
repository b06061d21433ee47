#include "bindings/guards/object_contents.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "backplane/transforms.hpp"

#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/number_hook.hpp"

namespace backplane::python {
namespace {

constexpr size_t kMostSeen = 100'000;  // objects, from one on

bool is_deque(PyObject* object) {
  for (const PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base)
    if (std::string_view(type->tp_name) == "collections.deque") return true;
  return false;
}

// The namespace of a module: its contents belong to the program, and not to one object.
bool is_namespace(PyObject* dict) {
  const bool is = PyDict_GetItemString(dict, "__builtins__") || PyDict_GetItemString(dict, "__loader__");
  forget_error();
  return is;
}

struct Open {
  std::vector<PyObject*> objects;  // borrowed: no code of Python runs meanwhile
  std::unordered_set<PyObject*> seen;
  static int add(PyObject* object, void* open) {
    auto* self = static_cast<Open*>(open);
    const bool leads_on =
        is_tensor(object) || is_traced_number(object) ||
        (PyObject_IS_GC(object) && !PyModule_Check(object) && !PyType_Check(object) && !PyCode_Check(object));
    if (leads_on && self->seen.size() < kMostSeen && self->seen.insert(object).second) self->objects.push_back(object);
    return 0;
  }
};

// Adds what the object holds.
void open_contents(PyObject* object, Open* open) {
  if (is_tensor(object)) return;
  const traverseproc traverse = Py_TYPE(object)->tp_traverse;
  if (traverse && !(PyDict_Check(object) && is_namespace(object))) traverse(object, Open::add, open);
}

// Is it, or an object that it leads to, such an object?
template <class Wanted>
bool leads_to(PyObject* object, const Wanted& wanted) {
  Open open;
  Open::add(object, &open);
  for (size_t next = 0; next < open.objects.size(); ++next) {
    PyObject* one = open.objects[next];
    if (wanted(one)) return true;
    open_contents(one, &open);
  }
  return false;
}

}  // namespace

bool is_instance(PyObject* object) {
  if (std::string_view(Py_TYPE(object)->tp_name) == "types.SimpleNamespace") return true;
  return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) && !PyType_Check(object) && !is_tensor(object);
}

bool is_container(PyObject* object) {
  return PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object) ||
         is_deque(object);
}

bool is_buffer(PyObject* object) {
  return PyByteArray_Check(object) || std::string_view(Py_TYPE(object)->tp_name) == "array.array";
}

PyRef copied_elements(PyObject* object) {
  PyRef copy;
  if (PyDict_Check(object)) {
    copy = PyRef::steal(PyDict_Copy(object));
  } else if (PyList_Check(object) || PyTuple_Check(object)) {  // as they are, whatever a subclass's __iter__ gives
    copy = PyRef::steal(PyList_New(PySequence_Fast_GET_SIZE(object)));
    for (Py_ssize_t i = 0; copy && i < PyList_GET_SIZE(copy.get()); ++i)
      PyList_SET_ITEM(copy.get(), i, Py_NewRef(PySequence_Fast_GET_ITEM(object, i)));
  } else if (is_container(object)) {
    copy = PyRef::steal(PySequence_List(object));
  }
  forget_error();
  return copy;
}

bool leads_to_tensor(PyObject* object, const std::function<bool(const Tensor&)>& wanted) {
  return leads_to(object, [&](PyObject* one) { return is_tensor(one) && wanted(tensor_of(one)); });
}

bool leads_to_number(PyObject* object) { return leads_to(object, is_traced_number); }

bool leads_to_traced(PyObject* object) { return leads_to_tensor(object, is_transformed); }

void visit_contents(const std::vector<PyObject*>& roots, const std::function<bool(PyObject*)>& visit) {
  Open open;
  for (PyObject* root : roots) Open::add(root, &open);
  for (size_t next = 0; next < open.objects.size(); ++next)
    if (visit(open.objects[next])) open_contents(open.objects[next], &open);
}

void add_contents(PyObject* object, std::unordered_set<PyObject*>* contents) {
  leads_to(object, [&](PyObject* one) {
    contents->insert(one);
    return false;
  });
}

namespace {

bool is_same_dict(PyObject* a, PyObject* b) {
  if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
  PyObject *key = nullptr, *value = nullptr, *other_key = nullptr, *other_value = nullptr;
  Py_ssize_t at = 0, other_at = 0;
  while (PyDict_Next(a, &at, &key, &value))
    if (!PyDict_Next(b, &other_at, &other_key, &other_value) || key != other_key || value != other_value) return false;
  return true;
}

}  // namespace

bool is_same_content(PyObject* a, PyObject* b) {
  if (PyDict_Check(a) && PyDict_Check(b)) return is_same_dict(a, b);
  if (!PyList_Check(a) || !PyList_Check(b) || PyList_GET_SIZE(a) != PyList_GET_SIZE(b)) return false;
  PyObject **items = PySequence_Fast_ITEMS(a), **others = PySequence_Fast_ITEMS(b);
  return std::equal(items, items + PyList_GET_SIZE(a), others);
}

PyObject* changed_contents(PyObject*, PyObject* pairs) {
  if (!PyList_Check(pairs)) return raise(BP_ERROR_TYPE, "changed_contents: expected a list of pairs");
  PyRef changed = PyRef::steal(PyList_New(0));
  for (Py_ssize_t i = 0; changed && i < PyList_GET_SIZE(pairs); ++i) {
    PyObject* pair = PyList_GET_ITEM(pairs, i);
    if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 &&
        is_same_content(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)))
      continue;
    const PyRef place = PyRef::steal(PyLong_FromSsize_t(i));
    if (!place || PyList_Append(changed.get(), place.get()) < 0) return nullptr;
  }
  return changed.release();
}

}  // namespace backplane::python
