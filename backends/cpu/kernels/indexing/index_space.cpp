// See index_space.hpp.
#include "kernels/indexing/index_space.hpp"

#include "kernels/indexing/along_axis.hpp"
#include "loops/elementwise.hpp"
#include "loops/lanes.hpp"

namespace backplane::cpu {
namespace {

// The same of positions in one piece of memory that have the joint shape: a loop that vectorises. False where one is
// out of range: then the other names it, and the offsets, which wrap around, are of no use.
template <class T>
bool add_neighbours(const T* positions, int64_t count, int64_t size, int64_t stride, int64_t* offsets) {
  int64_t outside = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto given = static_cast<int64_t>(positions[i]);
    const int64_t at = given < 0 && std::is_signed_v<T> ? given + size : given;
    outside |= at < 0 || at >= size;
    offsets[i] = static_cast<int64_t>(static_cast<uint64_t>(offsets[i]) +
                                      static_cast<uint64_t>(at) * static_cast<uint64_t>(stride));
  }
  return outside == 0;
}

// Adds the offsets of one index tensor, broadcast to the joint shape.
void add_offsets(const bp_frame* frame, const bp_tensor* index, int64_t size, int64_t stride, IndexSpace& space) {
  int64_t strides[kMaxRank];
  const int32_t missing = space.joint_rank - index->dl.ndim;
  for (int32_t d = 0; d < space.joint_rank; ++d)
    strides[d] = d < missing || index->dl.shape[d - missing] == 1 ? 0 : index->dl.strides[d - missing];
  const LaneOperand operand{data_of(index), strides, plugin::kItemSize[index->dtype]};
  const Lanes<1> positions(space.joint_shape, space.joint_rank, -1, {operand});
  plugin::dispatch_dtype<BP_MASK_INTEGER>(index->dtype, [&]<class T>() {
    const bool neighbours = index->dl.ndim == space.joint_rank && (index->flags & BP_TENSOR_CONTIGUOUS) != 0 &&
                            std::equal(index->dl.shape, index->dl.shape + space.joint_rank, space.joint_shape);
    if (neighbours) {
      const auto count = static_cast<int64_t>(space.offsets.size());
      if (add_neighbours(reinterpret_cast<const T*>(data_of(index)), count, size, stride, space.offsets.data())) return;
    }
    int64_t* offset = space.offsets.data();
    positions.for_each(0, positions.count(), [&](char* const* p) -> const char* {
      const T given = *reinterpret_cast<const T*>(p[0]);
      int64_t at = static_cast<int64_t>(given);
      if (at < 0 && std::is_signed_v<T>) at += size;
      if (at < 0 || at >= size) refuse_index(frame, static_cast<int64_t>(given), size, index->dtype);
      *offset++ += at * stride;
      return nullptr;
    });
  });
}

}  // namespace

IndexSpace::IndexSpace(const bp_frame* frame, const bp_tensor* x, bp_tensor* const* indices, uint32_t count) {
  const int64_t item = plugin::kItemSize[x->dtype];
  uint32_t first = count, last = 0, given = 0;
  for (uint32_t k = 0; k < count; ++k) {
    if (indices[k] == nullptr) continue;
    if (given++ == 0) first = k;
    last = k;
    joint_rank = std::max(joint_rank, indices[k]->dl.ndim);
  }
  std::fill_n(joint_shape, joint_rank, int64_t{1});
  for (uint32_t k = 0; k < count; ++k) {
    if (indices[k] == nullptr) continue;
    const int32_t missing = joint_rank - indices[k]->dl.ndim;
    for (int32_t d = missing; d < joint_rank; ++d)
      if (indices[k]->dl.shape[d - missing] != 1) joint_shape[d] = indices[k]->dl.shape[d - missing];
  }
  const bool neighbours = given == 0 || last - first + 1 == given;
  for (int32_t d = 0; d < x->dl.ndim; ++d) {
    if (static_cast<uint32_t>(d) < count && indices[d] != nullptr) continue;
    if (neighbours && static_cast<uint32_t>(d) < first) ++before;
    kept_shape[kept_rank] = x->dl.shape[d];
    kept_strides[kept_rank++] = x->dl.strides[d] * item;
  }
  int64_t total = 1;
  for (int32_t d = 0; d < joint_rank; ++d) total *= joint_shape[d];
  offsets.assign(static_cast<size_t>(total), 0);
  for (uint32_t k = 0; k < count; ++k)
    if (indices[k] != nullptr) add_offsets(frame, indices[k], x->dl.shape[k], x->dl.strides[k] * item, *this);
}

int64_t IndexSpace::count(int32_t begin, int32_t end) const {
  int64_t product = 1;
  for (int32_t d = begin; d < end; ++d) product *= kept_shape[d];
  return product;
}

void IndexSpace::shape(int64_t* sizes) const {
  sizes = std::copy(kept_shape, kept_shape + before, sizes);
  sizes = std::copy(joint_shape, joint_shape + joint_rank, sizes);
  std::copy(kept_shape + before, kept_shape + kept_rank, sizes);
}

}  // namespace backplane::cpu
