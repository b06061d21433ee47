// Graphs of the contract for tests of the fuser: built node by node, run op by op on the kernels, and run by regions.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <set>

#include "backends/cpu/fake_host.hpp"
#include "backplane/abi/extensions.h"

namespace backplane::testing {

inline const bp_extension_compiler& fuser() {
  const bp_backend_def& backend = cpu().backend;
  return *static_cast<const bp_extension_compiler*>(backend.extension(backend.context, BP_EXTENSION_COMPILER, 1));
}
inline constexpr bp_device kHere{3, 0};

inline bp_value ref(int64_t value) {
  bp_value result{};
  result.tag = BP_TAG_REF;
  result.u.i = value;
  return result;
}

class RegionGraph {
 public:
  struct Node {
    std::string op;
    std::vector<bp_value> args;
    uint32_t result;
    bp_dtype compute;
    uint16_t region = BP_REGION_NONE;  // of casts and views; the cpu knows its own elementwise ops and reductions
    std::deque<Shape> lists{};         // of the arguments
  };

  int64_t value(bp_dtype dtype, Shape dims) {
    values_.push_back({dtype, std::move(dims)});
    return static_cast<int64_t>(values_.size()) - 1;
  }
  int64_t input(Array array) {
    const int64_t added = value(array.dtype(), array.shape());
    inputs.push_back(static_cast<uint32_t>(added));
    arrays.emplace(added, std::move(array));
    return added;
  }
  int64_t node(const std::string& op, std::vector<bp_value> args, bp_dtype dtype, Shape dims, bp_dtype compute) {
    const int64_t result = value(dtype, std::move(dims));
    Node& added = nodes.emplace_back(Node{op, std::move(args), static_cast<uint32_t>(result), compute});
    for (bp_value& arg : added.args)
      if (arg.tag == BP_TAG_INT_LIST) arg = ints(added.lists.emplace_back(arg.u.ints, arg.u.ints + arg.count));
    return result;
  }
  // An elementwise op whose operands broadcast; computes in the dtype of its first operand, or `compute`.
  int64_t map(const std::string& op, std::vector<bp_value> args, std::optional<bp_dtype> dtype = {},
              std::optional<bp_dtype> compute = {}) {
    Shape dims;
    std::optional<bp_dtype> first;
    for (const bp_value& arg : args) {
      if (arg.tag != BP_TAG_REF) continue;
      if (!first) first = this->dtype(arg.u.i);
      const Shape& other = shape(arg.u.i);
      if (other.size() > dims.size()) dims.insert(dims.begin(), other.size() - dims.size(), 1);
      for (size_t d = 0; d < other.size(); ++d) {
        int64_t& size = dims[dims.size() - other.size() + d];
        if (size == 1) size = other[d];
      }
    }
    const bp_dtype in = compute.value_or(*first);
    return node(op, std::move(args), dtype.value_or(in), dims, in);
  }
  int64_t cast(int64_t x, bp_dtype dtype) {
    bp_value to{};
    to.tag = BP_TAG_DTYPE;
    to.u.i = dtype;
    return in_region(BP_REGION_CAST, node("bp::cast", {ref(x), to}, dtype, shape(x), this->dtype(x)));
  }
  // Over the last `axes` dims.
  int64_t reduce(const std::string& op, int64_t x, size_t axes, bool keepdims, std::optional<bp_dtype> dtype = {},
                 std::vector<bp_value> more = {}) {
    Shape list, dims = shape(x);
    for (size_t d = dims.size() - axes; d < dims.size(); ++d) list.push_back(static_cast<int64_t>(d));
    for (const int64_t d : list) dims[static_cast<size_t>(d)] = 1;
    if (!keepdims) dims.resize(dims.size() - axes);
    std::vector<bp_value> args = {ref(x), ints(list)};
    args.insert(args.end(), more.begin(), more.end());
    return node(op, args, dtype.value_or(this->dtype(x)), dims, this->dtype(x));
  }
  int64_t reshape(int64_t x, Shape dims) {
    return in_region(BP_REGION_VIEW, node("bp::reshape", {ref(x), ints(dims)}, dtype(x), dims, dtype(x)));
  }
  int64_t broadcast(int64_t x, Shape dims) {
    return in_region(BP_REGION_VIEW, node("bp::broadcast_to", {ref(x), ints(dims)}, dtype(x), dims, dtype(x)));
  }

  bp_dtype dtype(int64_t v) const { return values_[static_cast<size_t>(v)].dtype; }
  const Shape& shape(int64_t v) const { return values_[static_cast<size_t>(v)].dims; }

