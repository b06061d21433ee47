// bp::Tensor: a handle of a tensor with operators' and libtorch's members. Copies share the tensor.
//
// Every op whose first argument is x is a member too (bp/methods.hpp, generated). Handles may be used from any thread;
// the data are guarded by nobody. Members throw Error.
#pragma once

#include <concepts>

#include "backplane/autograd.hpp"
#include "backplane/bp/methods.hpp"
#include "backplane/transforms.hpp"

namespace bp {

class Index;
class IndexedTensor;
class Slice;

class Tensor : public TensorMethods {
 public:
  Tensor() = default;
  Tensor(backplane::Tensor plain) noexcept : TensorMethods(std::move(plain)) {}
  operator const backplane::Tensor&() const noexcept { return plain_; }
  operator Operand() const noexcept { return Operand(plain_); }
  const backplane::Tensor& plain() const noexcept { return plain_; }

  // ---- properties
  bool defined() const noexcept { return static_cast<bool>(plain_); }
  int64_t dim() const { return plain_.ndim(); }
  int64_t ndim() const { return plain_.ndim(); }
  std::vector<int64_t> sizes() const { return {plain_.shape().begin(), plain_.shape().end()}; }
  std::vector<int64_t> shape() const { return sizes(); }
  std::vector<int64_t> strides() const { return {plain_.strides().begin(), plain_.strides().end()}; }
  int64_t size(int64_t axis) const;
  int64_t numel() const;
  bp_dtype dtype() const { return plain_.dtype(); }
  bp_dtype scalar_type() const { return plain_.dtype(); }
  Device device() const { return plain_.device(); }
  bool is_contiguous() const { return plain_.is_contiguous(); }
  bool is_floating_point() const { return (BP_DTYPE_BIT(dtype()) & BP_MASK_FLOATING) != 0; }
  bool is_complex() const { return (BP_DTYPE_BIT(dtype()) & BP_MASK_COMPLEX) != 0; }
  bool same(const Tensor& other) const noexcept { return plain_.get() == other.plain_.get(); }

  // ---- values on the host
  // The only element as a C++ number. Throws for more or fewer elements, and where T does not hold the value.
  template <class T>
  T item() const;
  // All elements, row-major, cast to T.
  template <class T>
  std::vector<T> to_vector() const;
  // The address of the elements of a contiguous tensor in host memory, after its pending writes. T is their type.
  template <class T>
  T* data_ptr() const;

  // ---- dtype and device
  Tensor to(bp_dtype dtype) const;
  Tensor to(Device device) const;
  Tensor to(Device device, bp_dtype dtype) const { return to(device).to(dtype); }
  Tensor to(const char* device) const { return to(Device(device)); }
  Tensor to(const TensorOptions& options) const;
  Tensor type_as(const Tensor& other) const { return to(other.device(), other.dtype()); }
  Tensor cpu() const { return to(Device("cpu")); }

  // ---- derivatives
  bool requires_grad() const { return backplane::requires_grad(plain_); }
  const Tensor& set_requires_grad(bool wanted) const {
    backplane::set_requires_grad(plain_, wanted);
    return *this;
  }
  const Tensor& requires_grad_(bool wanted = true) const { return set_requires_grad(wanted); }
  bool is_leaf() const { return backplane::is_leaf(plain_); }
  Tensor grad() const { return backplane::grad_of(plain_); }  // not defined where there is none
  void set_grad(const Tensor& grad) const { backplane::set_grad_of(plain_, grad.plain_); }
  // Accumulates into the `grad()` of the leaves. Without a cotangent, of a tensor with one element.
  void backward(const Tensor& cotangent = {}, bool retain_graph = false, bool create_graph = false) const;
  // The same elements without history; inside a transform a copy that is a constant for it.
  Tensor detach() const;
  Tensor clone() const { return copy(); }
  // Called with the cotangent when it is complete; a result that is defined replaces it. Returns the hook's number.
  template <class F>
  uint64_t register_hook(F hook) const;

  // ---- elements
  // a[0], a[mask], a[{0, slice(1, 5), newaxis, ellipsis}]: NumPy's rules. Assigned to, it writes into this tensor.
  IndexedTensor operator[](const Index& index) const;
  IndexedTensor operator[](std::initializer_list<Index> indices) const;
  Tensor index(std::initializer_list<Index> indices) const;
  Tensor index(TensorList indices) const;  // one per leading axis; an empty one keeps its axis
  const Tensor& index_put_(std::initializer_list<Index> indices, Operand value) const;
  Tensor masked_select(const Tensor& mask) const;
  const Tensor& copy_(Operand value) const;  // broadcasts and casts as x[...] = value does
  const Tensor& fill_(Operand value) const { return copy_(value); }
  const Tensor& zero_() const { return copy_(0); }

