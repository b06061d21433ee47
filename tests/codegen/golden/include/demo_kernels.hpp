// What kernels of the ops of namespace demo receive, by name. Made by backplane-codegen from golden.yaml; edit that instead.
//
// `const auto args = NAME_args::from(values);` in a kernel of the contract's form. Borrowed, like the values. A number in a
// tensor's place leaves nullptr: kernels whose row takes immediates read the value itself.
#pragma once

#include "backplane/abi/host.h"

namespace demo::kernels {

struct TensorList {
  bp_tensor* const* data;
  uint32_t count;
};
struct IntList {
  const int64_t* data;
  uint32_t count;
  bool present;  // an absent list is empty
};

inline const bp_tensor* tensor_of(const bp_value& v) { return v.tag == BP_TAG_TENSOR ? v.u.t : nullptr; }
inline TensorList tensors_of(const bp_value& v) { return {v.u.tensors, v.tag == BP_TAG_TENSOR_LIST ? v.count : 0}; }
inline IntList ints_of(const bp_value& v) {
  if (v.tag != BP_TAG_INT_LIST) return {nullptr, 0, false};
  return {v.u.ints, v.count, true};
}
inline const int64_t* int_or_null(const bp_value& v) { return v.tag == BP_TAG_INT ? &v.u.i : nullptr; }
inline bp_dtype dtype_of(const bp_value& v) { return v.tag == BP_TAG_DTYPE ? static_cast<bp_dtype>(v.u.i) : bp_dtype{BP_DTYPE_NONE}; }
inline const bp_device* device_of(const bp_value& v) { return v.tag == BP_TAG_DEVICE ? &v.u.d : nullptr; }
inline const bp_generator_state* generator_of(const bp_value& v) { return v.tag == BP_TAG_GENERATOR ? v.u.g : nullptr; }
inline const char* text_of(const bp_value& v) { return v.tag == BP_TAG_STRING ? v.u.s : nullptr; }

// demo::axpby: Scales two tensors and adds them.
struct axpby_args {
  static constexpr const char* kOp = "demo::axpby";
  static constexpr uint32_t kRevision = 0;
  static constexpr int32_t kArguments = 4;
  static constexpr int32_t kResults = 1;
  const bp_tensor* x;
  const bp_tensor* y;
  bp_value alpha;
  bp_value beta;
  static axpby_args from(const bp_value* values) { return {tensor_of(values[0]), tensor_of(values[1]), values[2], values[3]}; }
};

// demo::cube: x * x * x.
struct cube_args {
  static constexpr const char* kOp = "demo::cube";
  static constexpr uint32_t kRevision = 0;
  static constexpr int32_t kArguments = 1;
  static constexpr int32_t kResults = 1;
  const bp_tensor* x;
  static cube_args from(const bp_value* values) { return {tensor_of(values[0])}; }
};

// demo::window: A host op with several results and every sort of argument.
struct window_args {
  static constexpr const char* kOp = "demo::window";
  static constexpr uint32_t kRevision = 0;
  static constexpr int32_t kArguments = 5;
  static constexpr int32_t kResults = 2;
  const bp_tensor* x;
  int64_t axis;
  bp_value starts;
  bp_dtype dtype;
  const char* mode;
  static window_args from(const bp_value* values) { return {tensor_of(values[0]), values[1].u.i, values[2], dtype_of(values[3]), text_of(values[4])}; }
};

// demo::noise: Random bits.
struct noise_args {
  static constexpr const char* kOp = "demo::noise";
  static constexpr uint32_t kRevision = 0;
  static constexpr int32_t kArguments = 2;
  static constexpr int32_t kResults = 1;
  IntList shape;
  const bp_generator_state* generator;
  static noise_args from(const bp_value* values) { return {ints_of(values[0]), generator_of(values[1])}; }
};

// demo::turn: A view with its axes in another order.
struct turn_args {
  static constexpr const char* kOp = "demo::turn";
  static constexpr uint32_t kRevision = 0;
  static constexpr int32_t kArguments = 2;
  static constexpr int32_t kResults = 1;
  const bp_tensor* x;
  IntList axes;
  static turn_args from(const bp_value* values) { return {tensor_of(values[0]), ints_of(values[1])}; }
};

}  // namespace demo::kernels
