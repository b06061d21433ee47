#include "graph/passes/slice_sums.hpp"

#include <algorithm>

#include "graph/passes/rewrite_words.hpp"
#include "registry/tagged_op.hpp"

namespace backplane::core::graph {
namespace {

// All slices live until they are joined: more than these are added to one sum, part by part (put_sums.hpp).
constexpr size_t kMostSlices = 8;

struct Slice {
  int64_t begin, end;
  ValueId value;
};
// A tensor that is zero but for these slices along one axis, in their order; none: it is not known to be.
struct Sliced {
  int64_t axis = 0;
  std::vector<Slice> slices;
};

class SliceSums {
 public:
  explicit SliceSums(Graph& graph) : graph_(graph), found_(graph.values().size()) {}
  size_t run();

 private:
  Sliced put_into_zeros(const Node& node) const;
  Sliced sum(const Node& node) const;
  bool is_zeros(ValueId v) const;
  bool is_whole(ValueId v) const;
  void join(NodeId id);

  Graph& graph_;
  std::vector<Sliced> found_;  // by value
};

bool SliceSums::is_zeros(ValueId v) const {
  const Value& value = graph_.value(v);
  if (value.kind != Value::Kind::kResult || graph_.node(value.node).op != &role_op(Role::kFull)) return false;
  return is_the_number(graph_.arguments(graph_.node(value.node))[1], 0.0);
}

// slice_put(x, value, axes, starts, stops, steps), along one axis in steps of one.
Sliced SliceSums::put_into_zeros(const Node& node) const {
  const std::span<const Argument> arguments = graph_.arguments(node);
  if (!arguments[0].is_value() || !arguments[1].is_value() || !is_zeros(arguments[0].value())) return {};
  const bp_value &axes = arguments[2].plain, &starts = arguments[3].plain, &stops = arguments[4].plain,
                 &steps = arguments[5].plain;
  for (size_t i = 2; i < 6; ++i)
    if (arguments[i].is_symbolic() || arguments[i].plain.count != 1) return {};
  if (axes.tag != BP_TAG_INT_LIST || steps.tag != BP_TAG_INT_LIST || steps.u.ints[0] != 1 ||
      starts.tag != BP_TAG_VALUE_LIST || stops.tag != BP_TAG_VALUE_LIST)
    return {};
  const std::span<const Dim> dims = graph_.dims(node.first_result), own = graph_.dims(arguments[1].value());
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = axes.u.ints[0] + (axes.u.ints[0] < 0 ? rank : 0);
  if (own.size() != dims.size() || !dims[static_cast<size_t>(axis)].is_number()) return {};
  const int64_t size = dims[static_cast<size_t>(axis)].number();
  const auto place = [&](const bp_value& v, int64_t otherwise) {
    if (v.tag != BP_TAG_INT) return otherwise;
    return std::clamp<int64_t>(v.u.i + (v.u.i < 0 ? size : 0), 0, size);
  };
  const int64_t begin = place(starts.u.values[0], 0), end = place(stops.u.values[0], size);
  for (int64_t d = 0; d < rank; ++d) {
    const Dim expected = d == axis ? Dim(end - begin) : dims[static_cast<size_t>(d)];
    if (own[static_cast<size_t>(d)] != expected) return {};
  }
  return {axis, {{begin, end, arguments[1].value()}}};
}

Sliced SliceSums::sum(const Node& node) const {
  const std::span<const Argument> terms = graph_.arguments(node);
  if (!terms[0].is_value() || !terms[1].is_value()) return {};
  const ValueId x = terms[0].value(), y = terms[1].value();
  const Sliced &left = found_[x], &right = found_[y];
  if (left.slices.empty() || right.slices.empty() || left.axis != right.axis ||
      left.slices.size() + right.slices.size() > kMostSlices || graph_.value(x).dtype != graph_.value(y).dtype ||
      !std::ranges::equal(graph_.dims(x), graph_.dims(y)))
    return {};
  Sliced both{left.axis, {}};
  std::ranges::merge(left.slices, right.slices, std::back_inserter(both.slices), {}, &Slice::begin, &Slice::begin);
  for (size_t i = 1; i < both.slices.size(); ++i)
    if (both.slices[i].begin < both.slices[i - 1].end) return {};
  return both;
}

bool SliceSums::is_whole(ValueId v) const {
  const Sliced& found = found_[v];
  if (found.slices.size() < 2) return false;
  int64_t at = 0;
  for (const Slice& s : found.slices) {
    if (s.begin != at) return false;
    at = s.end;
  }
  return graph_.dims(v)[static_cast<size_t>(found.axis)] == Dim(at);
}

// A sum with zeros makes 0.0 of -0.0, and so does each slice's sum with one.
void SliceSums::join(NodeId id) {
  const Node node = graph_.node(id);
  const Sliced& found = found_[node.first_result];
  const bp_dtype dtype = graph_.value(node.first_result).dtype;
  const auto insert = [&](const OpEntry& op, std::span<const Argument> arguments, ValueId like) {
    const Type type = graph_.type(like);
    const std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    const Type result{type.dtype, type.device, dims};
    return graph_.node(graph_.insert_node(id, op, arguments, {&result, 1}, node.location, node.flags)).first_result;
  };
  std::vector<ValueId> pieces;
  for (const Slice& s : found.slices) {
    ValueId piece = s.value;
    if (BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING) {
      bp_value zero = backplane::value(0.0);
      zero.flags = BP_VALUE_NUMBER;
      const Argument terms[] = {Argument::of(piece), graph_.copy(zero)};
      piece = insert(*node.op, terms, piece);
    }
    pieces.push_back(piece);
  }
  const Argument arguments[] = {graph_.list(pieces), graph_.copy(backplane::value(found.axis))};
  graph_.replace_uses(node.first_result, insert(role_op(Role::kConcat), arguments, node.first_result));
  graph_.erase(id);
}

size_t SliceSums::run() {
  const OpEntry &add = role_op(Role::kAdd), &put = tagged_op("role:assign");
  const auto n = static_cast<NodeId>(graph_.nodes().size());
  size_t joined = 0;
  for (NodeId id = 0; id < n; ++id) {
    const Node& node = graph_.node(id);
    if (graph_.is_erased(id) || (node.op != &add && node.op != &put)) continue;
    const ValueId result = node.first_result;
    if (BP_DTYPE_BIT(graph_.value(result).dtype) & (BP_MASK_COMPLEX | BP_MASK_BOOL)) continue;
    found_[result] = node.op == &put ? put_into_zeros(node) : sum(node);
    if (node.op != &add || !is_whole(result)) continue;
    join(id);
    ++joined;
  }
  if (joined) graph_.compact();
  return joined;
}

}  // namespace

size_t join_slice_sums(Graph& graph) { return SliceSums(graph).run(); }

}  // namespace backplane::core::graph
