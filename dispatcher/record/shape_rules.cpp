// The table of shape words, and those on which most calls stand: broadcast, same, scalar, arg, reduce.
//
// Reads handles' shapes, writes a caller's ShapeResult; no data, no heap, any thread. Joins, views and windows have
// files of their own (shape_joins.cpp, shape_views.cpp, shape_windows.cpp).
#include "record/shape_rules.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "record/evaluator.hpp"
#include "record/rule_functions.hpp"
#include "record/shape_words.hpp"

namespace backplane::core {
namespace {

constexpr ShapeWord shape_word(std::string_view name, std::string_view params, ShapeFn fn) {
  const auto required = std::ranges::count_if(params, [](char c) { return c >= 'a'; });
  const bool any_number = params.ends_with('*');
  if (any_number) params.remove_suffix(1);
  return {name, params, static_cast<uint8_t>(required), static_cast<uint8_t>(any_number ? kMaxArgs : params.size()),
          fn};
}

constexpr ShapeWord kWords[] = {
#define BP_SHAPE_WORD(function, name, params, batch) shape_word(name, params, shape_words::function),
    BP_SHAPE_WORDS(BP_SHAPE_WORD)
#undef BP_SHAPE_WORD
};

[[noreturn, gnu::cold, gnu::noinline]] void fail_broadcast(const OpRecord& op, std::span<const int64_t> added,
                                                           const ShapeResult& sum) {
  detail::fail(BP_ERROR_SHAPE, op.name, ": the shape ", shape_text(added), " does not broadcast with ",
               shape_text({sum.sizes, static_cast<size_t>(sum.ndim)}),
               "; from the right, sizes must agree or one must be 1");
}

void check_result(const OpRecord& op, const ShapeResult& out) {
  BP_CHECK(out.ndim >= 0 && out.ndim <= kMaxRank, SHAPE, op.name, ": its shape rule gave ", out.ndim, " dims; at most ",
           kMaxRank, " are allowed");
  for (int32_t i = 0; i < out.ndim; ++i)
    BP_CHECK(out.sizes[i] >= 0, SHAPE, op.name, ": the result would have the negative size ", out.sizes[i],
             " along axis ", i, "; a size is at least 0");
  checked_count(out.sizes, out.ndim);
}

// A `require` states the expected value; the found shapes are added here, where the arguments are known by name.
void infer_by_formula(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index, ShapeResult& out) {
  FormulaInputs inputs;
  inputs.args = args;
  try {
    evaluate_ints(op, *op.shape_formula, static_cast<uint32_t>(index), inputs, out.sizes, &out.ndim);
  } catch (const Error& error) {
    const std::string_view said = error.what();
    const size_t at = op.name.size() + 2;
    if (error.code() != BP_ERROR_SHAPE || said.substr(0, at) != std::string(op.name) + ": " ||
        said.substr(at, 8) != "expected")
      throw;
    throw Error(BP_ERROR_SHAPE, found_arguments(op, args, n_args) + ", " + std::string(said.substr(at)));
  }
}

}  // namespace

const ShapeWord* find_shape_word(std::string_view name) noexcept {
  for (const ShapeWord& word : kWords)
    if (word.name == name) return &word;
  return nullptr;
}

std::string found_arguments(const OpRecord& op, const bp_value* args, int32_t n_args) {
  std::string text;
  const size_t n = std::min(static_cast<size_t>(n_args), op.args.size());
  for (size_t i = 0; i < n; ++i) {
    if (args[i].tag != BP_TAG_TENSOR) continue;
    const DLTensor& x = args[i].u.t->dl;
    text += text.empty() ? ": found " : ", ";
    text += std::string(op.args[i].name) + " of shape " + shape_text({x.shape, static_cast<size_t>(x.ndim)});
  }
  return std::string(op.name) + text;
}

void infer_shape_without_word(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index,
                              ShapeResult& out) {
  const bp_shape_rule& rule = op.shapes[static_cast<size_t>(index)];
  if (rule.fn) {
    shape_by_function(op, rule, args, n_args, index, out);
  } else {
    BP_CHECK(op.shape_formula != nullptr, INTERNAL, op.name, ": the shape of a dynamic result was asked for");
    infer_by_formula(op, args, n_args, index, out);
  }
  check_result(op, out);
}

std::string shape_text(std::span<const int64_t> sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

void broadcast_into(const OpRecord& op, const int64_t* sizes, int32_t ndim, ShapeResult& out) {
  if (ndim > out.ndim) {  // new leading dims: move what is there to the right
    const int32_t shift = ndim - out.ndim;
    for (int32_t i = out.ndim - 1; i >= 0; --i) out.sizes[i + shift] = out.sizes[i];
    for (int32_t i = 0; i < shift; ++i) out.sizes[i] = 1;
    out.ndim = ndim;
  }
  int64_t* to = out.sizes + (out.ndim - ndim);
  for (int32_t i = 0; i < ndim; ++i) {
    if (to[i] == sizes[i] || sizes[i] == 1) continue;
    if (to[i] != 1) fail_broadcast(op, {sizes, static_cast<size_t>(ndim)}, out);
    to[i] = sizes[i];
  }
}

bool broadcasts_to(std::span<const int64_t> from, std::span<const int64_t> to) {
  bool fits = from.size() <= to.size();
  for (size_t d = 1; fits && d <= from.size(); ++d)
    fits = from[from.size() - d] == 1 || from[from.size() - d] == to[to.size() - d];
  return fits;
}

int64_t checked_count(const int64_t* sizes, int32_t ndim) {
  // Without its sizes of 0: so no stride of an empty tensor overflows either, in any kernel.
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int32_t i = 0; i < ndim; ++i) {
    empty |= sizes[i] == 0;
    if (sizes[i] != 0) overflow |= __builtin_mul_overflow(count, sizes[i], &count);
  }
  // Bytes are counted too, and an element has 16 at most.
  BP_CHECK(!overflow && count <= INT64_MAX / 16, MEMORY, "a tensor of shape ",
           shape_text({sizes, static_cast<size_t>(ndim)}), " has more bytes than 64 bits can count");
  return empty ? 0 : count;
}

[[gnu::cold]] void fail_axis(const OpRecord& op, int64_t axis, int32_t ndim) {
  detail::fail(BP_ERROR_INDEX, op.name, ": axis ", axis, " is out of range for ", ndim, ndim == 1 ? " dim" : " dims");
}

[[gnu::cold]] void ShapeArgs::fail_repeated(int64_t axis, uint32_t i) const {
  detail::fail(BP_ERROR_VALUE, op.name, ": axis ", axis, " is named twice in '", name(i), "'");
}

uint64_t ShapeArgs::axes(uint32_t i, int32_t ndim) const {
  uint64_t mask = 0;
  for (int64_t axis : ints(i)) {
    const uint64_t bit = uint64_t{1} << normalize_axis(op, axis, ndim);
    if (mask & bit) [[unlikely]]
      fail_repeated(axis, i);
    mask |= bit;
  }
  return mask;
}

namespace shape_words {

// One tensor's shape, or two tensors' if they agree. Most calls end here.
static bool broadcast_alike(const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const bp_value& first = args[rule.args[0]];
  if (rule.n_args > 2 || first.tag != BP_TAG_TENSOR) return false;
  const DLTensor& x = first.u.t->dl;
  const bp_value& last = args[rule.args[rule.n_args - 1]];
  if (last.tag != BP_TAG_TENSOR || last.u.t->dl.ndim != x.ndim) return false;
  const int64_t* sizes = x.shape;
  const int64_t* others = last.u.t->dl.shape;
  for (int32_t d = 0; d < x.ndim; ++d) {
    if (sizes[d] != others[d]) return false;
    out.sizes[d] = sizes[d];
  }
  out.ndim = x.ndim;
  return true;
}

void broadcast(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  if (broadcast_alike(rule, args, out)) [[likely]]
    return;
  for (uint32_t i = 0; i < rule.n_args; ++i) {
    const bp_value& value = args[rule.args[i]];
    if (value.tag != BP_TAG_TENSOR) continue;  // a number has no dims, and an absent tensor no say
    broadcast_into(op, value.u.t->dl.shape, value.u.t->dl.ndim, out);
  }
  checked_count(out.sizes, out.ndim);
}

// The op's axes are axes of the one tensor whose shape it keeps. A single axis of a tensor without dims is the axis of
// a line of one element.
static void check_axes(const OpRecord& op, const bp_value* args, int32_t ndim) {
  for (uint64_t left = op.axis_args; left; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    const bp_value& value = args[i];
    if (value.tag == BP_TAG_INT) normalize_axis(op, value.u.i, std::max(ndim, 1));
    if (value.tag != BP_TAG_INT_LIST) continue;
    uint64_t seen = 0;
    for (uint32_t k = 0; k < value.count; ++k) {
      const uint64_t bit = uint64_t{1} << normalize_axis(op, value.u.ints[k], ndim);
      BP_CHECK(!(seen & bit), VALUE, op.name, ": axis ", value.u.ints[k], " is named twice in '", op.args[i].name, "'");
      seen |= bit;
    }
  }
}

void same(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  for (int64_t size : ShapeArgs{op, rule, args}.sizes(0)) out.sizes[out.ndim++] = size;
  if (op.axis_args) check_axes(op, args, out.ndim);
}

void scalar(const OpRecord&, const bp_shape_rule&, const bp_value*, ShapeResult& out) { out.ndim = 0; }

void arg(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  BP_CHECK(in.has(0), TYPE, op.name, ": argument '", in.name(0), "' is none; expected a shape");
  for (int64_t size : in.ints(0)) {
    BP_CHECK(size >= 0, SHAPE, op.name, ": '", in.name(0), "' holds the negative size ", size);
    in.add_dim(out, size);
  }
  checked_count(out.sizes, out.ndim);
}

void reduce(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, ShapeResult& out) {
  const ShapeArgs in{op, rule, args};
  const auto sizes = in.sizes(0);
  const int32_t ndim = static_cast<int32_t>(sizes.size());
  const uint64_t reduced = in.has(1) ? in.axes(1, ndim) : ~uint64_t{0};
  const bool keep = in.flag(2);
  int32_t n = 0;
  for (int32_t d = 0; d < ndim; ++d) {
    const bool gone = (reduced >> d) & 1;
    if (!gone || keep) out.sizes[n++] = gone ? 1 : sizes[static_cast<size_t>(d)];
  }
  out.ndim = n;
}

}  // namespace shape_words
}  // namespace backplane::core
