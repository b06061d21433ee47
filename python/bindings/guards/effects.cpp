#include "bindings/guards/effects.hpp"

#include <algorithm>

#include "bindings/guards/guards.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

// A list, dict, set, deque or buffer holds again what the copy does.
void restore_content(PyObject* container, PyObject* copy) {
  if (PyDict_Check(container)) {
    PyDict_Clear(container);
    const Py_ssize_t count = PyList_GET_SIZE(copy) / 2;
    for (Py_ssize_t i = 0; i < count; ++i)
      PyDict_SetItem(container, PyList_GET_ITEM(copy, i), PyList_GET_ITEM(copy, count + i));
    return;
  }
  if (PyList_Check(container)) {
    PyList_SetSlice(container, 0, PyList_GET_SIZE(container), copy);
    return;
  }
  if (PyByteArray_Check(container)) {
    if (PyByteArray_Resize(container, PyBytes_GET_SIZE(copy)) == 0)
      std::copy_n(PyBytes_AS_STRING(copy), PyBytes_GET_SIZE(copy), PyByteArray_AS_STRING(container));
    return;
  }
  if (!is_container(container)) {
    Py_buffer view;
    if (PyObject_GetBuffer(container, &view, PyBUF_WRITABLE | PyBUF_FULL) < 0) return;
    if (view.len == PyBytes_GET_SIZE(copy)) PyBuffer_FromContiguous(&view, PyBytes_AS_STRING(copy), view.len, 'C');
    PyBuffer_Release(&view);
    return;
  }
  PyRef done = PyRef::steal(PyObject_CallMethod(container, "clear", nullptr));
  if (done)
    done = PyRef::steal(PyObject_CallMethod(container, PyAnySet_Check(container) ? "update" : "extend", "(O)", copy));
}

void restore(const Effects::Before& before) {
  PyObject *holder = before.holder.get(), *key = before.key.get(), *value = before.value.get();
  switch (before.of) {
    case Effects::Before::kAttribute:
      if (PyType_Check(holder))
        PyType_Type.tp_setattro(holder, key, value);
      else if (has_python_method(Py_TYPE(holder), value ? "__setattr__" : "__delattr__"))
        PyObject_GenericSetAttr(holder, key, value);
      else
        PyObject_SetAttr(holder, key, value);
      break;
    case Effects::Before::kEntry:
      if (value)
        PyDict_Check(holder) ? PyDict_SetItem(holder, key, value) : PyObject_SetItem(holder, key, value);
      else
        PyDict_Check(holder) ? PyDict_DelItem(holder, key) : PyObject_DelItem(holder, key);
      break;
    case Effects::Before::kCell:
      PyCell_Set(holder, value);
      break;
    case Effects::Before::kContent:
      restore_content(holder, value);
      break;
    case Effects::Before::kContext:
      if (value) PyRef::steal(PyContextVar_Set(holder, value));
  }
  forget_error();
}

}  // namespace

void Effects::take_back() {
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_Fetch(&type, &value, &trail);
  for (auto before = before_.rbegin(); before != before_.rend(); ++before) restore(*before);
  PyErr_Restore(type, value, trail);
}

void Effects::take_back_tensors() {
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_Fetch(&type, &value, &trail);
  const bool any = std::any_of(effects_.begin(), effects_.end(), [](const Effect& effect) {
    return effect.arguments && leads_to_traced(effect.arguments.get());
  });
  PyErr_Restore(type, value, trail);
  if (any) take_back();
}

bool Effects::settle_numbers() {
  bool all = true;
  PyObject *type = nullptr, *value = nullptr, *trail = nullptr;
  PyErr_Fetch(&type, &value, &trail);
  for (const Effect& effect : effects_) {
    PyObject *holder = effect.holder.get(), *arguments = effect.arguments.get();
    const Py_ssize_t count = arguments ? PyTuple_GET_SIZE(arguments) : 0;
    PyObject* stored = count > 0 ? PyTuple_GET_ITEM(arguments, count - 1) : nullptr;
    if (!stored || !is_traced_number(stored)) {
      all &= !stored || stored == holder || !leads_to_number(stored);
      continue;
    }
    const PyRef plain = untraced(stored);
    if (!effect.function) {
      if (PyCell_GET(holder) == stored) PyCell_Set(holder, plain.get());
    } else if (count != 3) {
      all = false;
    } else {
      PyObject* key = PyTuple_GET_ITEM(arguments, 1);
      const bool is_entry = PyDict_Check(holder) || PyList_Check(holder);
      const PyRef now = PyRef::steal(is_entry ? PyObject_GetItem(holder, key) : PyObject_GetAttr(holder, key));
      if (now.get() == stored)
        is_entry ? PyObject_SetItem(holder, key, plain.get()) : PyObject_SetAttr(holder, key, plain.get());
    }
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trail);
  return all;
}

