// Which nodes of a graph can be fused into calls of scalar functions (backplane/plugin/fused_program.hpp), and which
// fit each other, by what the graph says of each (BP_REGION_*, BP_FAULT_*): elementwise ops for which codegen writes
// functions, selections, casts, views that keep their elements' order, and, where the backend names what joins
// elements, reductions over the last axes.
//
// A region has one space (backplane/plugin/fused_space.hpp). A value has an element for each of the space's, one per
// row, or one in all. Header-only; constant once it is made.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/plugin/dtype.hpp"
#include "backplane/plugin/fused_space.hpp"
#include "backplane/plugin/graph_view.hpp"

namespace backplane::plugin {

inline bool is_half(bp_dtype dtype) { return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16; }
// The dtype whose functions compute elements of `dtype`.
inline bp_dtype held_dtype(bp_dtype dtype) { return is_half(dtype) ? bp_dtype{BP_FLOAT32} : dtype; }

// What an elementwise op does to elements of a dtype: a function of a scalar header (codegen's).
struct ScalarOp {
  std::string function;
  int operands = 0;  // 3: a selection, by a bool
  bp_dtype result = BP_DTYPE_NONE;
};
using ScalarOps = std::map<std::pair<std::string, bp_dtype>, ScalarOp, std::less<>>;  // by the op's full name

enum class FusedKind { kNone, kMap, kCast, kView, kReduce };

struct FusedNode {
  FusedKind kind = FusedKind::kNone;
  const char* reason = nullptr;  // of kNone: why
  const ScalarOp* op = nullptr;  // of kMap
  FusedSpace space;              // of the result; of kReduce that of its operand
  // Of kReduce: what joins two elements, and the dtype in which it does.
  const std::string* reduction = nullptr;
  bp_dtype accumulator = BP_DTYPE_NONE;
};

// The ops that a backend lets be fused.
struct FusedOps {
  ScalarOps scalars;
  int64_t most_alike = 0;  // elements, up to which regions that share no value are worth one call
  // Reductions over rows of at most `longest_row` elements: the names of what joins two elements, by BP_JOIN_*. One
  // without a name is left alone.
  std::array<std::string, BP_JOIN_ALL + 1> joins{};
  bp_dtype (*accumulator)(uint16_t join, bp_dtype result) = nullptr;  // BP_DTYPE_NONE: it is left alone
  int64_t longest_row = 0;
};

// Which nodes can be fused, and which fit each other: the rules of grow_regions (backplane/plugin/regions.hpp).
class FusedRules {
 public:
  using Space = FusedSpace;
  static constexpr uint32_t kMostNodes = 256;

  // `lacks`: dtypes that the device does not compute.
  FusedRules(const GraphView& graph, bp_device device, const FusedOps& ops, bp_dtype_mask lacks)
      : graph_(graph), device_(device), ops_(ops), lacks_(lacks) {
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) nodes_.push_back(node_of(i));
  }

  const FusedNode& operator[](uint32_t i) const { return nodes_[i]; }
  const char* reason(uint32_t i) const { return nodes_[i].reason; }
  bool is_view(uint32_t i) const { return nodes_[i].kind == FusedKind::kView; }
  bool begins_region(uint32_t) const { return true; }
  bool may_follow(uint32_t) const { return true; }
  const Space& own_space(uint32_t i) const { return nodes_[i].space; }
  std::optional<Space> unite(const Space& a, const Space& b) const { return united(a, b); }
  bool joins_alike(const Space& space) const {
    int64_t elements = 1;
    for (const int64_t size : space.dims) {
      if (size < 0 || size > ops_.most_alike) return false;  // below 0: it is not known
      elements *= size;
      if (elements > ops_.most_alike) return false;
    }
    return elements <= ops_.most_alike;
  }
  template <class Inside>
  bool fits(uint32_t i, const Space& space, Inside&& inside) const {
    const Dims dims = nodes_[i].kind == FusedKind::kReduce ? graph_.dims(graph_.node(i).args[0].u.i)
                                                           : graph_.dims(graph_.node(i).results[0]);
    const FusedForm form = form_of(fused_space(dims), space);
    bool right = form != FusedForm::kOther;
    graph_.for_each_read(i, [&](int64_t value) {
      if (!right || !inside(value)) return;
      const FusedForm own = form_of(fused_space(graph_.dims(value)), space);
      right = own == FusedForm::kOne || own == form ||
              (own == FusedForm::kRow && form == FusedForm::kFull &&
               is_one_per_row(graph_.dims(value), dims, space.outer()));
    });
    return right;
  }

 private:
  static FusedNode none(const char* reason) {
    FusedNode node;
    node.reason = reason;
    return node;
  }
  bool computes(bp_dtype dtype) const { return dtype < BP_DTYPE_COUNT && (lacks_ & BP_DTYPE_BIT(dtype)) == 0; }
  static bool is_number(const bp_value& arg) { return arg.tag >= BP_TAG_BOOL && arg.tag <= BP_TAG_COMPLEX; }

  FusedNode node_of(uint32_t i) const {
    const bp_graph_node& node = graph_.node(i);
    if (node.compute == BP_DTYPE_NONE) return none("the host does not pass the call to compilers");
    bool here = node.n_results == 1, computed = true;
    const auto look = [&](int64_t value) {
      const bp_device& at = graph_.value(value).device;
      here = here && at.backend == device_.backend && at.ordinal == device_.ordinal;
      computed = computed && computes(graph_.value(value).dtype);
    };
    for (uint32_t k = 0; k < node.n_results; ++k) look(node.results[k]);
    graph_.for_each_read(i, look);
    if (!here) return none("it has several results, or values on another device");
    if (!computed) return none("the device does not compute in a dtype of it");
    for (const int64_t size : graph_.dims(node.results[0]))
      if (size == 0) return none("it has no elements");
    FusedNode made = kind_of(i);
    if (made.space.dims.empty()) made.space.dims = fused_space(graph_.dims(node.results[0]));
    return made;
  }

