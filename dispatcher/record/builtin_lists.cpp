// The builtins on lists, shapes and axes, for the table in builtins.cpp.
//
// Pure; new lists live in the call's arena. Axes may be negative, and absent axes mean all.
#include "record/builtins.hpp"

#include <algorithm>

#include "record/builtin_numbers.hpp"

namespace backplane::core {
namespace {

using Ints = std::span<const int64_t>;

[[noreturn, gnu::cold, gnu::noinline]] void fail_list(const BuiltinCall& call, const bp_value& v) {
  detail::fail(BP_ERROR_TYPE, call.op, ": ", call.name, " in its formula got ", tag_name(v.tag), "; expected a list");
}

// An int is a list of one; so is an axis where axes may stand.
Ints ints_of(const BuiltinCall& call, const bp_value& v) {
  if (v.tag == BP_TAG_INT) return {&v.u.i, 1};
  if (v.tag != BP_TAG_INT_LIST && !((v.tag & BP_TAG_LIST) && v.count == 0)) fail_list(call, v);
  return {v.u.ints, v.count};
}

void check_length(const BuiltinCall& call, int64_t count) {
  BP_CHECK(count >= 0 && count <= kMaxFormulaList, VALUE, call.op, ": ", call.name, " in its formula makes a list of ",
           count, " elements; at most ", kMaxFormulaList, " are allowed");
}

// An int list of the arena, to be filled.
struct NewInts {
  bp_value value{};
  int64_t* data;

  NewInts(const BuiltinCall& call, int64_t count) {
    check_length(call, count);
    data = call.arena.array<int64_t>(static_cast<size_t>(count));
    value.tag = BP_TAG_INT_LIST;
    value.count = static_cast<uint32_t>(count);
    value.u.ints = data;
  }
};

int64_t axis_of(const BuiltinCall& call, int64_t axis, int64_t ndim) {
  BP_CHECK(axis >= -ndim && axis < ndim, INDEX, call.op, ": axis ", axis, " is out of range for ", ndim, " dims");
  return axis < 0 ? axis + ndim : axis;
}

// Bit per axis; absent: all.
uint64_t axes_of(const BuiltinCall& call, const bp_value& axes, int64_t ndim) {
  BP_CHECK(ndim >= 0 && ndim <= 64, VALUE, call.op, ": ", call.name, " in its formula got ", ndim, " dims");
  if (axes.tag == BP_TAG_ABSENT) return ~uint64_t{0};
  uint64_t mask = 0;
  for (int64_t axis : ints_of(call, axes)) {
    const uint64_t bit = uint64_t{1} << axis_of(call, axis, ndim);
    BP_CHECK(!(mask & bit), VALUE, call.op, ": axis ", axis, " is named twice");
    mask |= bit;
  }
  return mask;
}

int64_t product(const BuiltinCall& call, Ints sizes, uint64_t axes) {
  int64_t result = 1;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d >= 64 || ((axes >> d) & 1)) overflow |= __builtin_mul_overflow(result, sizes[d], &result);
  BP_CHECK(!overflow, VALUE, call.op, ": ", call.name, " in its formula exceeds 64 bits");
  return result;
}

}  // namespace

