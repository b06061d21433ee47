#include "graph/passes/rewrite_words.hpp"

#include <cmath>

namespace backplane::core::graph {
namespace {

bp_dtype_mask bit(const Graph& graph, const Argument& a) {
  return a.is_value() ? BP_DTYPE_BIT(graph.value(graph.resolve(a.value())).dtype) : bp_dtype_mask{0};
}

bool is_number(const Argument& a) {
  return (a.plain.tag == BP_TAG_INT || a.plain.tag == BP_TAG_FLOAT) && !a.is_symbolic();
}
double number(const Argument& a) { return a.plain.tag == BP_TAG_INT ? static_cast<double>(a.plain.u.i) : a.plain.u.f; }

// Digits of the significand and the exponents of normal numbers; of integers all bits.
struct Range {
  int digits, least, most;
};
constexpr Range range_of(bp_dtype dtype) {
  switch (dtype) {
    case BP_BOOL:
      return {1, 0, 1};
    case BP_INT8:
      return {7, 0, 7};
    case BP_UINT8:
      return {8, 0, 8};
    case BP_INT16:
      return {15, 0, 15};
    case BP_UINT16:
      return {16, 0, 16};
    case BP_INT32:
      return {31, 0, 31};
    case BP_UINT32:
      return {32, 0, 32};
    case BP_INT64:
      return {63, 0, 63};
    case BP_UINT64:
      return {64, 0, 64};
    case BP_FLOAT16:
    default:
      return {11, -14, 16};
    case BP_BFLOAT16:
      return {8, -126, 128};
    case BP_FLOAT32:
    case BP_COMPLEX64:
      return {24, -126, 128};
    case BP_FLOAT64:
    case BP_COMPLEX128:
      return {53, -1022, 1024};
  }
}

// Is every element of `from` one of `to`, as a cast makes it?
bool holds_all(bp_dtype from, bp_dtype to) {
  const bp_dtype_mask source = BP_DTYPE_BIT(from), target = BP_DTYPE_BIT(to);
  if (from == to) return true;
  if ((source & BP_MASK_COMPLEX) && !(target & BP_MASK_COMPLEX)) return false;
  const bp_dtype_mask floats = BP_MASK_FLOATING | BP_MASK_COMPLEX;
  if ((source & floats) && !(target & floats)) return false;
  const bp_dtype_mask negative = floats | BP_MASK_SIGNED;
  if ((source & negative) && !(target & negative)) return false;
  if (to == BP_BOOL) return false;
  const Range a = range_of(from), b = range_of(to);
  // Denormals of `from` are among the numbers of `to` where that goes as deep.
  const int deepest_a = (source & floats) ? a.least - a.digits : 0,
            deepest_b = (target & floats) ? b.least - b.digits : 0;
  return a.digits <= b.digits && a.most <= b.most && deepest_a >= deepest_b;
}

bool in_order(const Argument& axes) {
  if (axes.plain.tag != BP_TAG_INT_LIST || axes.is_symbolic()) return false;
  const auto rank = static_cast<int64_t>(axes.plain.count);
  for (int64_t i = 0; i < rank; ++i)
    if (axes.plain.u.ints[i] != i && axes.plain.u.ints[i] != i - rank) return false;
  return true;
}

// 2^n whose reciprocal is a normal number of every floating dtype.
bool power_of_two(const Argument& a) {
  int exponent = 0;
  return is_number(a) && std::fabs(std::frexp(number(a), &exponent)) == 0.5 && exponent >= -13 && exponent <= 14;
}

}  // namespace

bool is_the_number(const Argument& a, double wanted) {
  return is_number(a) && number(a) == wanted && std::signbit(number(a)) == std::signbit(wanted);
}

bool holds(const Graph& graph, RewriteWord word, std::span<const Argument> of) {
  switch (word) {
    case RewriteWord::kInteger:
      return bit(graph, of[0]) & (BP_MASK_SIGNED | BP_MASK_UNSIGNED);
    case RewriteWord::kFloating:
      return bit(graph, of[0]) & BP_MASK_FLOATING;
    case RewriteWord::kReal:
      return bit(graph, of[0]) & ~BP_MASK_COMPLEX;
    case RewriteWord::kSigned:
      return bit(graph, of[0]) & (BP_MASK_SIGNED | BP_MASK_FLOATING | BP_MASK_COMPLEX);
    case RewriteWord::kSameDtype:
      return bit(graph, of[0]) != 0 && bit(graph, of[0]) == bit(graph, of[1]);
    case RewriteWord::kExact:
      return of[0].is_value() && of[1].plain.tag == BP_TAG_DTYPE &&
             holds_all(graph.value(graph.resolve(of[0].value())).dtype, static_cast<bp_dtype>(of[1].plain.u.i));
    case RewriteWord::kInOrder:
      return in_order(of[0]);
    case RewriteWord::kPowerOfTwo:
      return power_of_two(of[0]);
    default:
      return false;
  }
}

Argument make_argument(Graph& graph, RewriteWord word, std::span<const Argument> of) {
  bp_value made{};
  if (word == RewriteWord::kReciprocal && is_number(of[0])) {
    made.flags = of[0].plain.flags;
    made.tag = BP_TAG_FLOAT;
    made.u.f = 1 / number(of[0]);
    return Argument{made};
  }
  const auto is_axes = [](const Argument& a) { return a.plain.tag == BP_TAG_INT_LIST && !a.is_symbolic(); };
  if (word != RewriteWord::kComposed || !is_axes(of[0]) || !is_axes(of[1]) || of[0].plain.count != of[1].plain.count)
    return Argument{made};
  const auto rank = static_cast<int64_t>(of[0].plain.count);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = of[1].plain.u.ints[i];
    axes.push_back(of[0].plain.u.ints[axis < 0 ? axis + rank : axis]);
  }
  made.tag = BP_TAG_INT_LIST;
  made.count = of[0].plain.count;
  made.u.ints = axes.data();
  return graph.copy(made);
}

}  // namespace backplane::core::graph
