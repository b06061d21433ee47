// A tensor over host memory that is lent for single calls of ops: for bridges whose callers hand over buffers again and
// again, such as loops of NumPy and handlers of XLA.
//
// One object serves one thread at a time. Functions throw Error.
#pragma once

#include <cstddef>

#include "backplane/tensor.hpp"

namespace backplane {

// What calls do with lent memory.
enum class Lent {
  kRead,         // nothing may be written into the tensor
  kOverwritten,  // every element is written and none is read before, so that its bools need not be some
  kChanged       // it is read and written
};

class BACKPLANE_API BorrowedTensor {
 public:
  // The tensor over `data`, as wrap_host makes it: strides in elements, one per axis, or none for row-major elements.
  // It is valid until the next `point`. The handle of the last call is used again unless somebody kept it, which saves
  // two allocations. Throws what wrap_host throws.
  const Tensor& point(void* data, Shape shape, Shape strides, bp_dtype dtype, Lent lent);
  // Did the call before keep the tensor or a view of it? Its memory must then live as long as they do.
  bool is_kept() const noexcept;

 private:
  Tensor tensor_;
};

// A set of them that this thread keeps from call to call. Calls nest where a kernel runs a program that calls again,
// and each has a set of its own.
class BACKPLANE_API BorrowedTensors {
 public:
  static constexpr size_t kCount = 32;

  BorrowedTensors();
  ~BorrowedTensors();
  BorrowedTensors(const BorrowedTensors&) = delete;
  BorrowedTensors& operator=(const BorrowedTensors&) = delete;

  // i < kCount.
  BorrowedTensor& operator[](size_t i) const { return first_[i]; }
  // How many sets of this thread were in use before.
  size_t depth() const { return depth_; }

 private:
  BorrowedTensor* first_;
  size_t depth_;
};

}  // namespace backplane