namespace builtin {

bp_value len(const BuiltinCall& call) {
  if (!(call.in[0].tag & BP_TAG_LIST)) fail_list(call, call.in[0]);
  return make_int(call.in[0].count);
}

bp_value prod(const BuiltinCall& call) { return make_int(product(call, ints_of(call, call.in[0]), ~uint64_t{0})); }

bp_value range(const BuiltinCall& call) {
  const int64_t begin = int_of(call, call.in[0]), end = int_of(call, call.in[1]);
  if (end <= begin) return NewInts(call, 0).value;
  int64_t count = 0;
  if (__builtin_sub_overflow(end, begin, &count)) count = INT64_MAX;
  NewInts list(call, count);
  for (int64_t i = 0; i < count; ++i) list.data[i] = begin + i;
  return list.value;
}

bp_value repeat(const BuiltinCall& call) {
  const int64_t count = int_of(call, call.in[1]);
  check_length(call, count);
  if (call.in[0].tag == BP_TAG_INT || count == 0) {
    NewInts list(call, count);
    std::fill_n(list.data, count, call.in[0].u.i);
    return list.value;
  }
  bp_value* values = call.arena.array<bp_value>(static_cast<size_t>(count));
  std::fill_n(values, count, call.in[0]);
  return make_list(call.arena, {values, static_cast<size_t>(count)});
}

bp_value reverse(const BuiltinCall& call) {
  const Ints ints = ints_of(call, call.in[0]);
  NewInts list(call, static_cast<int64_t>(ints.size()));
  std::reverse_copy(ints.begin(), ints.end(), list.data);
  return list.value;
}

bp_value contains(const BuiltinCall& call) {
  const bp_value& list = call.in[0];
  if (!(list.tag & BP_TAG_LIST)) fail_list(call, list);
  for (uint32_t i = 0; i < list.count; ++i)
    if (equal_values(call, list_element(list, i), call.in[1])) return make_bool(true);
  return make_bool(false);
}

// A negative position counts from the end of the result, as the axis of expand_dims does: -1 appends.
bp_value insert(const BuiltinCall& call) {
  const Ints ints = ints_of(call, call.in[0]);
  const int64_t count = static_cast<int64_t>(ints.size()) + 1;
  const int64_t position = axis_of(call, int_of(call, call.in[1]), count);
  NewInts list(call, count);
  for (int64_t i = 0; i < count; ++i)
    list.data[i] = i == position ? int_of(call, call.in[2]) : ints[static_cast<size_t>(i > position ? i - 1 : i)];
  return list.value;
}

bp_value replace(const BuiltinCall& call) {
  const Ints ints = ints_of(call, call.in[0]);
  const int64_t count = static_cast<int64_t>(ints.size());
  const int64_t position = axis_of(call, int_of(call, call.in[1]), count);
  NewInts list(call, count);
  std::copy(ints.begin(), ints.end(), list.data);
  list.data[position] = int_of(call, call.in[2]);
  return list.value;
}

bp_value without(const BuiltinCall& call) {
  const Ints ints = ints_of(call, call.in[0]);
  const uint64_t gone = axes_of(call, call.in[1], static_cast<int64_t>(ints.size()));
  NewInts list(call, static_cast<int64_t>(ints.size()));
  uint32_t n = 0;
  for (size_t i = 0; i < ints.size(); ++i)
    if (!((gone >> i) & 1)) list.data[n++] = ints[i];
  list.value.count = n;
  return list.value;
}

bp_value broadcast_shapes(const BuiltinCall& call) {
  const Ints a = ints_of(call, call.in[0]), b = ints_of(call, call.in[1]);
  const size_t ndim = std::max(a.size(), b.size());
  NewInts list(call, static_cast<int64_t>(ndim));
  for (size_t i = 1; i <= ndim; ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    BP_CHECK(x == y || x == 1 || y == 1, SHAPE, call.op, ": the sizes ", x, " and ", y, " of axis ",
             -static_cast<int64_t>(i), " do not broadcast");
    list.data[ndim - i] = x == 1 ? y : x;
  }
  return list.value;
}

// The axes of the shape `to` along which a tensor of shape `from` repeats when it is broadcast there.
bp_value expanded_axes(const BuiltinCall& call) {
  const Ints from = ints_of(call, call.in[0]), to = ints_of(call, call.in[1]);
  BP_CHECK(from.size() <= to.size(), SHAPE, call.op, ": a shape of ", from.size(),
           " axes does not broadcast to one of ", to.size());
  const size_t added = to.size() - from.size();
  NewInts list(call, static_cast<int64_t>(to.size()));
  uint32_t n = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t size = i < added ? 1 : from[i - added];
    BP_CHECK(size == to[i] || size == 1, SHAPE, call.op, ": size ", size, " does not broadcast to size ", to[i],
             " of axis ", i);
    if (i < added || size != to[i]) list.data[n++] = static_cast<int64_t>(i);
  }
  list.value.count = n;
  return list.value;
}

bp_value normalize_axis(const BuiltinCall& call) {
  return make_int(axis_of(call, int_of(call, call.in[0]), int_of(call, call.in[1])));
}

bp_value normalize_axes(const BuiltinCall& call) {
  const int64_t ndim = int_of(call, call.in[1]);
  axes_of(call, call.in[0], ndim);  // within range, each once
  if (call.in[0].tag == BP_TAG_ABSENT) {
    NewInts all(call, ndim);
    for (int64_t i = 0; i < ndim; ++i) all.data[i] = i;
    return all.value;
  }
  const Ints axes = ints_of(call, call.in[0]);
  NewInts list(call, static_cast<int64_t>(axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) list.data[i] = axis_of(call, axes[i], ndim);
  return list.value;
}

bp_value reduced_shape(const BuiltinCall& call) {
  const Ints sizes = ints_of(call, call.in[0]);
  const uint64_t reduced = axes_of(call, call.in[1], static_cast<int64_t>(sizes.size()));
  const bool keep = truth(call.op, call.in[2]);
  NewInts list(call, static_cast<int64_t>(sizes.size()));
  uint32_t n = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool gone = (reduced >> d) & 1;
    if (!gone || keep) list.data[n++] = gone ? 1 : sizes[d];
  }
  list.value.count = n;
  return list.value;
}

