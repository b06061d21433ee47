// Kernels that move elements. They read no value, so one function per width of an element serves all dtypes.
#include "backplane/plugin/indexing.hpp"
#include "kernels.hpp"

namespace minimal {
namespace {

template <class T>
T* elements(const MutTensor<void>& tensor) {
  return static_cast<T*>(tensor.data());
}
template <class T>
const T* elements(const ConstTensor<void>& tensor) {
  return static_cast<const T*>(tensor.data());
}

// Writes `from`, broadcast to `shape`, to the places that begin at `to`.
template <class T>
void place(T* to, Ints shape, Ints strides, const ConstTensor<void>& from) {
  const std::vector<int64_t> seen = broadcast_strides(from.shape(), from.strides(), shape.size());
  const T* source = elements<T>(from);
  walk<2>(shape, {strides, Ints(seen)}, [&](const auto& at) { to[at[0]] = source[at[1]]; });
}

void copy(Context call, bp_value x, MutTensor<void> out) {
  dispatch_width(out.dtype(), [&]<class T>() { map_elements<T, T>(Loop<2>(call, out, x), [](T a) { return a; }); });
}

void concat(std::span<bp_tensor* const> arrays, int64_t axis, MutTensor<void> out) {
  dispatch_width(out.dtype(), [&]<class T>() {
    T* to = elements<T>(out);
    for (bp_tensor* array : arrays) {
      const ConstTensor<void> piece(array);
      place<T>(to, piece.shape(), out.strides(), piece);
      to += piece.shape(static_cast<int32_t>(axis)) * out.stride(static_cast<int32_t>(axis));
    }
  });
}

// Per axis, start, count and step have arrived, and the shape rule has seen that the value broadcasts.
void slice_put(ConstTensor<void> x, ConstTensor<void> value, Ints axes, Ints starts, Ints counts, Ints steps,
               MutTensor<void> out) {
  std::vector<int64_t> shape(out.shape().begin(), out.shape().end());
  std::vector<int64_t> strides(out.strides().begin(), out.strides().end());
  int64_t first = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    first += starts[i] * strides[axis];
    shape[axis] = counts[i];
    strides[axis] *= steps[i];
  }
  dispatch_width(out.dtype(), [&]<class T>() {
    place<T>(elements<T>(out), out.shape(), out.strides(), x);
    place<T>(elements<T>(out) + first, shape, strides, value);
  });
}

void index(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, MutTensor<void> out) {
  dispatch_width(out.dtype(), [&]<class T>() {
    const T* from = elements<T>(x);
    T* to = elements<T>(out);
    for_each_indexed<T>(call, indices, [&](int64_t picked, int64_t place) { to[place] = from[picked]; });
  });
}

void index_put(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, ConstTensor<void> values,
               bool accumulate, MutTensor<void> out) {
  dispatch_width(out.dtype(), [&]<class T>() {
    const T* from = elements<T>(values);
    T* to = elements<T>(out);
    place<T>(to, out.shape(), out.strides(), x);
    if (!accumulate) for_each_indexed<T>(call, indices, [&](int64_t at, int64_t value) { to[at] = from[value]; });
  });
  if (!accumulate) return;
  dispatch_dtype<BP_MASK_ANY>(out.dtype(), [&]<class T>() {
    const T* from = elements<T>(values);
    T* to = elements<T>(out);
    for_each_indexed<T>(
        call, indices, [&](int64_t at, int64_t value) { to[at] = apply<backplane::scalar::add>(to[at], from[value]); });
  });
}

}  // namespace

void register_movement(const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::copy", kName, kernel<copy>, .flags = BP_KERNEL_LOOP));
  registrar.kernel(BP_KERNEL("bp::concat", kName, kernel<concat>, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::slice_put", kName, kernel<slice_put>, .flags = BP_KERNEL_STRIDED));
  registrar.kernel(BP_KERNEL("bp::index", kName, kernel<index>, .flags = BP_KERNEL_LOOP));
  registrar.kernel(BP_KERNEL("bp::index_put", kName, kernel<index_put>, .flags = BP_KERNEL_LOOP));
}

}  // namespace minimal