  // ---- iteration over axis 0
  class Iterator;
  Iterator begin() const;
  Iterator end() const;

  // ---- in place; a leaf that requires a gradient only under NoGrad
  Tensor& operator+=(Operand y);
  Tensor& operator-=(Operand y);
  Tensor& operator*=(Operand y);
  Tensor& operator/=(Operand y);
  Tensor& operator%=(Operand y);
  Tensor& operator&=(Operand y);
  Tensor& operator|=(Operand y);
  Tensor& operator^=(Operand y);

  // ---- libtorch's names for shapes
  Tensor view(IntList shape) const { return reshape(shape); }
  Tensor view_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const;
  Tensor permute(IntList axes) const { return permute_dims(axes); }
  Tensor transpose(int64_t axis1, int64_t axis2) const;
  Tensor t() const;
  Tensor mT() const { return matrix_transpose(); }
  Tensor unsqueeze(int64_t axis) const { return expand_dims(axis); }
  Tensor squeeze() const;  // all axes of size 1
  Tensor squeeze(IntList axes) const;
  Tensor expand(IntList sizes) const;  // -1 keeps a size
  Tensor expand_as(const Tensor& other) const { return broadcast_to(other.sizes()); }
  Tensor contiguous() const { return is_contiguous() ? *this : copy(); }
  Tensor repeat(IntList repetitions) const;
  Tensor narrow(int64_t axis, int64_t start, int64_t length) const;
  std::vector<Tensor> split(int64_t size, int64_t axis = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t axis = 0) const;
  std::vector<Tensor> unbind(int64_t axis = 0) const;
  Tensor index_select(int64_t axis, const Tensor& indices) const { return take(indices, axis); }
  Tensor gather(int64_t axis, const Tensor& indices) const;

  // ---- libtorch's names for other ops
  Tensor sub(Operand y) const { return subtract(y); }
  Tensor mul(Operand y) const { return multiply(y); }
  Tensor div(Operand y) const { return divide(y); }
  Tensor neg() const { return negative(); }
  const Tensor& sub_(Operand y) const { return subtract_(y); }
  const Tensor& mul_(Operand y) const { return multiply_(y); }
  const Tensor& div_(Operand y) const { return divide_(y); }
  Tensor eq(Operand y) const { return equal(y); }
  Tensor ne(Operand y) const { return not_equal(y); }
  Tensor lt(Operand y) const { return less(y); }
  Tensor le(Operand y) const { return less_equal(y); }
  Tensor gt(Operand y) const { return greater(y); }
  Tensor ge(Operand y) const { return greater_equal(y); }
  Tensor mm(const Tensor& y) const { return matmul(y); }
  Tensor bmm(const Tensor& y) const { return matmul(y); }
  Tensor clamp(Operand min, Operand max = {}) const { return clip(min, max); }
  Tensor clamp_min(Operand min) const { return clip(min); }
  Tensor norm() const { return vector_norm(); }
  using TensorMethods::any;
  using TensorMethods::prod;
  using TensorMethods::sum;
  template <std::same_as<bool> B>
  Tensor sum(OptionalIntList axis, B keepdims) const {
    return sum(axis, std::optional<Dtype>(), keepdims);
  }
  template <std::same_as<bool> B>
  Tensor prod(OptionalIntList axis, B keepdims) const {
    return prod(axis, std::optional<Dtype>(), keepdims);
  }
  // Are shapes and all elements equal?
  bool equals(const Tensor& other) const;
  // Does every pair of elements differ by at most atol + rtol * |other|?
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
};

static_assert(sizeof(Tensor) == sizeof(backplane::Tensor), "a span of one is a span of the other");

inline const Tensor& TensorMethods::self() const noexcept { return static_cast<const Tensor&>(*this); }

namespace detail {
inline std::span<const backplane::Tensor> plain(std::span<const Tensor> tensors) noexcept {
  return {reinterpret_cast<const backplane::Tensor*>(tensors.data()), tensors.size()};
}
inline std::vector<Tensor> adopted(std::vector<backplane::Tensor> tensors) {
  return {std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end())};
}
}  // namespace detail

inline TensorList::TensorList(std::initializer_list<Tensor> tensors) noexcept
    : plain_(detail::plain({tensors.begin(), tensors.size()})) {}
inline TensorList::TensorList(std::span<const Tensor> tensors) noexcept : plain_(detail::plain(tensors)) {}
inline TensorList::TensorList(const std::vector<Tensor>& tensors) noexcept : plain_(detail::plain(tensors)) {}

}  // namespace bp