bp_value count(const BuiltinCall& call) {
  const Ints sizes = ints_of(call, call.in[0]);
  return make_int(product(call, sizes, axes_of(call, call.in[1], static_cast<int64_t>(sizes.size()))));
}

bp_value inverse_permutation(const BuiltinCall& call) {
  const Ints axes = ints_of(call, call.in[0]);
  const int64_t ndim = static_cast<int64_t>(axes.size());
  axes_of(call, call.in[0], ndim);  // each once
  NewInts list(call, ndim);
  for (int64_t i = 0; i < ndim; ++i) list.data[axis_of(call, axes[static_cast<size_t>(i)], ndim)] = i;
  return list.value;
}

bp_value shift_axis(const BuiltinCall& call) {
  if (call.in[0].tag == BP_TAG_ABSENT) return call.in[0];
  const int64_t axis = int_of(call, call.in[0]);
  int64_t shifted = axis;
  if (axis >= 0)
    BP_CHECK(!__builtin_add_overflow(axis, int_of(call, call.in[1]), &shifted), VALUE, call.op, ": axis ", axis,
             " cannot be shifted");
  return make_int(shifted);
}

bp_value shift_axes(const BuiltinCall& call) {
  if (call.in[0].tag == BP_TAG_ABSENT || call.in[0].tag == BP_TAG_INT) return shift_axis(call);
  const Ints axes = ints_of(call, call.in[0]);
  NewInts list(call, static_cast<int64_t>(axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const bp_value pair[2] = {make_int(axes[i]), call.in[1]};
    list.data[i] = shift_axis({call.op, call.name, pair, call.arena}).u.i;
  }
  return list.value;
}

bp_value present(const BuiltinCall& call) { return make_bool(call.in[0].tag != BP_TAG_ABSENT); }
bp_value default_value(const BuiltinCall& call) { return call.in[call.in[0].tag == BP_TAG_ABSENT ? 1 : 0]; }

bp_value concat(const BuiltinCall& call) {
  const bp_value& a = call.in[0];
  const bp_value& b = call.in[1];
  if (!(a.tag & BP_TAG_LIST)) fail_list(call, a);
  if (!(b.tag & BP_TAG_LIST)) fail_list(call, b);
  const int64_t total = int64_t{a.count} + b.count;
  if (a.tag == BP_TAG_INT_LIST && b.tag == BP_TAG_INT_LIST) {
    NewInts list(call, total);
    std::copy_n(b.u.ints, b.count, std::copy_n(a.u.ints, a.count, list.data));
    return list.value;
  }
  check_length(call, total);
  bp_value* values = call.arena.array<bp_value>(static_cast<size_t>(total));
  for (uint32_t i = 0; i < a.count; ++i) values[i] = list_element(a, i);
  for (uint32_t i = 0; i < b.count; ++i) values[a.count + i] = list_element(b, i);
  return make_list(call.arena, {values, static_cast<size_t>(total)}, a.tag);
}

bp_value add(const BuiltinCall& call) { return (call.in[0].tag & BP_TAG_LIST) ? concat(call) : add_numbers(call); }

bp_value getitem(const BuiltinCall& call) {
  const bp_value& list = call.in[0];
  if (!(list.tag & BP_TAG_LIST)) fail_list(call, list);
  const int64_t i = int_of(call, call.in[1]);
  BP_CHECK(i >= -int64_t{list.count} && i < int64_t{list.count}, INDEX, call.op, ": index ", i,
           " in its formula is out of range for a list of ", list.count);
  return list_element(list, static_cast<uint32_t>(i < 0 ? i + list.count : i));
}

bp_value getslice(const BuiltinCall& call) {
  const bp_value& list = call.in[0];
  if (!(list.tag & BP_TAG_LIST)) fail_list(call, list);
  const auto bound = [&](size_t i, int64_t otherwise) {
    if (i >= call.in.size() || call.in[i].tag == BP_TAG_ABSENT) return otherwise;
    int64_t at = int_of(call, call.in[i]);
    if (at < 0) at += list.count;
    return std::clamp<int64_t>(at, 0, list.count);
  };
  const int64_t begin = bound(1, 0);
  const int64_t end = std::max(bound(2, list.count), begin);
  bp_value part = list;
  part.count = static_cast<uint32_t>(end - begin);
  switch (list.tag) {
    case BP_TAG_VALUE_LIST:
      part.u.values += begin;
      break;
    case BP_TAG_BOOL_LIST:
      part.u.bools += begin;
      break;
    default:
      part.u.ints += begin;  // ints, floats and tensors are 8 bytes each
  }
  return part;
}

}  // namespace builtin
}  // namespace backplane::core