namespace {

bool holds_size(PyObject* object) {
  for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && i < PyTuple_GET_SIZE(object); ++i)
    if (holds_size(PyTuple_GET_ITEM(object, i))) return true;
  return is_followed(object);
}

// The object with numbers in place of those that are followed.
PyRef with_numbers(PyObject* object, const std::function<PyRef(PyObject*)>& number) {
  if (is_followed(object)) return number(object);
  if (!holds_size(object)) return PyRef::borrow(object);
  PyRef made = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(object)));
  for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(object); ++i) {
    PyRef element = with_numbers(PyTuple_GET_ITEM(object, i), number);
    if (!element) return {};
    PyTuple_SET_ITEM(made.get(), i, element.release());
  }
  return made;
}

bool are_alike(PyObject* a, PyObject* b, const std::function<bool(PyObject*, PyObject*)>& same) {
  if (is_of_size(a) && is_of_size(b)) return same(a, b);
  if (same_value(a, b)) return true;
  if (PyTuple_CheckExact(a) && PyTuple_CheckExact(b) && PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!are_alike(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), same)) return false;
    return true;
  }
  const bool have_content = has_content(a) && has_content(b) && Py_TYPE(a) == Py_TYPE(b);
  const int equal = have_content ? PyObject_RichCompareBool(a, b, Py_EQ) : 0;
  forget_error();
  return equal == 1;
}

void add_sizes(PyObject* object, std::vector<PyObject*>* sizes) {
  if (is_size(object)) sizes->push_back(object);
  for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && i < PyTuple_GET_SIZE(object); ++i)
    add_sizes(PyTuple_GET_ITEM(object, i), sizes);
}

// May it lead to a size that add_sizes does not see?
bool may_hide_sizes(PyObject* object, bool is_new) {
  if (is_size_float(object)) return true;
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (may_hide_sizes(PyTuple_GET_ITEM(object, i), is_new)) return true;
    return false;
  }
  return is_new && !is_plain_value(object);
}

}  // namespace

bool Effects::find_numbers(std::vector<PyObject*>* numbers) const {
  const std::function<void(PyObject*)> add_all = [&](PyObject* object) {
    if (is_traced_number(object)) numbers->push_back(object);
    for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && i < PyTuple_GET_SIZE(object); ++i)
      add_all(PyTuple_GET_ITEM(object, i));
  };
  const std::function<bool(PyObject*)> hides_one = [&](PyObject* object) {
    for (Py_ssize_t i = 0; PyTuple_CheckExact(object) && i < PyTuple_GET_SIZE(object); ++i)
      if (hides_one(PyTuple_GET_ITEM(object, i))) return true;
    return !PyTuple_CheckExact(object) && !is_traced_number(object) && leads_to_number(object);
  };
  for (const Effect& effect : effects_) {
    if (effect.keywords && leads_to_number(effect.keywords.get())) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(effect.arguments.get()); ++i) {
      PyObject* argument = PyTuple_GET_ITEM(effect.arguments.get(), i);
      const bool is_new = static_cast<size_t>(i) < effect.is_new.size() && effect.is_new[static_cast<size_t>(i)];
      if (argument != effect.holder.get() && is_new && hides_one(argument)) return false;
      add_all(argument);
    }
  }
  return true;
}

bool Effects::find_sizes(std::vector<PyObject*>* sizes) const {
  for (const Effect& effect : effects_) {
    if (effect.keywords && PyDict_Check(effect.keywords.get()) && PyDict_GET_SIZE(effect.keywords.get()) > 0)
      return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(effect.arguments.get()); ++i) {
      PyObject* argument = PyTuple_GET_ITEM(effect.arguments.get(), i);
      const bool is_new = static_cast<size_t>(i) < effect.is_new.size() && effect.is_new[static_cast<size_t>(i)];
      if (may_hide_sizes(argument, is_new)) return false;
      add_sizes(argument, sizes);
    }
  }
  return true;
}

