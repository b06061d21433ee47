// argsort: positions in order, NaN as the largest value. Always stable.
#include <algorithm>
#include <numeric>

#include "kernels.hpp"
#include "walk.hpp"

namespace sim {
namespace {

template <class T>
bool before(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return a < b;
}

template <class T>
void sort_line(const T* x, int64_t x_stride, int64_t* out, int64_t out_stride, int64_t length, bool descending) {
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return descending ? before(x[j * x_stride], x[i * x_stride]) : before(x[i * x_stride], x[j * x_stride]);
  });
  for (int64_t i = 0; i < length; ++i) out[i * out_stride] = order[static_cast<size_t>(i)];
}

void argsort(const Call& call) {
  Operand x = call.input(0), out = call.output(0);
  const bool descending = call.flag(2);
  int64_t length = 1, x_stride = 0, out_stride = 0;
  if (x.ndim() > 0) {  // one line per position of the other axes
    const auto axis = call.integer(1);
    length = x.shape[static_cast<size_t>(axis)];
    x_stride = x.strides[static_cast<size_t>(axis)];
    out_stride = out.strides[static_cast<size_t>(axis)];
    for (auto* sizes : {&x.shape, &x.strides, &out.strides}) sizes->erase(sizes->begin() + axis);
  }
  dispatch_dtype<kOrdered>(call.compute(), [&]<class T>() {
    call.record([=] {
      walk<2>(x.shape, {x.strides, out.strides}, [&](const auto& at) {
        sort_line(reinterpret_cast<const T*>(x.data) + at[0], x_stride, reinterpret_cast<int64_t*>(out.data) + at[1],
                  out_stride, length, descending);
      });
    });
  });
}

constexpr Row kRows[] = {{"bp::argsort", kernel<argsort>, kOrdered, BP_KERNEL_STRIDED}};

}  // namespace

Table sort_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
