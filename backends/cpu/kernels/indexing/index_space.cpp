// See index_space.hpp.
#include "kernels/indexing/index_space.hpp"

#include <algorithm>
#include <span>

#include "backplane/plugin/indexing.hpp"
#include "kernels/indexing/along_axis.hpp"
#include "loops/elementwise.hpp"
#include "loops/lanes.hpp"

namespace backplane::cpu {

// Of one index tensor, at the joint shape.
struct IndexSpace::Positions {
  const bp_tensor* tensor;
  const int64_t* strides;  // bytes, per joint dim
  int64_t size, stride;    // of the axis; the stride in bytes
};

namespace {

// Counted from the front; one out of range is refused.
template <class T>
int64_t position_of(const bp_frame* frame, T given, int64_t size) {
  auto at = static_cast<int64_t>(given);
  if (at < 0 && std::is_signed_v<T>) at += size;
  if (at < 0 || at >= size) refuse_index(frame, static_cast<int64_t>(given), size, plugin::kDtypeOf<T>);
  return at;
}

// visit(position) for each, counted from the front.
template <class T, class Visit>
void each_position(const bp_frame* frame, const Lanes<1>& lanes, int64_t size, Visit visit) {
  lanes.for_each(0, lanes.count(), [&](char* const* p) -> const char* {
    visit(position_of(frame, *reinterpret_cast<const T*>(p[0]), size));
    return nullptr;
  });
}

// Of positions in one piece of memory that have the joint shape: a loop that vectorises. False where one is out of
// range: then position_of names it, and the offsets, which wrap around, are of no use.
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

bool row_major(const int64_t* shape, const int64_t* strides, int32_t rank, int64_t item) {
  for (int32_t d = rank - 1; d >= 0; item *= shape[d--])
    if (shape[d] != 1 && strides[d] != item) return false;
  return true;
}

}  // namespace

void IndexSpace::add_offsets(const bp_frame* frame, const Positions& positions) {
  const auto [tensor, strides, size, stride] = positions;
  const LaneOperand operand{data_of(tensor), strides, 1};
  const Lanes<1> lanes(joint_shape, joint_rank, -1, {operand});
  plugin::dispatch_dtype<BP_MASK_INTEGER>(tensor->dtype, [&]<class T>() {
    const auto count = static_cast<int64_t>(offsets.size());
    const auto* data = reinterpret_cast<const T*>(data_of(tensor));
    if (row_major(joint_shape, strides, joint_rank, sizeof(T)) &&
        add_neighbours(data, count, size, stride, offsets.data()))
      return;
    int64_t* offset = offsets.data();
    each_position<T>(frame, lanes, size, [&](int64_t at) { *offset++ += at * stride; });
  });
}

void IndexSpace::keep(int64_t size, int64_t stride) {
  kept_shape[kept_rank] = size;
  kept_strides[kept_rank++] = stride;
}

void IndexSpace::make_offsets() {
  int64_t total = 1;
  for (int32_t d = 0; d < joint_rank; ++d) total *= joint_shape[d];
  offsets.assign(static_cast<size_t>(total), 0);
}

IndexSpace::IndexSpace(const bp_frame* frame, const bp_value& list, int64_t wider) {
  const bp_loop& loop = *frame->loop;
  const auto row = [&](int32_t operand) { return loop.strides + static_cast<ptrdiff_t>(operand) * loop.rank; };
  before = loop.joint_first;
  joint_rank = loop.joint_rank;
  const int32_t joint_end = before + joint_rank;
  std::copy(loop.sizes + before, loop.sizes + joint_end, joint_shape);
  for (int32_t d = 0; d < loop.rank; ++d)
    if (d < before || d >= joint_end) keep(loop.sizes[d], row(loop.indexed)[d] * wider);
  make_offsets();
  for (int32_t i = 0; i < loop.n_indices; ++i) {
    const bp_loop_index& index = plugin::index_of(loop, static_cast<int32_t>(i));
    add_offsets(frame, {list.u.tensors[index.axis], row(index.operand) + before, index.size, index.stride * wider});
  }
}

IndexSpace::IndexSpace(const bp_frame* frame, const bp_tensor* indexed, int32_t axis, const bp_tensor* positions,
                       int64_t wider) {
  const int64_t item = plugin::kItemSize[indexed->dtype] * wider;
  before = axis;
  joint_rank = positions->dl.ndim;
  std::copy(positions->dl.shape, positions->dl.shape + joint_rank, joint_shape);
  for (int32_t d = 0; d < indexed->dl.ndim; ++d)
    if (d != axis) keep(indexed->dl.shape[d], indexed->dl.strides[d] * item);
  make_offsets();
  int64_t strides[kMaxRank];
  for (int32_t d = 0; d < joint_rank; ++d) strides[d] = positions->dl.strides[d] * plugin::kItemSize[positions->dtype];
  add_offsets(frame, {positions, strides, indexed->dl.shape[axis], indexed->dl.strides[axis] * item});
}

void check_positions(const bp_frame* frame, const bp_value& list) {
  const std::span<const bp_loop_index> indices(frame->loop->indices, static_cast<size_t>(frame->loop->n_indices));
  const auto of = [&](const bp_loop_index& index) { return list.u.tensors[index.axis]; };
  if (std::any_of(indices.begin(), indices.end(), [&](const auto& index) { return of(index)->nbytes == 0; })) return;
  for (const bp_loop_index& index : indices) {
    const bp_tensor* tensor = of(index);
    const Lanes<1> lanes(tensor->dl.shape, tensor->dl.ndim, -1, {lane_operand(tensor)});
    plugin::dispatch_dtype<BP_MASK_INTEGER>(
        tensor->dtype, [&]<class T>() { each_position<T>(frame, lanes, index.size, [](int64_t) {}); });
  }
}

}  // namespace backplane::cpu
