// a[{0, slice(1, 5), newaxis, ellipsis}] and assignment to it, by NumPy's rules: an int beside an index tensor is an
// index tensor without axes, and a mask stands for the positions of its true elements.
#pragma once

#include <algorithm>

#include "backplane/bp/members.hpp"

namespace bp {

// start:stop:step. A part that is absent has Python's default.
class Slice {
 public:
  Slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {}, std::optional<int64_t> step = {})
      : start(start), stop(stop), step(step.value_or(1)) {
    BP_CHECK(this->step != 0, VALUE, "slice: found the step 0, expected another number");
  }
  bool takes_all() const noexcept { return !start && !stop && step == 1; }

  std::optional<int64_t> start, stop;
  int64_t step;
};

struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis newaxis{};
inline constexpr Ellipsis ellipsis{};

inline Slice slice() { return {}; }
// As Python's slice(stop).
inline Slice slice(std::optional<int64_t> stop) { return {{}, stop}; }
inline Slice slice(std::optional<int64_t> start, std::optional<int64_t> stop, std::optional<int64_t> step = {}) {
  return {start, stop, step};
}

// libtorch's names: using namespace bp::indexing.
namespace indexing {
using bp::Slice;
inline constexpr NewAxis None{};
inline constexpr bp::Ellipsis Ellipsis{};
}  // namespace indexing

// One item of an index.
class Index {
 public:
  enum class Kind : uint8_t { kInt, kSlice, kNewAxis, kEllipsis, kArray };

  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Index(T position)
      : kind_(Kind::kInt), position_(static_cast<int64_t>(position)) {}
  Index(Slice slice) : kind_(Kind::kSlice), slice_(slice) {}
  Index(NewAxis) : kind_(Kind::kNewAxis) {}
  Index(std::nullopt_t) : kind_(Kind::kNewAxis) {}
  Index(Ellipsis) : kind_(Kind::kEllipsis) {}
  Index(const char* dots) : kind_(Kind::kEllipsis) {
    BP_CHECK(std::string_view(dots) == "...", INDEX, "index: found the text \"", dots, "\", expected \"...\"");
  }
  Index(const Tensor& array) : kind_(Kind::kArray), array_(array) {
    BP_CHECK(BP_DTYPE_BIT(array.dtype()) & (BP_MASK_INTEGER | BP_MASK_BOOL), INDEX, "index: found a tensor of ",
             backplane::dtype_name(array.dtype()), ", expected integers or bools");
  }
  Index(const backplane::Tensor& array) : Index(Tensor(array)) {}

  Kind kind() const noexcept { return kind_; }
  int64_t position() const noexcept { return position_; }
  const Slice& slice() const noexcept { return slice_; }
  const Tensor& array() const noexcept { return array_; }
  bool is_mask() const { return kind_ == Kind::kArray && array_.dtype() == kBool; }
  int64_t axes() const {  // of the indexed tensor
    if (kind_ == Kind::kNewAxis || kind_ == Kind::kEllipsis) return 0;
    return is_mask() ? array_.dim() : 1;
  }

 private:
  Kind kind_;
  int64_t position_ = 0;
  Slice slice_;
  Tensor array_;
};

namespace detail {

// An index against the axes of a tensor: the view that ints, slices and new axes make, and the index tensors that pick
// elements of that view.
class IndexPlan {
 public:
  IndexPlan(const Tensor& tensor, std::initializer_list<Index> indices) : view(tensor) {
    int64_t used = 0, ellipses = 0;
    for (const Index& index : indices) {
      used += index.axes();
      ellipses += index.kind() == Index::Kind::kEllipsis;
      has_arrays_ |= index.kind() == Index::Kind::kArray;
    }
    BP_CHECK(ellipses <= 1, INDEX, "index: found ", ellipses, " ellipses, expected at most one");
    BP_CHECK(used <= tensor.dim(), INDEX, "index: found indices for ", used, " axes, expected at most ", tensor.dim(),
             ", the tensor's");
    for (const Index& index : indices) add(index, tensor.dim() - used);
    if (parted_) move_arrays_first();
  }

  Tensor view;
  std::vector<Tensor> arrays;  // one per axis of the view up to the last; not defined: the axis is taken whole

  Tensor read() const { return arrays.empty() ? view : Tensor(backplane::index(view.plain(), TensorList(arrays))); }

  void write(Operand value) const {
    if (!arrays.empty())
      backplane::index_put_(view.plain(), TensorList(arrays), value);
    else
      view.copy_(value);
  }

 private:
  void add(const Index& index, int64_t skipped) {
    switch (index.kind()) {
      case Index::Kind::kInt:
        return add_int(index.position());
      case Index::Kind::kSlice:
        return add_slice(index.slice());
      case Index::Kind::kNewAxis:
        view = view.unsqueeze(axis_++);
        return;
      case Index::Kind::kEllipsis:
        // Like a slice, it parts the arrays on its two sides, even where it stands for no axis.
        array_before_ellipsis_ = skipped == 0 && !arrays.empty();
        axis_ += skipped;
        return;
      case Index::Kind::kArray:
        return index.is_mask() ? add_mask(index.array()) : add_array(index.array());
    }
  }

  void add_int(int64_t position) {
    const int64_t size = view.size(axis_);
    BP_CHECK(position >= -size && position < size, INDEX, "index: found ", position, ", expected an int from ", -size,
             " to ", size - 1, " for an axis of size ", size);
    if (!has_arrays_) {
      view = view.select(axis_, position);
    } else {
      const int64_t found = position < 0 ? position + size : position;
      add_array(Tensor(backplane::from_host(&found, {}, {}, BP_INT64, view.device())));
    }
  }

