// DLPack import: the request to an exporter, by its version of the protocol, and the tensor over the capsule's memory.
#include "backplane/device.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/dlpack.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

// The request, and the parts of it that the exporter honoured.
struct Import {
  PyObject* copy;
  bool copied = false;
};

PyRef call_exporter(PyObject* method, PyObject* wishes) {
  PyRef nothing = PyRef::steal(PyTuple_New(0));
  return nothing ? PyRef::steal(PyObject_Call(method, nothing.get(), wishes)) : PyRef{};
}

// This thread's stream on the exporter's device. The exporter does not wait for its past work. Work that it puts before
// the stream's next work is visible to us. None on a device without streams, such as the host.
PyRef stream_for(PyObject* object, PyObject* dl_device) {
  if (dl_device) return PyRef::borrow(Py_None);  // to the host
  PyRef place = PyRef::steal(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  int type = 0, ordinal = 0;
  if (!place || !PyTuple_Check(place.get()) || !PyArg_ParseTuple(place.get(), "ii", &type, &ordinal)) {
    forget_error();
    return PyRef::borrow(Py_None);
  }
  return PyRef::steal(guarded([&]() -> PyObject* {
    const std::optional<int64_t> stream = dlpack_stream(type, ordinal);
    if (!stream) Py_RETURN_NONE;
    return PyLong_FromLongLong(*stream);
  }));
}

// The exporter's capsule. The first request has all keywords; exporters before version 1 do not know them.
PyRef request_capsule(PyObject* object, PyObject* dl_device, Import& import) {
  PyRef method = PyRef::steal(PyObject_GetAttrString(object, "__dlpack__"));
  PyRef wishes = PyRef::steal(Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (!method || !wishes) return {};
  if (import.copy != Py_None && PyDict_SetItemString(wishes.get(), "copy", import.copy) < 0) return {};
  if (dl_device && PyDict_SetItemString(wishes.get(), "dl_device", dl_device) < 0) return {};
  PyRef stream = stream_for(object, dl_device);
  if (!stream) return {};
  if (stream.get() != Py_None && PyDict_SetItemString(wishes.get(), "stream", stream.get()) < 0) return {};
  PyRef capsule = call_exporter(method.get(), wishes.get());
  // An exporter of before version 1 may swallow a wish that it does not know.
  import.copied = import.copy == Py_True && capsule && PyCapsule_IsValid(capsule.get(), kCapsule);
  if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  forget_error();
  PyDict_Clear(wishes.get());
  if (stream.get() != Py_None && PyDict_SetItemString(wishes.get(), "stream", stream.get()) < 0) return {};
  return call_exporter(method.get(), wishes.get());
}

// Bools other than the bytes 0 and 1 are copied, if the caller allows it.
void check_shared(const Tensor& tensor, const DLTensor& dl, PyObject* copy) {
  const bp_tensor& t = *tensor.get();
  const bool copied = t.nbytes != 0 && in_host_memory(&t) &&
                      static_cast<char*>(t.dl.data) + t.dl.byte_offset != static_cast<char*>(dl.data) + dl.byte_offset;
  BP_CHECK(!copied || copy != Py_False, VALUE,
           "from_dlpack: argument copy: found False, but bools other than the bytes 0 and 1 need a copy");
}

PyObject* consume(PyObject* capsule, PyObject* copy) {
  if (PyCapsule_IsValid(capsule, kCapsule)) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kCapsule));
    BP_CHECK(managed->version.major == DLPACK_MAJOR_VERSION, VERSION, "from_dlpack: found DLPack ",
             managed->version.major, ".", managed->version.minor, ", expected ", DLPACK_MAJOR_VERSION, ".x");
    const DLTensor dl = managed->dl_tensor;
    Tensor tensor = from_dlpack(managed);
    PyCapsule_SetName(capsule, kUsedCapsule);
    check_shared(tensor, dl, copy);
    return wrap_tensor(std::move(tensor));
  }
  BP_CHECK(PyCapsule_IsValid(capsule, kOlderCapsule), TYPE,
           "from_dlpack: found no DLPack capsule, or one that was consumed already");
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOlderCapsule));
  const DLTensor dl = managed->dl_tensor;
  Tensor tensor = from_dlpack(managed);
  PyCapsule_SetName(capsule, kUsedOlderCapsule);
  check_shared(tensor, dl, copy);
  return wrap_tensor(std::move(tensor));
}

PyRef imported(PyObject* object, PyObject* dl_device, Import& import) {
  PyRef capsule = request_capsule(object, dl_device, import);
  return PyRef::steal(capsule ? guarded([&] { return consume(capsule.get(), import.copy); }) : nullptr);
}

// The host as the exporter's target, where the memory is on a device that no loaded backend may know.
PyRef target_of(PyObject* object, bp_device device) {
  if (device_name(device) != "cpu") return {};
  PyRef place = PyRef::steal(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  if (!place) forget_error();
  if (!place || !PyTuple_Check(place.get()) || PyTuple_GET_SIZE(place.get()) != 2) return {};
  const long type = PyLong_AsLong(PyTuple_GET_ITEM(place.get(), 0));
  forget_error();
  return type == kDLCPU ? PyRef{} : PyRef::steal(Py_BuildValue("(ii)", static_cast<int>(kDLCPU), 0));
}

// On the device that was asked for, and copied where the exporter did not do it.
PyObject* finished(PyRef object, const bp_device* device, const Import& import) {
  return guarded([&]() -> PyObject* {
    const Tensor tensor = tensor_of(object.get());
    const bp_device own = tensor.device();
    if (device && (own.backend != device->backend || own.ordinal != device->ordinal)) {
      BP_CHECK(import.copy != Py_False, VALUE, "from_dlpack: argument copy: found False, but from ", device_name(own),
               " to ", device_name(*device), " needs a copy");
      return wrap_tensor(to_device(tensor, *device));
    }
    if (import.copy != Py_True || import.copied) return object.release();
    const OpHandle op = require_op(Slot::Copy);
    return op == BP_NO_OP ? nullptr : wrap_tensor(call(op, {value(tensor)}));
  });
}

}  // namespace

PyObject* import_dlpack(PyObject* object, PyObject* copy) noexcept {
  Import import{copy};
  PyRef tensor = imported(object, nullptr, import);
  return tensor ? finished(std::move(tensor), nullptr, import) : nullptr;
}

PyObject* from_dlpack_object(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"", "device", "copy", nullptr};
  PyObject *object = nullptr, *place = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(keywords), &object, &place,
                                   &copy)) {
    return nullptr;
  }
  if (!has_attribute(object, "__dlpack__")) {
    PyErr_Format(PyExc_AttributeError,
                 "from_dlpack: argument x: found a value of type %s, expected an object with __dlpack__",
                 Py_TYPE(object)->tp_name);
    return nullptr;
  }
  bp_device device{};
  const int read = place == Py_None ? 1 : read_device(place, &device);
  if (read == 0)
    raise(BP_ERROR_TYPE, "from_dlpack: argument device: found a value of type %s, expected a device",
          Py_TYPE(place)->tp_name);
  if (read != 1) return nullptr;
  return guarded([&]() -> PyObject* {
    PyRef target = place == Py_None ? PyRef{} : target_of(object, device);
    if (target && copy == Py_False)
      return raise(BP_ERROR_VALUE, "from_dlpack: argument copy: found False, but another device needs a copy");
    Import import{copy};
    PyRef tensor = imported(object, target.get(), import);
    return tensor ? finished(std::move(tensor), place == Py_None ? nullptr : &device, import) : nullptr;
  });
}

}  // namespace backplane::python
