// Argument types of namespace bp: what a caller may write where a function takes a dtype, a device, sizes or tensors.
//
// Lists are borrowed: none outlives the call that it is an argument of.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/operand.hpp"
#include "backplane/transforms.hpp"

namespace bp {

class Tensor;
using backplane::Error;
using backplane::Operand;
using backplane::Positions;
using backplane::Randomness;
using backplane::Scalar;
using Generator = bp_generator_state;

// A dtype. The constants below are all of them.
struct Dtype {
  bp_dtype dtype;
  template <std::same_as<bp_dtype> T>
  constexpr Dtype(T value) noexcept : dtype(value) {}
  operator backplane::Dtype() const noexcept { return dtype; }
};

inline constexpr bp_dtype kBool = BP_BOOL, kInt8 = BP_INT8, kInt16 = BP_INT16, kInt32 = BP_INT32, kInt64 = BP_INT64;
inline constexpr bp_dtype kUInt8 = BP_UINT8, kUInt16 = BP_UINT16, kUInt32 = BP_UINT32, kUInt64 = BP_UINT64;
inline constexpr bp_dtype kFloat16 = BP_FLOAT16, kBFloat16 = BP_BFLOAT16, kFloat32 = BP_FLOAT32, kFloat64 = BP_FLOAT64;
inline constexpr bp_dtype kComplex64 = BP_COMPLEX64, kComplex128 = BP_COMPLEX128;
// libtorch's other names for them.
inline constexpr bp_dtype kByte = kUInt8, kInt = kInt32, kLong = kInt64, kHalf = kFloat16, kFloat = kFloat32;
inline constexpr bp_dtype kDouble = kFloat64;

// The dtype of the elements of a C++ type.
template <class T>
constexpr bp_dtype dtype_of() {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Plain, bool>)
    return kBool;
  else if constexpr (std::is_floating_point_v<Plain>) {
    static_assert(sizeof(Plain) <= 8, "long double has no dtype");
    return sizeof(Plain) == 4 ? kFloat32 : kFloat64;
  } else {
    static_assert(std::is_integral_v<Plain>, "only arithmetic types have a dtype");
    constexpr bp_dtype kSigned[] = {kInt8, kInt16, kInt32, kInt64};
    constexpr bp_dtype kUnsigned[] = {kUInt8, kUInt16, kUInt32, kUInt64};
    constexpr int kPower = sizeof(Plain) == 1 ? 0 : sizeof(Plain) == 2 ? 1 : sizeof(Plain) == 4 ? 2 : 3;
    return std::is_signed_v<Plain> ? kSigned[kPower] : kUnsigned[kPower];
  }
}

// "cpu", "vulkan:1". Throws Error for a name that no plugin has.
class Device {
 public:
  Device(bp_device device) noexcept : device_(device) {}
  Device(const char* name) : device_(backplane::parse_device(name)) {}
  Device(const std::string& name) : device_(backplane::parse_device(name)) {}
  operator bp_device() const noexcept { return device_; }
  std::string name() const { return backplane::device_name(device_); }
  friend bool operator==(const Device& a, const Device& b) noexcept {
    return a.device_.backend == b.device_.backend && a.device_.ordinal == b.device_.ordinal;
  }

 private:
  bp_device device_;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.name(); }

// How a new tensor is to be made; each part has its default where it is not stated.
struct TensorOptions {
  std::optional<Dtype> type = {};
  std::optional<Device> place = {};
  bool grad = false;
  TensorOptions() = default;
  template <std::same_as<bp_dtype> T>  // no other number
  TensorOptions(T dtype) : type(Dtype(dtype)) {}
  TensorOptions(Device device) : place(device) {}
  TensorOptions(const char* device) : place(Device(device)) {}
  TensorOptions dtype(bp_dtype wanted) const {
    TensorOptions options = *this;
    options.type = Dtype(wanted);
    return options;
  }
  TensorOptions device(Device wanted) const {
    TensorOptions options = *this;
    options.place = wanted;
    return options;
  }
  TensorOptions requires_grad(bool wanted = true) const {
    TensorOptions options = *this;
    options.grad = wanted;
    return options;
  }
};
inline TensorOptions dtype(bp_dtype wanted) { return TensorOptions(wanted); }
inline TensorOptions device(Device wanted) { return TensorOptions(wanted); }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

// Axes, sizes or a shape: one number, or several in braces. Default-made: empty.
class IntList {
 public:
  IntList() = default;
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) IntList(T one)
  noexcept : one_(static_cast<int64_t>(one)), is_one_(true) {}
  IntList(std::initializer_list<int64_t> ints) noexcept : ints_(ints.begin(), ints.size()) {}
  IntList(std::span<const int64_t> ints) noexcept : ints_(ints) {}
  IntList(const std::vector<int64_t>& ints) noexcept : ints_(ints) {}

  std::span<const int64_t> span() const noexcept { return is_one_ ? std::span<const int64_t>(&one_, 1) : ints_; }
  operator backplane::Ints() const noexcept { return span(); }
  operator backplane::OptionalInts() const noexcept { return span(); }

 private:
  std::span<const int64_t> ints_;
  int64_t one_ = 0;
  bool is_one_ = false;
};

// As IntList, but absent when default-made.
class OptionalIntList {
 public:
  OptionalIntList() = default;
  OptionalIntList(std::nullopt_t) noexcept {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) OptionalIntList(T one)
  noexcept : list_(IntList(one)) {}
  OptionalIntList(std::initializer_list<int64_t> ints) noexcept : list_(IntList(ints)) {}
  OptionalIntList(std::span<const int64_t> ints) noexcept : list_(IntList(ints)) {}
  OptionalIntList(const std::vector<int64_t>& ints) noexcept : list_(IntList(ints)) {}
  OptionalIntList(const IntList& ints) noexcept : list_(ints) {}

  operator backplane::OptionalInts() const noexcept {
    if (!list_) return {};
    return list_->span();
  }

 private:
  std::optional<IntList> list_;
};

// Tensors, in braces or as a vector; an empty one is an absent element.
class TensorList {
 public:
  TensorList() = default;
  TensorList(std::initializer_list<Tensor> tensors) noexcept;
  TensorList(std::span<const Tensor> tensors) noexcept;
  TensorList(const std::vector<Tensor>& tensors) noexcept;
  TensorList(std::span<const backplane::Tensor> tensors) noexcept : plain_(tensors) {}
  TensorList(const std::vector<backplane::Tensor>& tensors) noexcept : plain_(tensors) {}
  operator backplane::Tensors() const noexcept { return plain_; }
  std::span<const backplane::Tensor> plain() const noexcept { return plain_; }

 private:
  std::span<const backplane::Tensor> plain_;
};

// The generator of functions that are not given one: of the process, and not for several threads at once.
inline Generator& default_generator() noexcept {
  static Generator generator{0, 0};
  return generator;
}
// Restarts the default generator: the same numbers follow the same seed.
inline void manual_seed(uint64_t seed) noexcept { default_generator() = Generator{seed, 0}; }

}  // namespace bp
