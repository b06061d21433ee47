// Kernels that make, convert, fold and order values. Elements of any dtype come to them through convert_run, so that a
// function is instantiated for the types in which it computes alone.
#include <limits>
#include <numeric>

#include "backplane/plugin/philox.hpp"
#include "kernels.hpp"

namespace minimal {
namespace {

namespace scalar = backplane::scalar;

const char* bytes_of(const ConstTensor<void>& x) { return static_cast<const char*>(x.data()); }
char* bytes_of(const MutTensor<void>& out) { return static_cast<char*>(out.data()); }
bool is_whole(const bp_value& value) { return value.tag == BP_TAG_BOOL || value.tag == BP_TAG_INT; }

// body(element) for n elements that lie `step` bytes apart, each converted to T.
template <class T, class Body>
void for_each_as(ConvertRun convert, const char* at, int64_t step, int64_t n, Body&& body) {
  constexpr int64_t kPiece = 256;
  T piece[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t length = std::min(kPiece, n - i);
    convert(reinterpret_cast<char*>(piece), sizeof(T), at + i * step, step, length);
    for (int64_t k = 0; k < length; ++k) body(piece[k]);
  }
}

void cast(Context call, bp_value x, bp_dtype, MutTensor<void> out) {
  const ConvertRun convert = convert_run(out.dtype(), call.compute());
  for_each_run(Loop<2>(call, out, x),
               [&](const auto& at, const auto& step, int64_t n) { convert(at[0], step[0], at[1], step[1], n); });
}

// Arguments that are in the result already, its shape and dtype, arrive all the same.
void full(bp_value, bp_value fill, bp_value, bp_value, MutTensor<void> out) {
  const bp_dtype given = is_whole(fill) ? ((fill.flags & BP_VALUE_UINT64) != 0 ? BP_UINT64 : BP_INT64)
                                        : (fill.tag == BP_TAG_FLOAT ? BP_FLOAT64 : BP_COMPLEX128);
  const void* number = given == BP_COMPLEX128 ? static_cast<const void*>(fill.u.c) : &fill.u;
  const ConvertRun convert = convert_run(out.dtype(), given);
  convert(bytes_of(out), kItemSize[out.dtype()], static_cast<const char*>(number), 0, out.size());
}

// Integers count exactly, and wrap; with a float among start and step the values are computed in double and rounded
// once.
void iota(int64_t n, bp_value start, bp_value step, bp_value, bp_value, MutTensor<void> out) {
  const auto count = [&]<class T>(T first, T by, auto product) {
    const ConvertRun convert = convert_run(out.dtype(), kDtypeOf<T>);
    const int64_t item = kItemSize[out.dtype()];
    for (int64_t i = 0; i < n; ++i) {
      const T value = apply<scalar::add>(first, product(i, by));
      convert(bytes_of(out) + i * item, item, reinterpret_cast<const char*>(&value), sizeof(T), 1);
    }
  };
  if (is_whole(start) && is_whole(step))
    count(start.u.i, step.u.i, [](int64_t i, int64_t by) { return apply<scalar::multiply>(i, by); });
  else
    count(as_complex(start), as_complex(step), [](int64_t i, auto by) { return static_cast<double>(i) * by; });
}

// What a reduction begins with, and how an element joins it.
template <class Op, int kStart>  // +1 and -1 stand for the ends of a dtype's range
struct Fold {
  using Join = Op;
  template <class T>
  static T start() {
    if constexpr (std::is_same_v<Op, scalar::maximum> || std::is_same_v<Op, scalar::minimum>) {
      using Limits = std::numeric_limits<T>;
      if constexpr (Limits::has_infinity) return kStart * Limits::infinity();
      return kStart < 0 ? Limits::lowest() : Limits::max();
    }
    return T(kStart);
  }
};

// sum, prod, max, min, any and all: floats fold in the widest dtype, any and all in bool, which is their result's
// dtype.
template <class Fold, bp_dtype_mask kResults, class... Rest>
void reduce(Context call, ConstTensor<void> x, Rest..., MutTensor<void> out) {
  dispatch_dtype<kResults>(out.dtype(), [&]<class T>() {
    using Total = Wide<T>;
    const ConvertRun widen = convert_run(kDtypeOf<Total>, call.compute());
    for_each_fold(call, out, x, [&](char* result, const Folded& elements) {
      Total total = Fold::template start<Total>();
      elements.for_each_run([&](const char* at, int64_t step, int64_t n) {
        for_each_as<Total>(widen, at, step, n, [&](Total e) { total = apply<typename Fold::Join>(total, e); });
      });
      *reinterpret_cast<T*>(result) = convert<T>(total);
    });
  });
}

template <class Fold>
void extreme(Context call, ConstTensor<void> x, bp_value axes, bool keepdims, MutTensor<void> out) {
  BP_CHECK(out.size() == 0 || x.size() > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
  reduce<Fold, BP_MASK_BOOL | BP_MASK_INTEGER | BP_MASK_FLOATING, bp_value, bool>(call, x, axes, keepdims, out);
}

// For what only compares: real numbers and bools by way of the widest type of their kind, which holds them all.
template <class F>
void dispatch_kind(bp_dtype dtype, F&& f) {
  if ((BP_MASK_FLOATING & BP_DTYPE_BIT(dtype)) != 0) return f.template operator()<double>();
  if ((BP_MASK_UNSIGNED & BP_DTYPE_BIT(dtype)) != 0) return f.template operator()<uint64_t>();
  f.template operator()<int64_t>();
}

// body(line, offset of the result's first element) for each line along an axis, converted to T.
template <class T, class Body>
void for_each_line_as(const ConstTensor<void>& x, const Lines& lines, int64_t out_length, Body&& body) {
  const ConvertRun convert = convert_run(kDtypeOf<T>, x.dtype());
  const int64_t item = kItemSize[x.dtype()];
  std::vector<T> line(static_cast<size_t>(lines.length));
  for_each_line(lines, out_length, [&](int64_t from, int64_t to) {
    convert(reinterpret_cast<char*>(line.data()), sizeof(T), bytes_of(x) + from * item, lines.inner * item,
            lines.length);
    body(line, to);
  });
}

template <class Op>
void arg_reduce(Context call, ConstTensor<void> x, std::optional<int64_t> axis, bool, MutTensor<int64_t> out) {
  const int64_t flat[] = {x.size()};
  const Lines lines = axis ? Lines(x.shape(), static_cast<size_t>(*axis)) : Lines(flat, 0);
  BP_CHECK(out.size() == 0 || lines.length > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the axis");
  dispatch_kind(x.dtype(), [&]<class T>() {
    for_each_line_as<T>(x, lines, 1, [&](const std::vector<T>& line, int64_t to) {
      size_t best = 0;
      for (size_t k = 1; k < line.size(); ++k)  // strictly better, or the first NaN
        if (line[best] == line[best] && apply<Op>(line[best], line[k]) != line[best]) best = k;
      out.data()[to] = static_cast<int64_t>(best);
    });
  });
}

void cumsum(ConstTensor<void> x, int64_t axis, bp_value, MutTensor<void> out) {
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  const int64_t item = kItemSize[x.dtype()];
  dispatch_dtype<BP_MASK_ANY>(out.dtype(), [&]<class T>() {
    using Total = Wide<T>;
    const ConvertRun widen = convert_run(kDtypeOf<Total>, x.dtype());
    for_each_line(lines, lines.length, [&](int64_t from, int64_t to) {
      Total total{};
      T* next = static_cast<T*>(out.data()) + to;
      for_each_as<Total>(widen, bytes_of(x) + from * item, lines.inner * item, lines.length, [&](Total e) {
        total = next == static_cast<T*>(out.data()) + to ? e : apply<scalar::add>(total, e);
        *next = convert<T>(total);
        next += lines.inner;
      });
    });
  });
}

// Stable in both directions; a NaN counts as the largest.
void argsort(ConstTensor<void> x, int64_t axis, bool descending, bool, MutTensor<int64_t> out) {
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  std::vector<int64_t> order(static_cast<size_t>(lines.length));
  dispatch_kind(x.dtype(), [&]<class T>() {
    const auto before = [](T a, T b) { return a < b || (a == a && b != b); };
    for_each_line_as<T>(x, lines, lines.length, [&](const std::vector<T>& line, int64_t to) {
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        const T a = line[static_cast<size_t>(i)], b = line[static_cast<size_t>(j)];
        return descending ? before(b, a) : before(a, b);
      });
      for (size_t k = 0; k < order.size(); ++k) out.data()[to + static_cast<int64_t>(k) * lines.inner] = order[k];
    });
  });
}

void random_bits(bp_value, bp_value, bp_value, bp_generator_state state, MutTensor<void> out) {
  auto* words = static_cast<uint32_t*>(out.data());
  const auto n = static_cast<int64_t>(out.handle()->nbytes / sizeof(uint32_t));  // of a uint64, two, the low one first
  for (int64_t i = 0; i < n; i += 4) {
    const auto block = philox(state.key, state.counter + static_cast<uint64_t>(i / 4));
    std::copy_n(block.begin(), std::min<int64_t>(4, n - i), words + i);
  }
}

}  // namespace

void register_values(const Registrar& registrar) {
  using V = bp_value;
  constexpr bp_dtype_mask kOrdered = BP_MASK_BOOL | BP_MASK_INTEGER | BP_MASK_FLOATING;
  const auto row = [&](const char* op, bp_kernel_fn fn, uint32_t flags = 0, bp_dtype_mask dtypes = BP_MASK_ANY) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .dtypes = dtypes, .flags = flags));
  };
  row("bp::cast", kernel<cast>, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES);
  row("bp::full", kernel<full>);
  row("bp::iota", kernel<iota>);
  row("bp::sum", kernel<reduce<Fold<scalar::add, 0>, BP_MASK_ANY, V, V, V>>, BP_KERNEL_LOOP);
  row("bp::prod", kernel<reduce<Fold<scalar::multiply, 1>, BP_MASK_ANY, V, V, V>>, BP_KERNEL_LOOP);
  row("bp::any", kernel<reduce<Fold<scalar::bitwise_or, 0>, BP_MASK_BOOL, V, V>>, BP_KERNEL_LOOP);
  row("bp::all", kernel<reduce<Fold<scalar::bitwise_and, 1>, BP_MASK_BOOL, V, V>>, BP_KERNEL_LOOP);
  row("bp::max", kernel<extreme<Fold<scalar::maximum, -1>>>, BP_KERNEL_LOOP, kOrdered);
  row("bp::min", kernel<extreme<Fold<scalar::minimum, 1>>>, BP_KERNEL_LOOP, kOrdered);
  row("bp::argmax", kernel<arg_reduce<scalar::maximum>>, 0, kOrdered);
  row("bp::argmin", kernel<arg_reduce<scalar::minimum>>, 0, kOrdered);
  row("bp::cumsum", kernel<cumsum>);
  row("bp::argsort", kernel<argsort>, 0, kOrdered);
  row("bp::random_bits", kernel<random_bits>);
}

}  // namespace minimal
