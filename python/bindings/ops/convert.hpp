// From Python arguments to the values of a call: one reader per meaning type of the registry.
//
// A CallArguments lives on the stack of one call and owns what its values point to: copies of int lists, tuples of the
// tensors of a list, complex numbers, generator states. It needs the interpreter lock.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "backplane/abi/host.h"
#include "backplane/op.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

class CallArguments {
 public:
  static constexpr int32_t kInline = 16;

  explicit CallArguments(int32_t count) : values_(count <= kInline ? inline_values_ : spill<bp_value>(count)) {}
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  bp_value* values() noexcept { return values_; }

  // Uninitialised room for `count` elements, valid as long as this object.
  template <class T>
  T* allocate(size_t count) {
    const size_t start = (used_ + alignof(T) - 1) & ~(alignof(T) - 1);
    if (start + count * sizeof(T) > sizeof room_) return spill<T>(count);
    used_ = start + count * sizeof(T);
    return reinterpret_cast<T*>(room_ + start);
  }
  void keep_alive(PyRef object) { kept_.push_back(std::move(object)); }

 private:
  template <class T>
  T* spill(size_t count) {
    spilled_.push_back(std::make_unique<std::byte[]>(count * sizeof(T)));
    return reinterpret_cast<T*>(spilled_.back().get());
  }

  std::vector<std::unique_ptr<std::byte[]>> spilled_;
  std::vector<PyRef> kept_;
  size_t used_ = 0;
  bp_value inline_values_[kInline];
  bp_value* values_;
  alignas(16) std::byte room_[512];
};

// Reads `object` as the argument that `spec` describes. Returns 1, or 2 where a list or array became a tensor, or 3 for
// a traced number that nobody has looked at; 0 where it is not of the kind (no Python error set); -1 with a Python
// error that needs no more words.
int read_argument(const bp_arg_def& spec, PyObject* object, CallArguments& arguments, bp_value* value);

// The values that an argument takes, for an error message: "an axis or a sequence of axes, or None".
const char* expected_kind(const bp_arg_def& spec) noexcept;

// The spelling of the argument's type in signatures: "Axes | None".
const char* type_word(uint16_t type) noexcept;

}  // namespace backplane::python
