// What the fuser can make of one node, whatever region it stands in.
#pragma once

#include "fuse/space.hpp"
#include "loops/column_reduction.hpp"
#include "loops/elementwise_ops.hpp"
#include "loops/row_reduction.hpp"
#include "loops/whole_reduction.hpp"

namespace backplane::cpu::fuse {

// Rows that reductions run over stay in the cache: longer ones are left to the reductions' own kernels.
inline constexpr int64_t kLongestRow = 16384;

enum class NodeKind {
  kNone,
  kMap,      // an elementwise op
  kCast,     // cast and copy
  kReduce,   // a reduction over the last axes
  kColumns,  // a reduction over the first axes: its result leaves the region
  kWhole,    // one over all axes of many elements: likewise
  kSame      // the same elements in the same order, or repeated: no work in a region
};

struct NodePlan {
  NodeKind kind = NodeKind::kNone;
  const char* reason = nullptr;  // of kNone: why
  ElementwiseOp map{};
  const RowReduction* reduction = nullptr;
  const ColumnReduction* columns = nullptr;
  const WholeReduction* whole = nullptr;
  int64_t operand = -1;  // the value read by a node of the other kinds
  size_t reduced = 0;    // of kReduce: how many of the last axes; of kColumns: how many it keeps
};

// `device`: the only one whose values are taken.
NodePlan plan_of(const GraphView& graph, uint32_t node, bp_device device);

// Its result is there when the last tile is, so nobody in the region reads it.
inline bool ends_region(NodeKind kind) { return kind == NodeKind::kColumns || kind == NodeKind::kWhole; }

// The dtype of the elements that a reduction reads, to which its operand is cast where it has another.
bp_dtype reduced_dtype(const GraphView& graph, uint32_t node);

// The dtype in which a map's loop computes: half floats without a loop of their own go through float32.
inline bp_dtype loop_dtype(const Elementwise& table, bp_dtype compute) {
  const bool half = compute == BP_FLOAT16 || compute == BP_BFLOAT16;
  return half && table.inner[compute] == nullptr ? bp_dtype{BP_FLOAT32} : compute;
}
inline bool is_half(bp_dtype dtype) { return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16; }

}  // namespace backplane::cpu::fuse
