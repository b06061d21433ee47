// An input of a kernel that writes in place: where its memory is the output's, its bytes are copied to memory of their
// own first. (BP_KERNEL_INPLACE: an output may be the very buffer of any input of its shape and dtype.)
#pragma once

#include <cstring>
#include <optional>

#include "loops/elementwise.hpp"
#include "loops/region.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

class Apart {
 public:
  // `input` as it is, or with the same strides elsewhere if it lies where `out` does.
  Apart(const bp_tensor* input, const bp_tensor* out) : tensor_(*input) {
    if (input->nbytes == 0 || data_of(input) != data_of(out)) return;
    const int64_t item = plugin::kItemSize[input->dtype];
    int64_t low = 0, high = item;  // bytes from the first element
    for (int32_t d = 0; d < input->dl.ndim; ++d) {
      const int64_t reach = (input->dl.shape[d] - 1) * input->dl.strides[d] * item;
      (reach < 0 ? low : high) += reach;
    }
    memory_.emplace(high - low);
    std::memcpy(memory_->get(), data_of(input) + low, static_cast<size_t>(high - low));
    tensor_.dl.data = memory_->get() - low;
    tensor_.dl.byte_offset = 0;
  }
  Apart(const Apart&) = delete;
  const bp_tensor* get() const { return &tensor_; }

 private:
  bp_tensor tensor_;
  std::optional<Scratch<char>> memory_;
};

// x's elements in `out`, unless they are there already.
inline void begin_as(const bp_frame* frame, const bp_tensor* x, const bp_tensor* out) {
  if (data_of(x) == data_of(out)) return;
  copy_region(frame, x->dtype, x->dl.ndim, x->dl.shape, {data_of(x), x->dl.strides}, {data_of(out), out->dl.strides});
}

}  // namespace backplane::cpu
