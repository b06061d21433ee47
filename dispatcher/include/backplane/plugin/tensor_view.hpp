// Typed views of a kernel's arguments: tensors and numbers.
//
// Not the contract: header-only sugar over backplane/abi. A view borrows its tensor and is valid until the kernel
// returns. data() and element access are for addressable backends, whose memory this code can reach; others read
// handle()->dl.data and byte_offset.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <type_traits>

#include "backplane/abi/plugin.h"
#include "backplane/plugin/dtype.hpp"

namespace backplane::plugin {

// T is the element type, const where the kernel only reads; void where the dtype is known at run time alone.
template <class T>
class TensorView {
 public:
  using Element = std::remove_const_t<T>;

  explicit TensorView(bp_tensor* tensor) : tensor_(tensor) {
    if constexpr (!std::is_void_v<Element>) {
      static_assert(kDtypeOf<Element> != BP_DTYPE_NONE, "not a type of elements");
      BP_CHECK(tensor->dtype == kDtypeOf<Element>, DTYPE, "found a tensor of ", dtype_name(tensor->dtype),
               ", expected ", dtype_name(kDtypeOf<Element>), "; restrict the kernel row's dtypes to it");
    }
  }

  bp_tensor* handle() const { return tensor_; }
  T* data() const {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T*>(static_cast<Byte*>(tensor_->dl.data) + tensor_->dl.byte_offset);
  }
  bp_dtype dtype() const { return tensor_->dtype; }
  int32_t ndim() const { return tensor_->dl.ndim; }
  std::span<const int64_t> shape() const { return {tensor_->dl.shape, static_cast<size_t>(ndim())}; }
  std::span<const int64_t> strides() const { return {tensor_->dl.strides, static_cast<size_t>(ndim())}; }
  int64_t shape(int32_t axis) const { return tensor_->dl.shape[axis]; }
  int64_t stride(int32_t axis) const { return tensor_->dl.strides[axis]; }
  int64_t size() const { return static_cast<int64_t>(tensor_->nbytes / kItemSize[tensor_->dtype]); }
  bool contiguous() const { return (tensor_->flags & BP_TENSOR_CONTIGUOUS) != 0; }

  // By one index per axis, through the strides.
  template <class... Index>
  decltype(auto) operator()(Index... index) const requires(!std::is_void_v<Element>) {
    int64_t offset = 0;
    int32_t axis = 0;
    ((offset += static_cast<int64_t>(index) * tensor_->dl.strides[axis++]), ...);
    return static_cast<T&>(data()[offset]);
  }

 private:
  bp_tensor* tensor_;
};
template <class T>
using ConstTensor = TensorView<const T>;
template <class T>
using MutTensor = TensorView<T>;

// Numbers. For a value of another kind, the error states the kind that was found.
inline const char* tag_name(uint16_t tag) {
  static constexpr const char* kNames[] = {"nothing",          "a bool",      "an int",  "a float",
                                           "a complex number", "a string",    "a dtype", "a device",
                                           "a tensor",         "a generator", "a graph"};
  return (tag & BP_TAG_LIST) != 0 ? "a list" : tag <= BP_TAG_GRAPH ? kNames[tag] : "a value of an unknown kind";
}

inline bool is_number(const bp_value& value) { return value.tag >= BP_TAG_BOOL && value.tag <= BP_TAG_COMPLEX; }

inline double as_double(const bp_value& value) {
  if (value.tag == BP_TAG_FLOAT) return value.u.f;
  BP_CHECK(value.tag == BP_TAG_INT || value.tag == BP_TAG_BOOL, TYPE, "found ", tag_name(value.tag),
           ", expected a real number");
  return static_cast<double>(value.u.i);
}

inline int64_t as_int(const bp_value& value) {
  BP_CHECK(value.tag == BP_TAG_INT || value.tag == BP_TAG_BOOL, TYPE, "found ", tag_name(value.tag),
           ", expected an integer");
  return value.u.i;
}

inline bool as_bool(const bp_value& value) {
  BP_CHECK(value.tag == BP_TAG_BOOL, TYPE, "found ", tag_name(value.tag), ", expected a bool");
  return value.u.i != 0;
}

inline std::complex<double> as_complex(const bp_value& value) {
  if (value.tag == BP_TAG_COMPLEX) return {value.u.c[0], value.u.c[1]};
  return as_double(value);
}

// A number in the type of elements T: what an immediate operand means in the compute dtype.
template <class T>
T number_as(const bp_value& value) {
  if constexpr (kIsComplex<T>) {
    return static_cast<T>(as_complex(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.tag == BP_TAG_FLOAT ? value.u.f != 0 : as_int(value) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(as_int(value));
  } else if constexpr (kIsHalf<T>) {
    return T(static_cast<float>(as_double(value)));
  } else {
    return static_cast<T>(as_double(value));
  }
}

}  // namespace backplane::plugin
