// The functions behind the vocabulary's words, and how they read arguments. For the shape_*.cpp files alone.
//
// A record's shape rule was verified against its word's parameters, so a reader trusts the kind of an argument; it
// still checks that a tensor is there and that lists have the length they need. Nothing here allocates.
#pragma once

#include <span>

#include "backplane/abi/vocabulary.h"
#include "record/shape_rules.hpp"

namespace backplane::core {

// One call's view of its arguments: rule.args[i] is "parameter i" of the word.
struct ShapeArgs {
  const OpRecord& op;
  const bp_shape_rule& rule;
  const bp_value* args;

  bool has(uint32_t i) const {
    return i < rule.n_args && rule.args[i] != BP_NO_ARG && args[rule.args[i]].tag != BP_TAG_ABSENT;
  }
  const bp_value& value(uint32_t i) const { return args[rule.args[i]]; }
  const char* name(uint32_t i) const { return op.args[rule.args[i]].name; }
  // Of a number: no dims.
  std::span<const int64_t> sizes(uint32_t i) const {
    const bp_value& v = value(i);
    if (v.tag == BP_TAG_TENSOR) [[likely]]
      return {v.u.t->dl.shape, static_cast<size_t>(v.u.t->dl.ndim)};
    BP_CHECK(v.tag != BP_TAG_ABSENT, TYPE, op.name, ": argument '", name(i), "' is none; expected a tensor");
    return {};
  }
  const bp_tensor& tensor(uint32_t i) const {
    const bp_value& v = value(i);
    BP_CHECK(v.tag == BP_TAG_TENSOR, TYPE, op.name, ": argument '", name(i),
             "' is a number, expected a tensor, because the op is a view. Fix: make one with asarray");
    return *v.u.t;
  }
  int64_t integer(uint32_t i, int64_t otherwise) const { return has(i) ? value(i).u.i : otherwise; }
  bool flag(uint32_t i) const { return has(i) && value(i).u.i != 0; }
  // A single int is a list of one.
  std::span<const int64_t> ints(uint32_t i) const {
    const bp_value& v = value(i);
    if (v.tag == BP_TAG_INT) return {&v.u.i, 1};
    if (v.tag == BP_TAG_INT_LIST) return {v.u.ints, v.count};
    BP_CHECK((v.tag & BP_TAG_LIST) && v.count == 0, TYPE, op.name, ": argument '", name(i),
             "' is not a list of integers");
    return {};
  }
  // For parameters that are axes: a bit per axis of a tensor with `ndim` dims. Throws on a repeated one.
  uint64_t axes(uint32_t i, int32_t ndim) const;
  // The same one by one; `seen` starts at 0.
  int32_t next_axis(uint32_t i, int64_t axis, int32_t ndim, uint64_t& seen) const {
    const int32_t d = normalize_axis(op, axis, ndim);
    if (seen >> d & 1) [[unlikely]]
      fail_repeated(axis, i);
    seen |= uint64_t{1} << d;
    return d;
  }
  [[noreturn]] void fail_repeated(int64_t axis, uint32_t i) const;
  void add_dim(ShapeResult& out, int64_t size) const {
    BP_CHECK(out.ndim < kMaxRank, SHAPE, op.name, ": the result would have more than ", kMaxRank, " dims");
    out.sizes[out.ndim++] = size;
  }
};

namespace shape_words {
#define BP_SHAPE_WORD(function, ...) \
  void function(const OpRecord&, const bp_shape_rule&, const bp_value* args, ShapeResult&);
BP_SHAPE_WORDS(BP_SHAPE_WORD)
#undef BP_SHAPE_WORD
}  // namespace shape_words

}  // namespace backplane::core
