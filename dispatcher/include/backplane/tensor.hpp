// The owning handle of a tensor, for users of libbackplane.
//
// A Tensor holds one reference to a `bp_tensor`; copying it shares the tensor. Shape, strides and dtype are read
// straight from the handle. Handles may be used from any thread; the data are guarded by nobody.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "backplane/abi/value.h"
#include "backplane/error.hpp"

#if defined(BACKPLANE_BUILD)
#define BACKPLANE_API __attribute__((visibility("default")))
#else
#define BACKPLANE_API
#endif

namespace backplane {

BACKPLANE_API void retain(bp_tensor* tensor) noexcept;
BACKPLANE_API void release(bp_tensor* tensor) noexcept;

using Shape = std::span<const int64_t>;

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) noexcept : handle_(other.handle_) {
    if (handle_) retain(handle_);
  }
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_) release(handle_);
  }

  // Takes over the caller's reference.
  static Tensor adopt(bp_tensor* handle) noexcept {
    Tensor tensor;
    tensor.handle_ = handle;
    return tensor;
  }
  // Adds a reference of its own.
  static Tensor share(bp_tensor* handle) noexcept {
    if (handle) retain(handle);
    return adopt(handle);
  }

  bp_tensor* get() const noexcept { return handle_; }
  bp_tensor* detach_handle() noexcept { return std::exchange(handle_, nullptr); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  // The handle of a Tensor that is not empty. Throws, as all below do, for one that is.
  bp_tensor* held() const {
    BP_CHECK(handle_, VALUE, "found an empty Tensor, which a default-made one is; expected one that was made by an op");
    return handle_;
  }
  int32_t ndim() const { return held()->dl.ndim; }
  Shape shape() const { return {held()->dl.shape, static_cast<size_t>(handle_->dl.ndim)}; }
  Shape strides() const { return {held()->dl.strides, static_cast<size_t>(handle_->dl.ndim)}; }
  bp_dtype dtype() const { return held()->dtype; }
  bp_device device() const { return {held()->backend, handle_->ordinal}; }
  bool is_contiguous() const { return (held()->flags & BP_TENSOR_CONTIGUOUS) != 0; }

 private:
  bp_tensor* handle_ = nullptr;
};

// Borrowed argument values.
inline bp_value value(const Tensor& tensor) noexcept {
  bp_value v{};
  v.tag = tensor ? BP_TAG_TENSOR : BP_TAG_ABSENT;
  v.u.t = tensor.get();
  return v;
}
inline bp_value absent() noexcept { return bp_value{}; }
inline bp_value value(bool b) noexcept {
  bp_value v{};
  v.tag = BP_TAG_BOOL;
  v.u.i = b;
  return v;
}
inline bp_value value(int64_t i) noexcept {
  bp_value v{};
  v.tag = BP_TAG_INT;
  v.u.i = i;
  return v;
}
inline bp_value value(double f) noexcept {
  bp_value v{};
  v.tag = BP_TAG_FLOAT;
  v.u.f = f;
  return v;
}
inline bp_value value(Shape ints) noexcept {
  bp_value v{};
  v.tag = BP_TAG_INT_LIST;
  v.count = static_cast<uint32_t>(ints.size());
  v.u.ints = ints.data();
  return v;
}
inline bp_value value(bp_device device) noexcept {
  bp_value v{};
  v.tag = BP_TAG_DEVICE;
  v.u.d = device;
  return v;
}
inline bp_value dtype_value(bp_dtype dtype) noexcept {
  bp_value v{};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}
// A number in a tensor position: weak in promotion.
inline bp_value number(bp_value scalar) noexcept {
  scalar.flags |= BP_VALUE_NUMBER;
  return scalar;
}

}  // namespace backplane
