// Advanced indexing (index, index_put): the host's loop over what the index tensors select, in its two parts, and a
// walk over it.
//
// The host has settled where the dims go, how the index tensors broadcast, and what merges; a row with BP_KERNEL_LOOP
// gets that as bp_loop::indices. IndexPlan reads no memory, so it serves devices of any; for_each_indexed reads the
// index tensors, and is for memory that this code can address. Not the contract: header-only sugar over it.
#pragma once

#include "backplane/plugin/context.hpp"
#include "backplane/plugin/walk.hpp"

#if BP_TARGET_MINOR < 2
#error "plugin/indexing.hpp: index tensors arrive as a loop from minor 2 of the contract on. Fix: NEEDS_MINOR 2"
#endif

namespace backplane::plugin {

// Element i of loop.indices. A host of before minor 3 does not say how far apart they lie.
inline const bp_loop_index& index_of(const bp_loop& loop, int32_t i) {
  size_t stride = sizeof(bp_loop_index);
#if BP_TARGET_MINOR >= 3
  if (BP_HAS(&loop, bp_loop, index_stride)) stride = loop.index_stride;
#endif
  return *reinterpret_cast<const bp_loop_index*>(reinterpret_cast<const char*>(loop.indices) +
                                                 static_cast<size_t>(i) * stride);
}

// `indexed` is the tensor that is read (index), or written once it holds x (index_put); `selected` the one with an
// element for each that the indices select: the result, or the values. Of a call that selects nothing (count 0) the
// parts say nothing.
struct IndexPlan {
  struct Part {
    std::vector<int64_t> sizes, indexed, selected;  // strides in bytes
    int64_t count() const { return count_of(sizes); }
  };
  struct Index {
    const bp_tensor* tensor;  // the call's
    bp_dtype dtype;
    std::vector<int64_t> strides;  // bytes, per joint dim
    int32_t axis;                  // of the indexed tensor
    int64_t size, stride;          // of that axis; the stride in bytes
  };

  // `list`: the op's argument.
  IndexPlan(const bp_loop& loop, std::span<bp_tensor* const> list) : count(loop.count) {
    const int32_t selected = loop.indexed == 0 ? loop.n_operands - 1 : 0, end = loop.joint_first + loop.joint_rank;
    const auto row = [&](int32_t operand) { return loop.strides + static_cast<int64_t>(operand) * loop.rank; };
    for (int32_t d = 0; d < loop.rank; ++d) {
      Part& part = d >= loop.joint_first && d < end ? joint : kept;
      part.sizes.push_back(loop.sizes[d]);
      part.indexed.push_back(row(loop.indexed)[d]);
      part.selected.push_back(row(selected)[d]);
    }
    for (int32_t i = 0; i < loop.n_indices; ++i) {
      const bp_loop_index& index = index_of(loop, i);
      const int64_t* strides = row(index.operand);
      const bp_tensor* tensor = list[static_cast<size_t>(index.axis)];
      indices.push_back(
          {tensor, tensor->dtype, {strides + loop.joint_first, strides + end}, index.axis, index.size, index.stride});
    }
  }

  // One index by itself, over the dims of its tensor.
  IndexPlan(const bp_loop_index& index, const bp_tensor* tensor) : count(0) {
    for (int32_t d = 0; d < tensor->dl.ndim; ++d) {
      joint.sizes.push_back(tensor->dl.shape[d]);
      joint.selected.push_back(tensor->dl.strides[d] * kItemSize[tensor->dtype]);
    }
    joint.indexed.assign(joint.sizes.size(), 0);
    indices.push_back({tensor, tensor->dtype, joint.selected, index.axis, index.size, 0});
  }

  int64_t count;  // of all that is selected
  Part joint;     // the dims of the index tensors
  Part kept;      // those of axes that no index names
  std::vector<Index> indices;
};

// What a call that selects nothing still refuses: where all its index tensors have elements, each by itself, whose
// positions must be in range.
inline std::vector<IndexPlan> checks_of_nothing(const bp_loop& loop, std::span<bp_tensor* const> list) {
  std::vector<IndexPlan> checks;
  for (int32_t i = 0; i < loop.n_indices; ++i) {
    const bp_loop_index& index = index_of(loop, i);
    const bp_tensor* tensor = list[static_cast<size_t>(index.axis)];
    if (tensor->nbytes == 0) return {};
    checks.emplace_back(index, tensor);
  }
  return checks;
}

// Adds to each joint position, in row-major order, the byte offset in the indexed tensor that one index asks for; its
// elements lie at `data`. Throws Error(BP_ERROR_DATA) for one that is out of range.
inline void add_index_offsets(const char* op, const IndexPlan& plan, const IndexPlan::Index& index, const char* data,
                              std::vector<int64_t>& offsets) {
  dispatch_dtype<BP_MASK_INTEGER>(index.dtype, [&]<class I>() {
    size_t position = 0;
    walk<1>(plan.joint.sizes, {Ints(index.strides)}, [&](const auto& at) {
      const I value = *reinterpret_cast<const I*>(data + at[0]);
      // Negative of a uint64 beyond every axis, which counts no axis back.
      const auto found = static_cast<int64_t>(value);
      BP_CHECK(found >= (std::is_signed_v<I> ? -index.size : 0) && found < index.size, DATA, op, ": found index ",
               +value, " along axis ", index.axis, ", expected one in [", -index.size, ", ", index.size, ")");
      offsets[position++] += (found < 0 ? found + index.size : found) * index.stride;
    });
  });
}

// Calls body(byte in the indexed tensor, byte in the selected one) for every selected element. The selections at one
// element come in the order of the joint positions. `offsets`: the offsets of these positions.
template <class Body>
void for_each_selected(const IndexPlan& plan, const std::vector<int64_t>& offsets, Body&& body) {
  size_t position = 0;
  walk<1>(plan.joint.sizes, {Ints(plan.joint.selected)}, [&](const auto& place) {
    const int64_t offset = offsets[position++];
    walk<2>(plan.kept.sizes, {Ints(plan.kept.indexed), Ints(plan.kept.selected)},
            [&](const auto& at) { body(offset + at[0], place[0] + at[1]); });
  });
}

// The same of elements T, in offsets of elements.
template <class T, class Body>
void for_each_indexed(Context call, std::span<bp_tensor* const> list, Body&& body) {
  const auto offsets_of = [&](const IndexPlan& plan) {
    std::vector<int64_t> offsets(static_cast<size_t>(plan.joint.count()), 0);
    for (const IndexPlan::Index& index : plan.indices)
      add_index_offsets(call.op_name(), plan, index,
                        static_cast<const char*>(index.tensor->dl.data) + index.tensor->dl.byte_offset, offsets);
    return offsets;
  };
  const IndexPlan plan(*call.frame->loop, list);
  if (plan.count == 0) {
    for (const IndexPlan& check : checks_of_nothing(*call.frame->loop, list)) offsets_of(check);
    return;
  }
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const std::vector<int64_t> offsets = offsets_of(plan);
  for_each_selected(plan, offsets, [&](int64_t indexed, int64_t selected) { body(indexed / kItem, selected / kItem); });
}

}  // namespace backplane::plugin