bool Effects::are_like(const Effects& other, const std::function<bool(PyObject*, PyObject*)>& same) const {
  if (effects_.size() != other.effects_.size()) return false;
  for (size_t i = 0; i < effects_.size(); ++i) {
    const Effect &a = effects_[i], &b = other.effects_[i];
    if (a.holder.get() != b.holder.get() || static_cast<bool>(a.function) != static_cast<bool>(b.function))
      return false;
    if (a.function && a.function.get() != b.function.get() && a.place != b.place) return false;
    if (!are_alike(a.arguments.get(), b.arguments.get(), same)) return false;
  }
  return true;
}

void Effects::Effect::take_keywords() {
  const bool is_alone = function && arguments && keywords && PyDict_Check(keywords.get()) &&
                        PyDict_GET_SIZE(keywords.get()) > 0 && PyTuple_GET_SIZE(arguments.get()) == 1;
  const PyRef name = PyRef::steal(is_alone ? PyObject_GetAttrString(function.get(), "__name__") : nullptr);
  forget_error();
  if (!name || !PyUnicode_Check(name.get()) || PyUnicode_CompareWithASCIIString(name.get(), "update") != 0) return;
  PyRef both = PyRef::steal(PyTuple_Pack(2, PyTuple_GET_ITEM(arguments.get(), 0), keywords.get()));
  if (!both) return forget_error();
  arguments = std::move(both);
  keywords = {};
}

// A tuple of sizes is made of their numbers.
static bool is_renewed(const Effects::Effect& effect, Py_ssize_t i) {
  const auto at = static_cast<size_t>(i);
  return at < effect.is_new.size() && effect.is_new[at] && !holds_size(PyTuple_GET_ITEM(effect.arguments.get(), i));
}

static bool leads_to(PyObject* argument, PyObject* object) {
  if (argument == object || !is_tensor(object)) return argument == object;
  return leads_to_tensor(argument, [object](const Tensor& t) { return t.get() == handle_of(object); });
}

bool Effects::stores(PyObject* object, const std::function<bool(PyObject*)>& is_made) const {
  for (const Effect& effect : effects_)
    for (Py_ssize_t i = 0; effect.arguments && i < PyTuple_GET_SIZE(effect.arguments.get()); ++i)
      if (leads_to(PyTuple_GET_ITEM(effect.arguments.get(), i), object) && object != effect.holder.get() &&
          !is_made(effect.holder.get()))
        return true;
  return false;
}

void Effects::add_new(PyObject* list) const {
  for (const Effect& effect : effects_)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(effect.arguments.get()); ++i)
      if (is_renewed(effect, i)) PyList_Append(list, PyTuple_GET_ITEM(effect.arguments.get(), i));
}

bool Effects::replay(const std::function<PyRef(PyObject*)>& number, PyObject* anew) const {
  Py_ssize_t n_new = 0;
  for (const Effect& effect : effects_) {
    const Py_ssize_t count = PyTuple_GET_SIZE(effect.arguments.get());
    PyRef arguments = PyRef::steal(PyTuple_New(count));
    for (Py_ssize_t i = 0; arguments && i < count; ++i) {
      PyObject* argument = PyTuple_GET_ITEM(effect.arguments.get(), i);
      PyRef own;
      if (anew && is_renewed(effect, i))
        own = PyRef::borrow(n_new < PyList_GET_SIZE(anew) ? PyList_GET_ITEM(anew, n_new++) : argument);
      else
        own = with_numbers(argument, number);
      if (!own) return false;
      PyTuple_SET_ITEM(arguments.get(), i, own.release());
    }
    if (!arguments) return false;
    if (!effect.function) {
      PyCell_Set(effect.holder.get(), count ? PyTuple_GET_ITEM(arguments.get(), 0) : nullptr);
      continue;
    }
    const PyRef done = PyRef::steal(PyObject_Call(effect.function.get(), arguments.get(), effect.keywords.get()));
    if (!done) return false;
  }
  return true;
}

int Effects::traverse(visitproc visit, void* arg) const {
  for (const Effect& effect : effects_) {
    Py_VISIT(effect.holder.get());
    Py_VISIT(effect.function.get());
    Py_VISIT(effect.arguments.get());
    Py_VISIT(effect.keywords.get());
  }
  return 0;
}

}  // namespace backplane::python
