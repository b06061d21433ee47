// DLPack capsules, versioned (1.x) and the older form, both ways and without copies.
//
// A capsule owns its managed tensor until a consumer renames it, as the specification fixes it:
// https://dmlc.github.io/dlpack/latest/python_spec.html
#include "dlpack.hpp"

#include "backplane/device.hpp"
#include "dtype_device.hpp"
#include "slots.hpp"
#include "tensor_object.hpp"
#include "tensor_slots.hpp"

namespace backplane::python {
namespace {

constexpr const char* kVersioned = "dltensor_versioned";
constexpr const char* kVersionedUsed = "used_dltensor_versioned";
constexpr const char* kOlder = "dltensor";
constexpr const char* kOlderUsed = "used_dltensor";

template <class Managed>
void delete_managed(void* managed) {
  auto* tensor = static_cast<Managed*>(managed);
  if (tensor->deleter) tensor->deleter(tensor);
}

void drop_versioned(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    delete_managed<DLManagedTensorVersioned>(PyCapsule_GetPointer(capsule, kVersioned));
  }
}
void drop_older(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kOlder)) delete_managed<DLManagedTensor>(PyCapsule_GetPointer(capsule, kOlder));
}

void delete_older(DLManagedTensor* managed) {
  delete_managed<DLManagedTensorVersioned>(managed->manager_ctx);
  delete managed;
}

PyObject* capsule_of(DLManagedTensorVersioned* managed, bool versioned) {
  PyObject* capsule = nullptr;
  if (versioned) {
    capsule = PyCapsule_New(managed, kVersioned, drop_versioned);
  } else if (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) {
    PyErr_SetString(PyExc_BufferError,
                    "__dlpack__: the memory is read-only, which only max_version=(1, 0) and above can say");
  } else {
    auto* older = new DLManagedTensor{managed->dl_tensor, managed, delete_older};
    capsule = PyCapsule_New(older, kOlder, drop_older);
    if (!capsule) delete older;
  }
  if (!capsule) delete_managed<DLManagedTensorVersioned>(managed);
  return capsule;
}

// 1: both ints read; 0: not a pair of ints.
bool read_pair(PyObject* object, int* first, int* second) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2) return false;
  *first = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(object, 0)));
  *second = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(object, 1)));
  if (!PyErr_Occurred()) return true;
  PyErr_Clear();
  return false;
}

bool on_device(const bp_tensor* tensor, int type, int ordinal) {
  return static_cast<int>(tensor->dl.device.device_type) == type && tensor->dl.device.device_id == ordinal;
}

Tensor copy_of(const Tensor& tensor) { return call(op_of(Slot::Copy), {value(tensor)}); }

// What the consumer asks for, read while the lock is held.
struct Request {
  bool versioned = false;
  bool elsewhere = false;  // on another device than the tensor's
  bool host = false;       // and that is the host
  bool copy = false;
  bool may_copy = true;
};

Request read_request(const bp_tensor* tensor, PyObject* max_version, PyObject* device, PyObject* copy) {
  Request request;
  int first = 0, second = 0;
  request.versioned = read_pair(max_version, &first, &second) && first >= 1;
  if (read_pair(device, &first, &second)) {
    request.elsewhere = !on_device(tensor, first, second);
    request.host = first == kDLCPU;
  }
  request.copy = copy == Py_True;
  request.may_copy = copy != Py_False;
  return request;
}

// The tensor to export: moved to the host or copied where the consumer asks for it. Throws Error.
Tensor exported(Tensor tensor, const Request& request) {
  if (!request.elsewhere) return request.copy ? copy_of(tensor) : tensor;
  BP_CHECK(request.host && request.may_copy, VALUE, "__dlpack__: argument dl_device: found another device than ",
           device_name(tensor.device()), ", expected that one, or (1, 0) with a copy");
  return to_device(tensor, parse_device("cpu"));
}

}  // namespace

PyObject* tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(keywords), &stream,
                                   &max_version, &device, &copy)) {
    return nullptr;
  }
  const Request request = read_request(handle_of(self), max_version, device, copy);
  if (request.copy && require_op(Slot::Copy) == BP_NO_OP) return nullptr;
  return guarded([&] {
    DLManagedTensorVersioned* managed = nullptr;
    {
      WithoutGil unlocked;
      const Tensor tensor = exported(tensor_of(self), request);
      // The consumer's stream is not one of ours: finished work needs no ordering.
      if (!in_host_memory(tensor.get())) synchronize(tensor.device());
      managed = to_dlpack(tensor);
    }
    if (request.copy || request.elsewhere) managed->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
    return capsule_of(managed, request.versioned);
  });
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  const DLDevice device = handle_of(self)->dl.device;
  return Py_BuildValue("(ii)", static_cast<int>(device.device_type), device.device_id);
}

namespace {

// The exporter's capsule, asked for in version 1 first; exporters of before it know no arguments.
PyRef request_capsule(PyObject* object, PyObject* copy) {
  PyRef method = PyRef::steal(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method) return {};
  PyRef nothing = PyRef::steal(PyTuple_New(0));
  PyRef wishes = PyRef::steal(Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (!nothing || !wishes) return {};
  if (copy != Py_None && PyDict_SetItemString(wishes.get(), "copy", copy) < 0) return {};
  PyRef capsule = PyRef::steal(PyObject_Call(method.get(), nothing.get(), wishes.get()));
  if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError) || copy != Py_None) return capsule;
  PyErr_Clear();
  return PyRef::steal(PyObject_CallNoArgs(method.get()));
}

PyObject* consume(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
    BP_CHECK(managed->version.major == DLPACK_MAJOR_VERSION, VERSION, "from_dlpack: found DLPack ",
             managed->version.major, ".", managed->version.minor, ", expected ", DLPACK_MAJOR_VERSION, ".x");
    Tensor tensor = from_dlpack(managed);
    PyCapsule_SetName(capsule, kVersionedUsed);
    return wrap_tensor(std::move(tensor));
  }
  BP_CHECK(PyCapsule_IsValid(capsule, kOlder), TYPE,
           "from_dlpack: found no DLPack capsule, or one that was consumed already");
  Tensor tensor = from_dlpack(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOlder)));
  PyCapsule_SetName(capsule, kOlderUsed);
  return wrap_tensor(std::move(tensor));
}

}  // namespace

PyObject* import_dlpack(PyObject* object, PyObject* copy) noexcept {
  PyRef capsule = request_capsule(object, copy);
  return capsule ? guarded([&] { return consume(capsule.get()); }) : nullptr;
}

PyObject* from_dlpack_object(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"", "device", "copy", nullptr};
  PyObject *object = nullptr, *device_name = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(keywords), &object,
                                   &device_name, &copy)) {
    return nullptr;
  }
  if (!PyObject_HasAttrString(object, "__dlpack__")) {
    return raise(BP_ERROR_TYPE, "from_dlpack: argument x: found a value of type %s, expected an object with __dlpack__",
                 Py_TYPE(object)->tp_name);
  }
  PyRef tensor = PyRef::steal(import_dlpack(object, copy));
  if (!tensor || device_name == Py_None) return tensor.release();
  bp_device device;
  const int read = read_device(device_name, &device);
  if (read < 0) return nullptr;
  if (read == 0)
    return raise(BP_ERROR_TYPE, "from_dlpack: argument device: found a value of type %s, expected a device",
                 Py_TYPE(device_name)->tp_name);
  return guarded([&] { return wrap_tensor(to_device(tensor_of(tensor.get()), device)); });
}

}  // namespace backplane::python