  // As it crosses; of some of the nodes, or of all. Valid until the next call.
  const bp_graph* crossing(const std::vector<size_t>& chosen, const std::vector<uint32_t>& in,
                           const std::vector<uint32_t>& out) {
    value_records_.clear();
    for (const Value& v : values_)
      value_records_.push_back({v.dtype, 0, static_cast<int32_t>(v.dims.size()), v.dims.data(), kHere, nullptr});
    for (auto& [v, array] : constants) value_records_[static_cast<size_t>(v)].constant = array.handle();
    node_records_.clear();
    for (const size_t i : chosen) {
      Node& n = nodes[i];
      node_records_.push_back({n.op.c_str(), 0, 0, n.args.data(), &n.result, static_cast<uint32_t>(n.args.size()), 1,
                               n.compute, 0, 0, ~uint64_t{0}, 0, nullptr, BP_FAULT_NONE, n.region, BP_JOIN_NONE, 0});
    }
    in_ = in;
    out_ = out;
    graph_ = {BP_HEADER(bp_graph),
              {value_records_.data(), static_cast<uint32_t>(value_records_.size()), sizeof(bp_graph_value)},
              {node_records_.data(), static_cast<uint32_t>(node_records_.size()), sizeof(bp_graph_node)},
              in_.data(),
              out_.data(),
              static_cast<uint32_t>(in_.size()),
              static_cast<uint32_t>(out_.size())};
    return &graph_;
  }
  std::vector<size_t> all() const {
    std::vector<size_t> list(nodes.size());
    std::iota(list.begin(), list.end(), size_t{0});
    return list;
  }
  const bp_graph* crossing() { return crossing(all(), inputs, outputs); }

  std::deque<Node> nodes;
  std::vector<uint32_t> inputs, outputs;
  std::map<int64_t, Array> arrays;  // of the inputs
  std::map<int64_t, Array> constants;

