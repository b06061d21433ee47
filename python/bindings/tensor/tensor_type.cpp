// The type object of Tensor: creation from a free list, destruction, weak references, iteration; its number, mapping,
// buffer and attribute slots live in the files that declare them in tensor_slots.hpp.
#include "bindings/tensor/tensor_object.hpp"

#include <structmember.h>

#include "backplane/traced_tensors.hpp"
#include "bindings/tensor/owned_objects.hpp"
#include "bindings/tensor/size_hook.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {

PyTypeObject* g_tensor_type = nullptr;

namespace {

// A chain of training code keeps a few dozen temporaries alive at once.
constexpr int kFreeListSize = 128;
TensorObject* g_free_list[kFreeListSize];
int g_free_count = 0;

void tensor_dealloc(PyObject* self) {
  auto* tensor = reinterpret_cast<TensorObject*>(self);
  if (tensor->tracked) [[unlikely]]
    PyObject_GC_UnTrack(self);
  if (tensor->weak_references) PyObject_ClearWeakRefs(self);
  release(tensor->handle);
  if (g_free_count < kFreeListSize) [[likely]] {
    g_free_list[g_free_count++] = tensor;  // which keeps its reference to the type
  } else {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
  }
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return visit_owned_objects(handle_of(self), visit, arg);
}

int tensor_clear(PyObject* self) {
  drop_owned_objects(handle_of(self));
  return 0;
}

PyObject* tensor_new(PyTypeObject*, PyObject*, PyObject*) {
  return raise(
      BP_ERROR_TYPE,
      "Tensor: the class has no constructor. Fix: make a tensor with backplane.asarray(values) or an op such as "
      "backplane.zeros(shape)");
}

// Python: Tensor.__iter__(self) -> Iterator[Tensor]
PyObject* tensor_iter(PyObject* self) {
  if (handle_of(self)->dl.ndim == 0)
    return raise(BP_ERROR_TYPE, "iter: a tensor of no dimensions has no elements to iterate over");
  note_length(self);
  return PySeqIter_New(self);
}

PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

const char tensor_doc[] =
    "An array of elements of one dtype on one device.\n\n"
    "Made by backplane.asarray and by ops; views share memory. Its methods and operators are the ops of the registry.";

}  // namespace

PyObject* wrap_tensor(bp_tensor* handle) noexcept {
  TensorObject* object = nullptr;
  if (g_free_count > 0) [[likely]] {
    object = g_free_list[--g_free_count];
    _Py_NewReference(reinterpret_cast<PyObject*>(object));
  } else {
    object = PyObject_GC_New(TensorObject, g_tensor_type);
    if (!object) {
      release(handle);
      return nullptr;
    }
  }
  object->handle = handle;
  object->weak_references = nullptr;
  object->tracked = false;
  if (g_tracks_tensors != 0) [[unlikely]] {
    note_new_tensor(*handle);
    track_tensor(reinterpret_cast<PyObject*>(object));
  }
  return reinterpret_cast<PyObject*>(object);
}

PyObject* call_with_default(OpHandle op, const bp_value* args, int32_t n_args) noexcept {
  return guarded([&] {
    const StatedArguments stated(op, args, n_args);
    return call_as_given(op, stated.values(), stated.count());
  });
}

void track_tensor(PyObject* object) noexcept {
  auto* tensor = reinterpret_cast<TensorObject*>(object);
  if (std::exchange(tensor->tracked, true)) return;
  PyObject_GC_Track(object);
}

bool add_tensor_type(PyObject* module) {
  if (!add_count_type()) return false;
  std::vector<PyType_Slot> slots = {{Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
                                    {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
                                    {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
                                    {Py_tp_iter, reinterpret_cast<void*>(tensor_iter)},
                                    // Python: Tensor.__hash__(self) -> int
                                    {Py_tp_hash, reinterpret_cast<void*>(PyBaseObject_Type.tp_hash)},
                                    {Py_tp_members, tensor_members},
                                    {Py_tp_doc, const_cast<char*>(tensor_doc)}};
  append_number_slots(slots);
  append_index_slots(slots);
  append_attribute_slots(slots);
  append_buffer_slots(slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"backplane.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                      slots.data()};
  g_tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return g_tensor_type && PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(g_tensor_type)) == 0;
}

}  // namespace backplane::python
