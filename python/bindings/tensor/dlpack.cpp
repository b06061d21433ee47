// DLPack out: capsules, versioned (1.x) and the older form, without copies unless the consumer asks for one.
//
// A capsule owns its managed tensor until a consumer renames it, as the specification fixes it:
// https://dmlc.github.io/dlpack/latest/python_spec.html. What cannot be exported is a BufferError, as the array API
// says.
#include "bindings/tensor/dlpack.hpp"

#include <string>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {
namespace {

template <class Managed>
void delete_managed(void* managed) {
  auto* tensor = static_cast<Managed*>(managed);
  if (tensor->deleter) tensor->deleter(tensor);
}

void drop_versioned(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kCapsule))
    delete_managed<DLManagedTensorVersioned>(PyCapsule_GetPointer(capsule, kCapsule));
}
void drop_older(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kOlderCapsule))
    delete_managed<DLManagedTensor>(PyCapsule_GetPointer(capsule, kOlderCapsule));
}

void delete_older(DLManagedTensor* managed) {
  delete_managed<DLManagedTensorVersioned>(managed->manager_ctx);
  delete managed;
}

PyObject* capsule_of(DLManagedTensorVersioned* managed, bool versioned) {
  PyObject* capsule = nullptr;
  if (versioned) {
    capsule = PyCapsule_New(managed, kCapsule, drop_versioned);
  } else if (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) {
    PyErr_SetString(PyExc_BufferError,
                    "__dlpack__: the memory is read-only, which only max_version=(1, 0) and later can express");
  } else {
    auto* older = new DLManagedTensor{managed->dl_tensor, managed, delete_older};
    capsule = PyCapsule_New(older, kOlderCapsule, drop_older);
    if (!capsule) delete older;
  }
  if (!capsule) delete_managed<DLManagedTensorVersioned>(managed);
  return capsule;
}

// An int, or a member of an enumeration whose value is one (device types may be such).
bool read_enum(PyObject* object, int64_t* number) {
  if (read_int(object, number) == 1) return true;
  forget_error();
  PyRef member = PyRef::steal(PyObject_GetAttrString(object, "value"));
  if (member && read_int(member.get(), number) == 1) return true;
  forget_error();
  return false;
}

// Raises if `object` is not a pair of ints.
bool read_pair(const char* argument, PyObject* object, int64_t* first, int64_t* second) {
  if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 2 && read_enum(PyTuple_GET_ITEM(object, 0), first) &&
      read_enum(PyTuple_GET_ITEM(object, 1), second)) {
    return true;
  }
  PyRef kind = found_kind(object);
  if (kind) raise(BP_ERROR_TYPE, "__dlpack__: argument %s: found %U, expected a pair of ints", argument, kind.get());
  return false;
}

// A tensor that is made inside a transform belongs to the transform.
Tensor copy_of(const Tensor& tensor) { return plain_value(call(op_of(Slot::Copy), {value(tensor)}), "__dlpack__"); }

// What the consumer asks for, read while the lock is held.
struct Request {
  bool versioned = false;
  bool to_host = false;  // from another device
  bool copy = false;
  DlpackConsumer consumer;
  bool read_only = false;  // the tape, or a transform, could not see a write
};

PyObject* raise_buffer(const char* format, const char* word) {
  PyErr_Format(PyExc_BufferError, format, word);
  return nullptr;
}

// The consumer's stream: none on the host; else the vendor's, where -1 asks for no waiting. As the standard has it,
// CUDA names its default streams 1 and 2, ROCm 0, and without a number the legacy default one is meant.
bool read_stream(PyObject* object, bool on_host, DLDeviceType type, Request* request) {
  std::optional<void*>& handle = request->consumer.stream;
  if (object == Py_None) {
    if (!on_host && type == kDLCUDA) handle = reinterpret_cast<void*>(1);
    if (!on_host && type == kDLROCM) handle = nullptr;
    return true;
  }
  int64_t stream = 0;
  const bool number = read_int(object, &stream) == 1;
  forget_error();
  const bool excluded = type == kDLROCM ? stream == 1 || stream == 2 : stream == 0;
  if (on_host || !number || stream < -1 || excluded) {
    raise(BP_ERROR_VALUE, "__dlpack__: argument stream: found %R, expected %s", object,
          on_host ? "None, because the host has no streams" : "None, -1, or the number of a stream");
    return false;
  }
  request->consumer.ordered = stream != -1;
  if (stream != -1) handle = reinterpret_cast<void*>(static_cast<intptr_t>(stream));
  return true;
}

bool read_target(const bp_tensor* tensor, PyObject* device, bool may_copy, Request* request) {
  const DLDevice own = tensor->dl.device;
  if (device == Py_None) return true;
  int64_t type = 0, ordinal = 0;
  if (!read_pair("dl_device", device, &type, &ordinal)) return false;
  if (type == static_cast<int64_t>(own.device_type) && ordinal == own.device_id) return true;
  const std::string name = device_name({tensor->backend, tensor->ordinal});
  if (type != kDLCPU || ordinal != 0)
    return raise_buffer("__dlpack__: argument dl_device: expected the device of %s, or (1, 0), the host", name.c_str()),
           false;
  if (!may_copy)
    return raise_buffer("__dlpack__: argument copy: found False, but from %s to the host needs a copy", name.c_str()),
           false;
  request->to_host = true;
  return true;
}

bool read_request(const bp_tensor* tensor, PyObject* stream, PyObject* max_version, PyObject* device, PyObject* copy,
                  Request* request) {
  int64_t major = 0, minor = 0;
  if (max_version != Py_None && !read_pair("max_version", max_version, &major, &minor)) return false;
  request->versioned = major >= DLPACK_MAJOR_VERSION;
  if (copy != Py_None && !PyBool_Check(copy))
    return raise(BP_ERROR_TYPE, "__dlpack__: argument copy: found %R, expected True, False or None", copy), false;
  request->copy = copy == Py_True;
  if (!read_target(tensor, device, copy != Py_False, request)) return false;
  return read_stream(stream, in_host_memory(tensor) || request->to_host, tensor->dl.device.device_type, request);
}

// The managed tensor; throws Error.
DLManagedTensorVersioned* exported(const Tensor& self, const Request& request) {
  const Tensor tensor = request.to_host ? to_device(self, parse_device("cpu")) : request.copy ? copy_of(self) : self;
  DLManagedTensorVersioned* managed = to_dlpack(tensor, request.consumer);
  if (request.copy || request.to_host)
    managed->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  else if (request.read_only)
    managed->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  return managed;
}

}  // namespace

PyObject* tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(keywords), &stream,
                                   &max_version, &device, &copy)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Request request;
    if (!read_request(handle_of(self), stream, max_version, device, copy, &request)) return nullptr;
    if (request.copy && require_op(Slot::Copy) == BP_NO_OP) return nullptr;
    DLManagedTensorVersioned* managed = nullptr;
    std::string refusal;
    {
      const BorrowedTensor held(self);
      WithoutGil unlocked;
      try {
        const Tensor tensor = exportable_tensor(held.get().get(), "__dlpack__");
        request.read_only = tensor.get() != held.get().get() || requires_grad(tensor);
        managed = exported(tensor, request);
      } catch (const Error& error) {
        if (error.code() != BP_ERROR_VALUE) throw;
        refusal = error.what();
      }
    }
    return managed ? capsule_of(managed, request.versioned) : raise_buffer("%s", refusal.c_str());
  });
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  const DLDevice device = handle_of(self)->dl.device;
  return Py_BuildValue("(ii)", static_cast<int>(device.device_type), device.device_id);
}

}  // namespace backplane::python
