// The functions on numbers, int lists and dtypes that formulas call beside ops, in a table by name: the words of
// backplane/abi/vocabulary.h.
//
// Pure, but for device_computes, which asks where the formula runs: values in, a value out; lists that a builtin makes
// live in the evaluation's ValueArena. Integers are int64, numbers go on to the end of uint64, and a result beyond that
// is an error. Errors name the op of the formula, the builtin, and the value found.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backplane/abi/vocabulary.h"
#include "backplane/error.hpp"

namespace backplane::core {

// Longest list that a formula may make: shapes and axes are short, and tensor lists are written by hand.
inline constexpr int64_t kMaxFormulaList = 1 << 20;

// Memory of one evaluation: freed at its end, all at once. Not shared between threads.
class ValueArena {
 public:
  ValueArena() {}  // leaves the buffer as it is
  ValueArena(const ValueArena&) = delete;
  ValueArena& operator=(const ValueArena&) = delete;

  template <class T>
  T* array(size_t count) {
    static_assert(alignof(T) <= alignof(int64_t));
    return static_cast<T*>(take((count * sizeof(T) + 7) / 8 * 8));
  }

 private:
  static constexpr size_t kInline = 1024;
  void* take(size_t size) {
    if (size > kInline - used_) [[unlikely]]
      return take_block(size);
    void* memory = buffer_ + used_;
    used_ += size;
    return memory;
  }
  void* take_block(size_t size) {
    blocks_.push_back(std::make_unique<int64_t[]>(size / 8 + 1));
    return blocks_.back().get();
  }
  size_t used_ = 0;
  alignas(int64_t) char buffer_[kInline];
  std::vector<std::unique_ptr<int64_t[]>> blocks_;
};

struct BuiltinCall {
  std::string_view op;  // whose formula runs
  std::string_view name;
  std::span<const bp_value> in;
  ValueArena& arena;
};

struct Builtin {
  std::string_view name;
  uint8_t min_args;
  uint8_t max_args;
  bool passes_tensors;  // hands tensors among its inputs on; else it asks at most if and how many there are
  bp_value (*fn)(const BuiltinCall& call);
};
const Builtin* find_builtin(std::string_view name) noexcept;

// The dtype that an input of the call is; throws if it is another value.
bp_dtype dtype_of(const BuiltinCall& call, const bp_value& v);

// A list of `values` in the tightest form: ints, floats, bools or tensors (absent ones allowed), else of values.
// `tag_of_empty` is the tag of an empty one.
bp_value make_list(ValueArena& arena, std::span<const bp_value> values, uint16_t tag_of_empty = BP_TAG_INT_LIST);
// Element i of a list of any form; i lies within it.
bp_value list_element(const bp_value& list, uint32_t i);

// Their meaning is in docs/reference/ops-yaml.md.
namespace builtin {
#define BP_BUILTIN(function, ...) bp_value function(const BuiltinCall& call);
BP_BUILTIN_FUNCTIONS(BP_BUILTIN)
BP_BUILTIN_OPERATORS(BP_BUILTIN)
#undef BP_BUILTIN
}  // namespace builtin

}  // namespace backplane::core
