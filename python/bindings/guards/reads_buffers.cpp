// Reads and stores of memory that more than one object may show: arrays, their views, and tensors over them.
#include <algorithm>

#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/reads.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/python_types.hpp"

namespace backplane::python {
namespace {

// A position, or one per axis.
bool is_position(PyObject* key) {
  const auto is_one = [](PyObject* object) { return PyLong_Check(object) && !PyBool_Check(object); };
  bool all = is_one(key) || PyTuple_CheckExact(key);
  for (Py_ssize_t i = 0; all && PyTuple_CheckExact(key) && i < PyTuple_GET_SIZE(key); ++i)
    all = is_one(PyTuple_GET_ITEM(key, i));
  return all;
}

// Its elements are references to objects.
bool holds_objects(PyObject* array) {
  const PyRef dtype = PyRef::steal(is_numpy_array(array) ? PyObject_GetAttrString(array, "dtype") : nullptr);
  const PyRef has = PyRef::steal(dtype ? PyObject_GetAttrString(dtype.get(), "hasobject") : nullptr);
  forget_error();
  return has.get() == Py_True;
}

}  // namespace

// Was the buffer read from somewhere, or does it share memory with one that was?
bool Reads::was_there(PyObject* buffer) const {
  if (names_.count(buffer) > 0) return true;
  return was_there(memory_of(buffer));
}

bool Reads::was_there(const MemorySpan& memory) const {
  return std::any_of(buffers_.begin(), buffers_.end(), [&](const auto& known) {
    PyObject* object = known.first.get();
    return memory.overlaps(is_buffer(object) ? memory_of(object) : known.second);  // which may have moved
  });
}

// Has this run stored into the memory by instructions? Then the bytes from before are known.
bool Reads::is_stored_to(PyObject* buffer) const {
  const auto at = index_.find({Guard::kBytes, buffer_owner(buffer).get()});
  return at != index_.end() && places_[at->second].before;
}

// The graph makes its changes in place when it runs. During the trace the memory still holds the old values.
void Reads::check_memory(PyObject* buffer) {
  const std::vector<MemorySpan> changed = changed_memory_();
  if (changed.empty()) return;
  const MemorySpan own = memory_of(buffer);
  if (std::none_of(changed.begin(), changed.end(), [&](const MemorySpan& one) { return own.overlaps(one); })) return;
  if (now_)
    refuse("reads the memory of a tensor that it has changed in place", *now_,
           "the graph will change that only when it runs");
  else
    keep_none("it reads the memory of a tensor that it has changed in place");
}

void Reads::bytes(PyObject* buffer) {
  check_memory(buffer);
  if (!was_there(buffer)) return keep_tensor_memory(buffer);
  if (holds_objects(buffer)) return objects_in(buffer);
  PyObject* shown = buffer;
  const PyRef owner = buffer_owner(buffer);
  if (is_stored_to(buffer)) shown = owner.get();
  Place& own = place(Guard::kBytes, shown);
  if (own.is_read) return;
  own.is_read = true;
  own.guard.content = own.before ? own.before : copied_bytes(shown);
  form(shown);
}

// Shape and dtype can be assigned.
void Reads::form(PyObject* buffer) {
  for (const char* part : {"shape", "dtype"})
    if (const PyRef name = PyRef::steal(is_numpy_array(buffer) ? PyUnicode_InternFromString(part) : nullptr))
      generic(Guard::kGeneric, buffer, name.get());
}

void Reads::objects_in(PyObject* array) {
  const PyRef function = PyRef::steal(PyObject_GetAttrString(array, "tolist")), none = PyRef::steal(PyTuple_New(0));
  const PyRef list = PyRef::steal(function && none ? PyObject_CallNoArgs(function.get()) : nullptr);
  if (list) result(function.get(), none.get());
  forget_error();
  const std::string path = path_of(array);
  for (Py_ssize_t i = 0; list && PyList_Check(list.get()) && i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* element = PyList_GET_ITEM(list.get(), i);
    if (is_plain_value(element)) continue;
    reach(element, path + "[" + std::to_string(i) + "]", false, array);
    content(element);
  }
}

// One element is guarded by itself. A view is looked at where it is read.
void Reads::element(PyObject* buffer, PyObject* key) {
  check_memory(buffer);
  if (!was_there(buffer)) return;
  const PyRef value = PyRef::steal(PyObject_GetItem(buffer, key));
  forget_error();
  const bool is_view = value && has_bytes(value.get()) && memory_of(buffer).overlaps(memory_of(value.get()));
  if (is_view && value.get() != buffer) return form(buffer);
  if (!value || is_stored_to(buffer) || is_numpy_record(value.get()) || !is_position(key)) return content(buffer);
  generic(Guard::kSubscripts, buffer, key);
}

// A function of C that gets an array over a tensor's memory may write into it.
void Reads::keep_tensor_memory(PyObject* buffer) {
  const auto is_it = [&](const TensorMemory& known) { return known.array.get() == buffer; };
  if (!is_memory_of_tensor(buffer) || std::any_of(tensor_memory_.begin(), tensor_memory_.end(), is_it)) return;
  const PyRef copy = copied_bytes(buffer);
  if (!copy) return;
  effects_.add(Effects::Before{PyRef::borrow(buffer), {}, copy, Effects::Before::kContent});
  tensor_memory_.push_back({PyRef::borrow(buffer), copy, now_ ? now_->line() : ""});
}

// A store into memory that a tensor shows would be seen by the graph at another time than by the function.
bool Reads::refuses_memory(PyObject* buffer, const Storing& storing) {
  if (!is_memory_of_tensor(buffer)) return false;
  refuse("stores into the memory of a tensor through an array", storing,
         "the graph reads and changes the tensor at other times");
  return true;
}

bool Reads::close_memory(const Closing& closing) const {
  const auto raise_shared = [&](const std::string& path, const std::string& line) {
    raise(
        BP_ERROR_VALUE,
        "%s: the function changes %s%s%s, whose memory a tensor shows: the graph would see the change at another time "
        "than the function. Fix: change the tensor in place, or do this outside",
        closing.transform, path.c_str(), line.empty() ? "" : " at ", line.c_str());
    return false;
  };
  for (const TensorMemory& known : tensor_memory_) {
    const PyRef now = copied_bytes(known.array.get());
    if (!now || !same_value(known.bytes.get(), now.get())) return raise_shared("an array", known.line);
  }
  std::vector<MemorySpan> tensors;
  for (const std::span<const Tensor> list : {closing.used, closing.inputs})
    for (const Tensor& tensor : list)
      if (const MemorySpan span = memory_of(tensor); !span.is_empty()) tensors.push_back(span);
  if (tensors.empty()) return true;
  const auto is_shared = [&](PyObject* buffer) {
    const MemorySpan own = memory_of(buffer);
    return std::any_of(tensors.begin(), tensors.end(), [&](const MemorySpan& one) { return own.overlaps(one); });
  };
  for (const Effects::Effect& effect : effects_.all()) {
    PyObject* holder = effect.holder.get();
    if (has_bytes(holder) && !has_content(holder) && is_shared(holder)) return raise_shared(effect.place, effect.line);
  }
  for (const Place& place : places_)
    if (place.guard.kind == Guard::kBytes && place.is_read && place.guard.content && !place.before &&
        !is_stored_to(place.guard.holder.get()) && is_shared(place.guard.holder.get()) && !still_holds(place.guard))
      return raise_shared(place.guard.path, "");
  return true;
}

}  // namespace backplane::python
