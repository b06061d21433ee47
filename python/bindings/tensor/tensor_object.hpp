// The Python tensor: a CPython object around one reference to a bp_tensor.
//
// Objects come from a free list; the type is final, so that "is it a tensor" is one pointer comparison. The garbage
// collector tracks a tensor once it may own Python objects, which few do. All functions need the interpreter lock.
#pragma once

#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/tensor/default_float.hpp"

namespace backplane::python {

struct TensorObject {
  PyObject_HEAD bp_tensor* handle;
  PyObject* weak_references;
  bool tracked;  // by the garbage collector
};

extern PyTypeObject* g_tensor_type;

bool add_tensor_type(PyObject* module);

inline bool is_tensor(PyObject* object) noexcept { return Py_TYPE(object) == g_tensor_type; }
inline bp_tensor* handle_of(PyObject* tensor) noexcept { return reinterpret_cast<TensorObject*>(tensor)->handle; }
inline Tensor tensor_of(PyObject* tensor) noexcept { return Tensor::share(handle_of(tensor)); }

// The tensor of an object that outlives it, without a reference of its own.
class BorrowedTensor {
 public:
  explicit BorrowedTensor(PyObject* object) noexcept : tensor_(Tensor::adopt(handle_of(object))) {}
  ~BorrowedTensor() { tensor_.detach_handle(); }
  BorrowedTensor(const BorrowedTensor&) = delete;
  const Tensor& get() const noexcept { return tensor_; }

 private:
  Tensor tensor_;
};

// Takes over one reference to `handle`, also when it fails.
PyObject* wrap_tensor(bp_tensor* handle) noexcept;
inline PyObject* wrap_tensor(Tensor tensor) noexcept { return wrap_tensor(tensor.detach_handle()); }
// While it is not 0, the garbage collector knows every new tensor object. Changed under the interpreter lock.
inline int g_tracks_tensors = 0;
// It may own Python objects from now on: hooks, a gradient with hooks, a function of its history.
void track_tensor(PyObject* tensor) noexcept;
PyObject* shape_tuple(const int64_t* sizes, int32_t count) noexcept;

inline bp_value tensor_value(bp_tensor* handle) noexcept {
  bp_value value{};
  value.tag = BP_TAG_TENSOR;
  value.u.t = handle;
  return value;
}

// Below this many bytes of operands a call is over sooner than another thread could use the lock.
inline constexpr uint64_t kReleaseGilBytes = 64 * 1024;

// The bytes that decide it for a tensor. A call that puts work on another device may wait for a thread that holds the
// device, or for the device, whose callbacks may want the interpreter lock: never under it.
inline uint64_t work_of(const bp_tensor& tensor) noexcept {
  return tensor.nbytes | (tensor.dl.device.device_type == kDLCPU ? 0 : kReleaseGilBytes);
}
inline uint64_t bytes_of(const bp_value* args, int32_t n_args) noexcept {
  uint64_t bytes = 0;
  for (int32_t i = 0; i < n_args; ++i) {
    if (args[i].tag == BP_TAG_TENSOR) bytes += work_of(*args[i].u.t);
  }
  return bytes;
}

// call_packed and call_inplace, without the lock where `bytes` of work make that pay.
inline bp_status call_op(OpHandle op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs,
                         uint64_t bytes) noexcept {
  if (bytes < kReleaseGilBytes) return call_packed(op, args, n_args, outs, n_outs);
  WithoutGil unlocked;
  return call_packed(op, args, n_args, outs, n_outs);
}
inline bp_status call_op_inplace(OpHandle op, const bp_value* args, int32_t n_args, uint64_t bytes) noexcept {
  if (bytes < kReleaseGilBytes) return call_inplace(op, args, n_args);
  WithoutGil unlocked;
  return call_inplace(op, args, n_args);
}

// to_host, which may wait for a device: then without the lock.
inline void read_elements(const Tensor& tensor, void* to) {
  if (tensor.get()->dl.device.device_type == kDLCPU) return to_host(tensor, to);
  WithoutGil unlocked;
  to_host(tensor, to);
}

// A view op, which does no work that would make releasing the lock pay, however large its operand: as call_to_tensor.
inline PyObject* call_to_view(OpHandle op, const bp_value* args, int32_t n_args) noexcept {
  bp_value out{};
  if (bp_status status = call_packed(op, args, n_args, &out, 1)) [[unlikely]] {
    return raise_status(status);
  }
  return wrap_tensor(out.u.t);
}

// An op with one result: a new Python tensor, or nullptr with the Python error.
inline PyObject* call_as_given(OpHandle op, const bp_value* args, int32_t n_args) noexcept {
  bp_value out{};
  if (bp_status status = call_op(op, args, n_args, &out, 1, bytes_of(args, n_args))) [[unlikely]] {
    return raise_status(status);
  }
  return wrap_tensor(out.u.t);
}
PyObject* call_with_default(OpHandle op, const bp_value* args, int32_t n_args) noexcept;
inline PyObject* call_to_tensor(OpHandle op, const bp_value* args, int32_t n_args) noexcept {
  if (!is_core_default()) [[unlikely]]
    return call_with_default(op, args, n_args);
  return call_as_given(op, args, n_args);
}

}  // namespace backplane::python
