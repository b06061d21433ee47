// Fourier transforms by cuFFT. A plan takes contiguous tensors whose last axes are transformed. Other operands are
// copied into that order, and back with the factor of `norm`. Without the library, and for more axes than a plan has,
// the rows decline and the host transforms.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

using Sizes = std::vector<int64_t>;

Sizes contiguous(const Sizes& shape, int64_t item) {
  Sizes strides(shape.size());
  for (size_t d = shape.size(); d-- > 0; item *= shape[d]) strides[d] = item;
  return strides;
}

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// A tensor with its axes in the order of a plan. Strides in bytes.
struct Side {
  char* data;
  Sizes shape, strides;
  int64_t item;

  Side(const bp_tensor& tensor, std::span<const size_t> order) : data(data_of(tensor)), item(item_of(tensor)) {
    for (const size_t axis : order)
      shape.push_back(tensor.dl.shape[axis]), strides.push_back(tensor.dl.strides[axis] * item);
  }
  // New memory.
  Side(const Call& call, const Sizes& sizes, int64_t width)
      : data(call.aligned_scratch(static_cast<uint64_t>(product(sizes) * width))),
        shape(sizes),
        strides(contiguous(sizes, width)),
        item(width) {}

  // Is it in a plan's layout? `alignment`: of a complex number.
  bool is_ready(int64_t alignment) const {
    const Sizes wanted = contiguous(shape, item);
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1 && strides[d] != wanted[d]) return false;
    return reinterpret_cast<uintptr_t>(data) % static_cast<uint64_t>(alignment) == 0;
  }
};

void move(const Call& call, const Side& to, const Side& from) {
  launch_copy(call, copy_operands(to.data, to.strides, from.data, from.strides, to.shape), to.item);
}

Side copied(const Call& call, const Side& from) {
  const Side made(call, from.shape, from.item);
  move(call, made, from);
  return made;
}

// The axes of a call, which are args[1], and what its numbers are.
struct Transform {
  const Call& call;
  bool is_double;
  std::vector<size_t> others, axes;
  Sizes sizes;  // along `axes`
  double scale;

  // `whole`: the tensor that has all elements along the axes.
  Transform(const Call& made, const bp_tensor& whole, size_t norm, bool forward)
      : call(made), is_double(made.compute() == BP_FLOAT64 || made.compute() == BP_COMPLEX128) {
    for (const int64_t axis : call.integers(1)) {
      axes.push_back(static_cast<size_t>(axis));
      sizes.push_back(whole.dl.shape[axis]);
    }
    for (size_t d = 0; d < static_cast<size_t>(whole.dl.ndim); ++d)
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) others.push_back(d);
    const auto n = static_cast<double>(product(sizes));
    const std::string_view word(call.value(norm).u.s, call.value(norm).count);
    scale = word == "ortho" ? 1 / std::sqrt(n) : (word == "forward") == forward ? 1 / n : 1;
  }

  int64_t complex() const { return is_double ? 16 : 8; }  // bytes
  cufft::Type type(cufft::Type single, cufft::Type twice) const { return is_double ? twice : single; }
  Side side(const bp_tensor& tensor) const {
    std::vector<size_t> order = others;
    order.insert(order.end(), axes.begin(), axes.end());
    return {tensor, order};
  }

  // Over the last axes of both sides, of `lengths` where all elements are.
  void run(cufft::Type kind, const Side& in, const Side& out, std::span<const int64_t> lengths, bool forward) const {
    TransformShape shape{kind, static_cast<int>(lengths.size()), {}, 1};
    std::copy(lengths.begin(), lengths.end(), shape.sizes.begin());
    shape.batch = product({in.shape.data(), in.shape.size() - lengths.size()});
    const auto plan = call.libraries().transforms()->plan(shape);
    plan->run(in.data, out.data, forward, call.aligned_scratch(plan->workspace()), call.stream());
  }

  // From the plan's order into the result, times the factor of `norm`.
  void finish(const Side& from, const Side& to) const {
    if (scale == 1) {
      if (from.data != to.data) move(call, to, from);
      return;
    }
    const bp_dtype dtype = is_double ? BP_FLOAT64 : BP_FLOAT32;
    bp_value factor{};
    factor.tag = BP_TAG_FLOAT;
    factor.u.f = scale;
    Strided operands{to.shape,
                     {to.strides, from.strides},
                     {to.data, from.data, nullptr},
                     {Number{}, Number{}, number_of(dtype, factor)}};
    if (to.item == complex()) {  // two reals
      operands.sizes.push_back(2);
      for (auto& strides : operands.strides) strides.push_back(complex() / 2);
    }
    operands.strides.emplace_back(operands.sizes.size(), 0);
    for_each_loop(operands, [&](Loop& loop) {
      call.launch(std::string("elementwise_") + plugin::dtype_name(dtype), "multiply_strided",
                  call.grid_for(loop.count), loop);
    });
  }

  // x into the result, over all axes at once.
  void whole(cufft::Type kind, bool forward) const {
    const Side given = side(call.input(0)), out = side(call.output());
    const Side x = given.is_ready(complex()) ? given : copied(call, given);
    const Side to = out.is_ready(complex()) ? out : Side(call, out.shape, out.item);
    run(kind, x, to, sizes, forward);
    finish(to, out);
  }
};