 private:
  struct Value {
    bp_dtype dtype;
    Shape dims;
  };
  int64_t in_region(uint16_t region, int64_t result) {
    nodes.back().region = region;
    return result;
  }
  std::deque<Value> values_;
  std::vector<bp_graph_value> value_records_;
  std::vector<bp_graph_node> node_records_;
  std::vector<uint32_t> in_, out_;
  bp_graph graph_{};
};

using Arrays = std::map<int64_t, Array>;

// Runs one node on the kernel of its op, or as the view that it is; operands are cast as the core would.
inline void run_node(RegionGraph& graph, const RegionGraph::Node& node, Arrays& arrays) {
  const int64_t result = node.result;
  Array out(graph.dtype(result), graph.shape(result));
  if (node.op == "bp::reshape" || node.op == "bp::broadcast_to") {
    Array x = arrays.at(node.args[0].u.i);
    const Shape &from = x.shape(), &to = out.shape();
    Shape strides = out.strides();
    for (size_t d = 0; node.op == "bp::broadcast_to" && d < to.size(); ++d) {
      const size_t missing = to.size() - from.size();
      strides[d] = d < missing || from[d - missing] != to[d] ? 0 : x.strides()[d - missing];
    }
    arrays.emplace(result, x.view(to, strides));
    return;
  }
  std::deque<Array> casts;
  std::vector<bp_value> args;
  const bool map = (cpu().kernels.at(node.op).flags & BP_KERNEL_INPLACE) != 0 && node.op != "bp::cast";
  for (size_t k = 0; k < node.args.size(); ++k) {
    if (node.args[k].tag != BP_TAG_REF) {
      args.push_back(node.args[k]);
      continue;
    }
    Array& x = arrays.at(node.args[k].u.i);
    const bool condition = node.op == "bp::where" && k == 0;
    if (!(cpu().kernels.at(node.op).flags & (BP_KERNEL_STRIDED | BP_KERNEL_LOOP)) &&
        !(x.handle()->flags & BP_TENSOR_CONTIGUOUS)) {
      casts.emplace_back(x.dtype(), x.shape());
      ASSERT_EQ(cpu().call("bp::copy", {tensor(x)}, {tensor(casts.back())}, x.dtype()), BP_OK);
      args.push_back(tensor(casts.back()));
      continue;
    }
    if (!map || condition || x.dtype() == node.compute) {
      args.push_back(tensor(x));
      continue;
    }
    casts.emplace_back(node.compute, x.shape());
    ASSERT_EQ(cpu().call("bp::cast", {tensor(x)}, {tensor(casts.back())}, x.dtype()), BP_OK);
    args.push_back(tensor(casts.back()));
  }
  const Shape* reduced = args.size() > 1 && args[1].tag == BP_TAG_INT_LIST ? &node.lists[0] : nullptr;
  cpu().merges_dims = true;
  const bp_status status = cpu().call(node.op, args, {tensor(out)}, node.compute, false, reduced);
  cpu().merges_dims = false;
  ASSERT_EQ(status, BP_OK) << cpu().error;
  arrays.emplace(result, out);
}

inline Arrays run_op_by_op(RegionGraph& graph) {
  Arrays arrays = graph.arrays;
  for (const auto& [v, array] : graph.constants) arrays.emplace(v, array);
  for (const RegionGraph::Node& node : graph.nodes) run_node(graph, node, arrays);
  return arrays;
}

struct Regions {
  std::vector<uint32_t> of_node;
  std::vector<const char*> reasons;
  uint32_t count = 0;
};
inline Regions regions_of(RegionGraph& graph) {
  Regions result{std::vector<uint32_t>(graph.nodes.size()), std::vector<const char*>(graph.nodes.size())};
  EXPECT_EQ(fuser().partition(cpu().backend.context, cpu().table(), kHere, graph.crossing(), result.of_node.data(),
                              &result.count, result.reasons.data()),
            BP_OK)
      << cpu().error;
  return result;
}

// Compiles and runs some nodes as one region.
inline void run_region(RegionGraph& graph, const std::vector<size_t>& chosen, Arrays& arrays) {
  std::set<uint32_t> made, read;
  std::vector<uint32_t> in, out;
  for (const size_t i : chosen) made.insert(graph.nodes[i].result);
  for (const size_t i : chosen)
    for (const bp_value& arg : graph.nodes[i].args) {
      const auto v = static_cast<uint32_t>(arg.u.i);
      if (arg.tag == BP_TAG_REF && !made.contains(v) && !graph.constants.contains(v) && read.insert(v).second)
        in.push_back(v);
    }
  for (const size_t i : chosen) {
    const uint32_t v = graph.nodes[i].result;
    bool wanted = std::find(graph.outputs.begin(), graph.outputs.end(), v) != graph.outputs.end();
    for (size_t j = 0; j < graph.nodes.size(); ++j)
      for (const bp_value& arg : graph.nodes[j].args)
        wanted = wanted ||
                 (arg.tag == BP_TAG_REF && arg.u.i == v && std::find(chosen.begin(), chosen.end(), j) == chosen.end());
    if (wanted) out.push_back(v);
  }
  bp_executable* executable = nullptr;
  bp_executable_info info{BP_HEADER(bp_executable_info), 0, 0, 0};
  ASSERT_EQ(
      fuser().compile(cpu().backend.context, cpu().table(), kHere, graph.crossing(chosen, in, out), &info, &executable),
      BP_OK)
      << cpu().error;
  std::vector<bp_value> ins, outs;
  for (const uint32_t v : in) ins.push_back(tensor(arrays.at(v)));
  for (const uint32_t v : out) {
    Array& array = arrays.emplace(v, Array(graph.dtype(v), graph.shape(v))).first->second;
    outs.push_back(tensor(array));
    outs.back().flags = BP_VALUE_GIVEN;
  }
  const bp_op_info name{BP_HEADER(bp_op_info), "a region", 0, 0, nullptr};
  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = cpu().table();
  frame.op = &name;
  EXPECT_EQ(fuser().execute(&frame, executable, ins.data(), static_cast<int32_t>(ins.size()), outs.data(),
                            static_cast<int32_t>(outs.size())),
            BP_OK)
      << cpu().error;
  fuser().destroy(cpu().backend.context, executable);
}

// Runs regions and other nodes as soon as their operands exist; a cycle between them fails.
inline Arrays run_by_regions(RegionGraph& graph, const Regions& regions) {
  Arrays arrays = graph.arrays;
  for (const auto& [v, array] : graph.constants) arrays.emplace(v, array);
  std::vector<std::vector<size_t>> steps(regions.count);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (regions.of_node[i] == BP_NO_REGION)
      steps.push_back({i});
    else
      steps[regions.of_node[i]].push_back(i);
  }
  for (size_t left = steps.size(), before = left + 1; left > 0 && left < before;) {
    before = left;
    for (auto& step : steps) {
      std::set<int64_t> made;
      bool ready = !step.empty();
      for (const size_t i : step) made.insert(graph.nodes[i].result);
      for (const size_t i : step)
        for (const bp_value& arg : graph.nodes[i].args)
          ready = ready && (arg.tag != BP_TAG_REF || made.contains(arg.u.i) || arrays.contains(arg.u.i));
      if (!ready) continue;
      if (regions.of_node[step[0]] == BP_NO_REGION)
        run_node(graph, graph.nodes[step[0]], arrays);
      else
        run_region(graph, step, arrays);
      step.clear();
      --left;
    }
    if (left == before) ADD_FAILURE() << "regions wait for one another";
  }
  return arrays;
}

inline Array normal_array(std::mt19937& random, bp_dtype dtype, const Shape& shape) {
  Array wide(BP_FLOAT64, shape), result(dtype, shape);
  std::normal_distribution<double> normal(1, 40);
  for (int64_t i = 0; i < wide.count(); ++i) wide.at<double>()[i] = normal(random);
  EXPECT_EQ(cpu().call("bp::cast", {tensor(wide)}, {tensor(result)}, BP_FLOAT64), BP_OK);
  return result;
}

// The outputs, by regions and op by op.
inline void expect_same_bytes(RegionGraph& g) {
  Arrays expected = run_op_by_op(g);
  Arrays found = run_by_regions(g, regions_of(g));
  for (const uint32_t v : g.outputs) {
    ASSERT_TRUE(found.contains(v));
    Array &a = found.at(v), &b = expected.at(v);
    ASSERT_EQ(a.count(), b.count());
    EXPECT_EQ(std::memcmp(a.at<char>(), b.at<char>(), static_cast<size_t>(a.count() * kItemSize[a.dtype()])), 0)
        << "value " << v;
  }
}

}  // namespace backplane::testing