  FusedNode kind_of(uint32_t i) const {
    const bp_graph_node& node = graph_.node(i);
    const uint16_t region = graph_.region(i), join = graph_.join(i);
    if (region == BP_REGION_CAST) return moving(i, FusedKind::kCast);
    if (region == BP_REGION_VIEW) return moving(i, FusedKind::kView);
    if (region == BP_REGION_REDUCE && join < ops_.joins.size() && !ops_.joins[join].empty())
      return reduction_of(i, ops_.joins[join]);
    const auto found = region == BP_REGION_ELEMENTWISE && node.compute < BP_DTYPE_COUNT
                           ? ops_.scalars.find({std::string(node.op), held_dtype(node.compute)})
                           : ops_.scalars.end();
    if (found == ops_.scalars.end()) return none("it is not an elementwise op of the dtype");
    const ScalarOp& scalar = found->second;
    if (!reads_elements(i, scalar.operands)) return none("an argument is not a tensor of its dtype, and not a number");
    if (scalar.result != held_dtype(graph_.value(node.results[0]).dtype))
      return none("its result has another dtype than its function's");
    if (graph_.faults(i) != BP_FAULT_NONE) return none("it may find an error in its data");
    FusedNode made;
    made.kind = FusedKind::kMap;
    made.op = &scalar;
    return made;
  }

  bool reads_elements(uint32_t i, int operands) const {
    bool reads = false;
    const bp_graph_node& node = graph_.node(i);
    for (uint32_t k = 0; k < node.n_args; ++k) {
      const bp_value& arg = node.args[k];
      const bool condition = operands == 3 && k == 0;
      if (arg.tag != BP_TAG_REF && (condition || !is_number(arg))) return false;
      if (arg.tag != BP_TAG_REF) continue;
      reads = true;
      const bp_dtype dtype = graph_.value(arg.u.i).dtype;
      if (condition ? dtype != BP_BOOL : dtype != node.compute && (node.shares >> k & 1) == 0) return false;
    }
    return reads && node.n_args == static_cast<uint32_t>(operands);
  }

  FusedNode moving(uint32_t i, FusedKind kind) const {
    const bp_graph_node& node = graph_.node(i);
    if (node.n_args < 1 || node.args[0].tag != BP_TAG_REF) return none("it reads no tensor");
    const Dims from = graph_.dims(node.args[0].u.i), to = graph_.dims(node.results[0]);
    FusedNode made;
    made.kind = kind;
    const std::vector<int64_t> elements = fused_space(from), places = fused_space(to);
    if (elements.empty() || elements == places) return made;
    // An element per row, repeated along it.
    made.space = {places, places.size() - std::min(places.size(), elements.size())};
    if (!is_one_per_row(from, to, elements.size()) || !may_be_rows(made.space))
      return none("it is a view of another shape");
    return made;
  }

  // Are its rows not empty, not too long, and of a known size? A size below 0 is not known.
  bool may_be_rows(const FusedSpace& space) const {
    if (std::any_of(space.dims.begin(), space.dims.end(), [](int64_t size) { return size < 0; })) return false;
    int64_t length = 1;
    for (size_t d = space.outer(); d < space.dims.size(); ++d) {
      if (space.dims[d] == 0 || space.dims[d] > ops_.longest_row / length) return false;
      length *= space.dims[d];
    }
    return space.reduced > 0;
  }

  FusedNode reduction_of(uint32_t i, const std::string& reduction) const {
    const bp_graph_node& node = graph_.node(i);
    if (node.n_args < 2 || node.args[0].tag != BP_TAG_REF || node.args[1].tag != BP_TAG_INT_LIST)
      return none("it does not reduce a tensor along a list of axes");
    const std::span axes(node.args[1].u.ints, node.args[1].count);
    const Dims dims = graph_.dims(node.args[0].u.i);
    const auto ndim = static_cast<int64_t>(dims.size());
    if (std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return axis < 0 || axis >= ndim; }))
      return none("it names an axis that its operand does not have");
    FusedNode made;
    made.kind = FusedKind::kReduce;
    made.reduction = &reduction;
    made.accumulator = ops_.accumulator(graph_.join(i), graph_.value(node.results[0]).dtype);
    if (made.accumulator == BP_DTYPE_NONE) return none("it does not accumulate in the dtype of its result");
    for (int64_t d = 0; d < ndim; ++d) {
      const int64_t size = dims[static_cast<size_t>(d)];
      if (size == 1) continue;
      const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
      if (!reduced && made.space.reduced > 0) return none("it reduces over axes that are not the last ones");
      made.space.dims.push_back(size);
      made.space.reduced += reduced;
    }
    if (made.space.reduced == 0) return none("its rows have one element");
    if (!may_be_rows(made.space)) return none("its rows are empty, too long, or of a size that is not known yet");
    return made;
  }

  const GraphView& graph_;
  const bp_device device_;
  const FusedOps& ops_;
  const bp_dtype_mask lacks_;
  std::vector<FusedNode> nodes_;
};

}  // namespace backplane::plugin