void complex_to_complex(const Call& call) {
  if (count_of(call.output()) == 0) return;
  const bool forward = call.integer(3) != 0;
  const Transform transform(call, call.input(0), 2, forward);
  transform.whole(transform.type(cufft::kComplex64, cufft::kComplex128), forward);
}

void real_to_complex(const Call& call) {
  if (count_of(call.output()) == 0) return;
  const Transform transform(call, call.input(0), 2, true);
  transform.whole(transform.type(cufft::kReal32ToComplex, cufft::kReal64ToComplex), true);
}

// Sets the imaginary parts at `position` of the last axis to zero: they are zero for reals, and cuFFT does not
// define its result for others.
void make_real(const Call& call, const Side& x, int64_t position) {
  const bp_dtype real = x.item == 16 ? BP_FLOAT64 : BP_FLOAT32;
  char* at = x.data + position * x.strides.back() + x.item / 2;
  Strided operands{x.shape, {x.strides, Sizes(x.shape.size(), 0)}, {at, nullptr}, {Number{}, Number{}}};
  operands.sizes.back() = 1;
  for_each_loop(operands, [&](Loop& loop) {
    loop.in_dtype = real;
    call.launch(typed_module(real), "cast", call.grid_for(loop.count), loop);
  });
}

// The other axes first, then the halved one: a plan over all would take its operand for the spectrum of
// reals along each. The operand is copied, for the plan writes over it.
void complex_to_real(const Call& call) {
  if (count_of(call.output()) == 0) return;
  const Transform transform(call, call.output(), 3, false);
  Side x = transform.side(call.input(0));
  const auto halved = std::ptrdiff_t(transform.others.size()), leading = std::ptrdiff_t(transform.axes.size()) - 1;
  if (leading > 0) {
    // The halved axis goes before the others for their turn, and back behind them.
    std::rotate(x.shape.begin() + halved, x.shape.end() - 1, x.shape.end());
    std::rotate(x.strides.begin() + halved, x.strides.end() - 1, x.strides.end());
    x = copied(call, x);
    transform.run(transform.type(cufft::kComplex64, cufft::kComplex128), x, x,
                  {transform.sizes.data(), static_cast<size_t>(leading)}, false);
    std::rotate(x.shape.begin() + halved, x.shape.begin() + halved + 1, x.shape.end());
    std::rotate(x.strides.begin() + halved, x.strides.begin() + halved + 1, x.strides.end());
  }
  x = copied(call, x);
  const int64_t n = transform.sizes.back();
  make_real(call, x, 0);
  if (n % 2 == 0) make_real(call, x, n / 2);
  const Side out = transform.side(call.output());
  const Side to = out.is_ready(transform.complex()) ? out : Side(call, out.shape, out.item);
  transform.run(transform.type(cufft::kComplexToReal32, cufft::kComplexToReal64), x, to, {&n, 1}, false);
  transform.finish(to, out);
}

// What the host's kernel answers better is declined: a missing library, more axes than a plan has, and arguments that
// are refused.
template <size_t kNorm, bool kToReal>
bp_status BP_CALL takes(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor& x = *args[0].u.t;
    const std::span<const int64_t> axes(args[1].u.ints, args[1].count);
    BP_CHECK(!axes.empty() && axes.size() <= kMostTransformedAxes, NOT_IMPLEMENTED, "found ", axes.size(),
             " axes; cuFFT takes 1 to ", kMostTransformedAxes);
    for (const int64_t axis : axes) {
      BP_CHECK(axis < x.dl.ndim && x.dl.shape[axis] > 0, NOT_IMPLEMENTED, "axis ", axis, " has no elements");
      BP_CHECK(std::count(axes.begin(), axes.end(), axis) == 1, NOT_IMPLEMENTED, "axis ", axis, " is given twice");
    }
    if constexpr (kToReal)
      BP_CHECK(args[2].u.i > 0 && x.dl.shape[axes.back()] == args[2].u.i / 2 + 1, NOT_IMPLEMENTED,
               "x does not have n // 2 + 1 elements along the last axis");
    const std::string_view word(args[kNorm].u.s, args[kNorm].count);
    BP_CHECK(word == "backward" || word == "ortho" || word == "forward", NOT_IMPLEMENTED, "norm is another word");
    std::string reason;
    BP_CHECK(find_cufft(&reason), NOT_IMPLEMENTED, "libcufft.so.12 ", reason);
  });
}

}  // namespace

void register_fourier(const Registration& registration) {
  constexpr bp_dtype_mask kReal = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);
  constexpr bp_dtype_mask kComplex = BP_DTYPE_BIT(BP_COMPLEX64) | BP_DTYPE_BIT(BP_COMPLEX128);
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes, bp_kernel_fn supports,
                       uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, dtypes, BP_KERNEL_STRIDED, __FILE__, line, supports);
  };
  row("fft_c2c", kernel<complex_to_complex>, kComplex, takes<2, false>);
  row("fft_r2c", kernel<real_to_complex>, kReal, takes<2, false>);
  row("fft_c2r", kernel<complex_to_real>, kComplex, takes<3, true>);
}

}  // namespace backplane::cuda
