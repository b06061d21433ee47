// Shape rules: a function for each word of backplane/abi/vocabulary.h.
//
// A rule sees shapes and attributes only. It writes sizes, and for a view also strides (elements) and the byte
// offset that is added to the base's. All rules throw Error with the op's name, the value found and the value expected.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "record/op_record.hpp"

namespace backplane::core {

inline constexpr int kMaxRank = 64;

struct ShapeResult {
  ShapeResult() {}  // leaves the arrays as they are
  int32_t ndim = 0;
  bool is_view = false;  // strides and offset are set
  int64_t byte_offset = 0;
  bp_dtype view_dtype = BP_DTYPE_NONE;  // view.real, view.imag: the dtype of the elements seen
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank];
};

// `args`: all arguments of the call, in order, defaults filled in. A number in a tensor position has no dims.
using ShapeFn = void (*)(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out);

// A row of BP_SHAPE_WORDS.
struct ShapeWord {
  std::string_view name;
  std::string_view params;  // without `*`
  uint8_t min_args;
  uint8_t max_args;
  ShapeFn fn;
};
const ShapeWord* find_shape_word(std::string_view name) noexcept;

// Result `index` of `op`: by word, by the SHAPE formula, or by the record's function. `dynamic` is the caller's.
void infer_shape_without_word(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index,
                              ShapeResult& out);
inline void infer_shape(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index, ShapeResult& out) {
  // Rules append sizes; callers use one ShapeResult for all results of an op.
  out.ndim = 0;
  out.is_view = false;
  out.byte_offset = 0;
  out.view_dtype = BP_DTYPE_NONE;
  if (const ShapeWord* word = op.shape_words[static_cast<size_t>(index)]) [[likely]]
    word->fn(op, op.shapes[static_cast<size_t>(index)], args, out);
  else
    infer_shape_without_word(op, args, n_args, index, out);
}

// Has result `index` > 0 the shape of result 0 in every call, because one formula states both?
inline bool shares_first_shape(const OpRecord& op, int32_t index) {
  const size_t i = static_cast<size_t>(index);
  if (!op.shape_formula || op.shape_words[0] || op.shape_words[i] || op.shapes[0].fn || op.shapes[i].fn) return false;
  const std::vector<uint32_t>& roots = op.plan(*op.shape_formula).roots;
  return i < roots.size() && roots[i] == roots[0];
}

// Pieces that others need. Sizes are checked against overflow.
void broadcast_into(const OpRecord& op, const int64_t* sizes, int32_t ndim, ShapeResult& out);
bool broadcasts_to(std::span<const int64_t> from, std::span<const int64_t> to);
int64_t checked_count(const int64_t* sizes, int32_t ndim);  // throws Error(BP_ERROR_MEMORY) beyond int64
[[noreturn]] void fail_axis(const OpRecord& op, int64_t axis, int32_t ndim);
inline int32_t normalize_axis(const OpRecord& op, int64_t axis, int32_t ndim) {  // throws BP_ERROR_INDEX
  const int64_t from_front = axis < 0 ? axis + ndim : axis;
  if (from_front < 0 || from_front >= ndim) [[unlikely]]
    fail_axis(op, axis, ndim);
  return static_cast<int32_t>(from_front);
}

// "(2, 3)", for messages.
std::string shape_text(std::span<const int64_t> sizes);
// "bp::linear: found x of shape (4, 3), weight of shape (2, 4)", for messages; the name alone without tensors.
std::string found_arguments(const OpRecord& op, const bp_value* args, int32_t n_args);

}  // namespace backplane::core