  void add_slice(const Slice& slice) {
    if (!slice.takes_all()) view = view.slice({axis_}, {slice.start}, {slice.stop}, {slice.step});
    ++axis_;
  }

  void add_array(Tensor array) {
    arrays.resize(static_cast<size_t>(axis_));
    arrays.push_back(array.to(view.device()));
    parted_ = parted_ || array_before_ellipsis_;
    ++axis_;
  }

  void add_mask(const Tensor& mask) {
    for (int64_t i = 0; i < mask.dim(); ++i)
      BP_CHECK(mask.size(i) == view.size(axis_ + i), INDEX, "index: found a mask of size ", mask.size(i),
               " along its axis ", i, ", expected ", view.size(axis_ + i), ", the size of the tensor's axis");
    // A mask without axes takes the whole part that it stands before, once or not at all.
    if (mask.dim() == 0) view = view.unsqueeze(axis_);
    const Tensor positions = (mask.dim() == 0 ? mask.reshape(1) : mask).argwhere();
    for (int64_t i = 0; i < positions.size(1); ++i) add_array(positions.select(1, i));
  }

  void move_arrays_first() {
    arrays.resize(static_cast<size_t>(view.dim()));
    std::vector<Tensor> first;
    std::vector<int64_t> order, others;
    for (int64_t axis = 0; axis < view.dim(); ++axis) {
      Tensor& array = arrays[static_cast<size_t>(axis)];
      (array.defined() ? order : others).push_back(axis);
      if (array.defined()) first.push_back(std::move(array));
    }
    order.insert(order.end(), others.begin(), others.end());
    view = view.permute(order);
    arrays = std::move(first);
  }

  int64_t axis_ = 0;  // of the view
  bool has_arrays_ = false;
  bool array_before_ellipsis_ = false;
  bool parted_ = false;
};

}  // namespace detail

// What a[...] gives: a tensor. Assignment to the expression itself writes into a; a variable is assigned as any other.
class IndexedTensor : public Tensor {
 public:
  explicit IndexedTensor(detail::IndexPlan plan) : Tensor(plan.read()), plan_(std::move(plan)) {}
  IndexedTensor(const IndexedTensor&) = default;
  IndexedTensor(IndexedTensor&&) = default;

  IndexedTensor& operator=(const Tensor& value) & { return assign_handle(value); }
  IndexedTensor& operator=(const IndexedTensor& value) & { return assign_handle(value); }
  const IndexedTensor& operator=(Operand value) && { return write(value); }
  const IndexedTensor& operator=(const Tensor& value) && { return write(value); }
  const IndexedTensor& operator=(const backplane::Tensor& value) && { return write(Operand(value)); }
  const IndexedTensor& operator=(const IndexedTensor& value) && { return write(static_cast<const Tensor&>(value)); }
  const IndexedTensor& operator+=(Operand y) && { return write(add(y)); }
  const IndexedTensor& operator-=(Operand y) && { return write(subtract(y)); }
  const IndexedTensor& operator*=(Operand y) && { return write(multiply(y)); }
  const IndexedTensor& operator/=(Operand y) && { return write(divide(y)); }
  Tensor& operator+=(Operand y) & { return Tensor::operator+=(y); }
  Tensor& operator-=(Operand y) & { return Tensor::operator-=(y); }
  Tensor& operator*=(Operand y) & { return Tensor::operator*=(y); }
  Tensor& operator/=(Operand y) & { return Tensor::operator/=(y); }

 private:
  IndexedTensor& assign_handle(const Tensor& value) {
    Tensor::operator=(value);
    return *this;
  }
  const IndexedTensor& write(Operand value) const {
    plan_.write(value);
    return *this;
  }
  const IndexedTensor& write(const Tensor& value) const { return write(Operand(value.plain())); }

  detail::IndexPlan plan_;
};

inline IndexedTensor Tensor::operator[](const Index& index) const {
  return IndexedTensor(detail::IndexPlan(*this, {index}));
}
inline IndexedTensor Tensor::operator[](std::initializer_list<Index> indices) const {
  return IndexedTensor(detail::IndexPlan(*this, indices));
}
inline Tensor Tensor::index(std::initializer_list<Index> indices) const {
  return detail::IndexPlan(*this, indices).read();
}
inline Tensor Tensor::index(TensorList indices) const { return TensorMethods::index(indices); }
inline const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, Operand value) const {
  detail::IndexPlan(*this, indices).write(value);
  return *this;
}
inline Tensor Tensor::masked_select(const Tensor& mask) const {
  return TensorMethods::masked_select(mask.broadcast_to(sizes()));
}

// A value may have more axes than the tensor if the first ones have one element, as in NumPy and PyTorch.
inline const Tensor& Tensor::copy_(Operand value) const {
  Tensor shorter;
  if (value.borrowed.tag == BP_TAG_TENSOR && value.borrowed.u.t->dl.ndim > dim()) {
    const bp_tensor* handle = value.borrowed.u.t;
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < handle->dl.ndim - dim() && handle->dl.shape[axis] == 1; ++axis) axes.push_back(axis);
    if (static_cast<int64_t>(axes.size()) == handle->dl.ndim - dim()) {
      shorter = backplane::squeeze(value, backplane::Ints(axes));
      value = shorter;
    }
  }
  backplane::slice_put_(plain_, value, {}, {}, {}, {});
  return *this;
}

}  // namespace bp
