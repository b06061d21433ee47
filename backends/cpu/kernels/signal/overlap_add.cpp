// overlap_add: windows added at their places on an axis, parallel over the axes before. Tensors are contiguous; half
// floats are summed in float32, and many windows at one place in float64 (complex128).
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/families.hpp"
#include "kernels/indexing/accumulate.hpp"
#include "loops/elementwise.hpp"
#include "loops/lanes.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using plugin::Compute;

// x (outer, windows, inner, size), out (outer, length, inner).
struct Overlap {
  int64_t outer, windows, inner, size, length, step, dilation;
};

// Adds the windows of one outer position to `sums` (length, inner).
template <class T, class Sum>
void add_windows(const Overlap& o, const T* x, Sum* sums) {
  for (int64_t w = 0; w < o.windows; ++w)
    for (int64_t i = 0; i < o.inner; ++i, x += o.size) {
      Sum* at = sums + w * o.step * o.inner + i;
      for (int64_t k = 0; k < o.size; ++k) add_to(at[k * o.dilation * o.inner], static_cast<Sum>(Compute<T>(x[k])));
    }
}

template <class T, class Sum>
void run_in(const bp_frame* frame, const Overlap& o, const T* x, T* out) {
  const int64_t count = o.length * o.inner, read = o.windows * o.inner * o.size;
  const auto range = [&](int64_t begin, int64_t end) {
    const Scratch<Sum> scratch(std::is_same_v<Sum, T> ? 0 : count);
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<Sum, T>) {
        std::fill_n(out + i * count, count, T(0));
        add_windows(o, x + i * read, out + i * count);
      } else {
        std::fill_n(scratch.get(), count, Sum(0));
        add_windows(o, x + i * read, scratch.get());
        std::transform(scratch.get(), scratch.get() + count, out + i * count,
                       [](Sum v) { return T(static_cast<Compute<T>>(v)); });
      }
    }
  };
  const int64_t grain = std::max<int64_t>(kCheapGrain / std::max<int64_t>(read + count, 1), 1);
  if (o.outer <= grain) return range(0, o.outer);
  plugin::parallel_for(frame, 0, o.outer, grain, range);
}

template <class T>
void run(const bp_frame* frame, const Overlap& o, const T* x, T* out) {
  constexpr int64_t kFew = 64;  // windows at one place, whose sum loses less than two digits of a float32
  if (std::min(o.windows, o.size) <= kFew) return run_in<T, Compute<T>>(frame, o, x, out);
  run_in<T, Wide<T>>(frame, o, x, out);
}

// (Tensor x, Axis axis, Size size, Size step, Size dilation)
bp_status BP_CALL overlap_add(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *out = outs[0].u.t;
    if (out->nbytes == 0) return;
    if (x->nbytes == 0) {
      std::memset(data_of(out), 0, out->nbytes);
      return;
    }
    const int32_t rank = out->dl.ndim, axis = axis_of(args[1]);
    Overlap o{1,
              x->dl.shape[axis],
              1,
              x->dl.shape[rank],
              out->dl.shape[axis],
              plugin::as_int(args[3]),
              plugin::as_int(args[4])};
    BP_CHECK(o.step > 0 && o.dilation > 0, VALUE, frame->op->name, ": found windows ", o.step, " apart and dilated by ",
             o.dilation, ", expected 1 or more of both");
    for (int32_t d = 0; d < axis; ++d) o.outer *= x->dl.shape[d];
    for (int32_t d = axis + 1; d < rank; ++d) o.inner *= x->dl.shape[d];
    int64_t last = 0, reach = 0;
    const bool fits = !__builtin_mul_overflow(o.windows - 1, o.step, &last) &&
                      !__builtin_mul_overflow(o.size - 1, o.dilation, &reach) &&
                      !__builtin_add_overflow(last, reach, &last) && last < o.length;
    BP_CHECK(fits, VALUE, frame->op->name, ": ", o.windows, " windows of ", o.size, " elements, ", o.step,
             " apart and dilated by ", o.dilation, ", do not fit into a size of ", o.length);
    plugin::dispatch_dtype<BP_MASK_ANY & ~BP_MASK_BOOL>(out->dtype, [&]<class T>() {
      run<T>(frame, o, reinterpret_cast<const T*>(data_of(x)), reinterpret_cast<T*>(data_of(out)));
    });
  });
}

}  // namespace

const Family kOverlapAdd([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::overlap_add", "cpu", overlap_add, .dtypes = BP_MASK_ANY & ~BP_MASK_BOOL));
});

}  // namespace backplane::cpu
