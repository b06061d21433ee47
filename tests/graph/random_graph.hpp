// Graphs made at random over the ops that the null backend knows, for laws that hold of every graph.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "backplane/device.hpp"
#include "graph/graph.hpp"
#include "memory/process/epoch.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "null_backend.hpp"

namespace backplane::core::graph::testing {

// How much a test that damages its input does, and from where: ./dev fuzz graph says.
inline int fuzz_rounds(int usual) {
  const char* rounds = std::getenv("BACKPLANE_FUZZ_ROUNDS");
  return rounds ? std::atoi(rounds) : usual;
}
inline std::mt19937 fuzz_random() {
  const char* seed = std::getenv("BACKPLANE_FUZZ_SEED");
  return std::mt19937(seed ? static_cast<uint32_t>(std::atoll(seed)) : 3);
}

// Appends a node whose results have the types that the op's rules give for the graph's examples.
inline ValueId emit(Graph& graph, const std::string& op, std::vector<Argument> arguments) {
  CallGuard guard;
  const OpEntry& entry = checked_entry(find_op("bp::" + op));
  std::vector<Tensor> handles;
  std::vector<std::vector<bp_tensor*>> lists;
  std::vector<bp_value> args;
  const auto handle = [&](ValueId v) {
    std::vector<int64_t> sizes;
    for (const Dim dim : graph.dims(v)) sizes.push_back(dim.number());
    const Value& type = graph.value(v);
    handles.push_back(Tensor::adopt(new_handle(device_at(type.device), type.dtype, type.ndim, sizes.data())));
    return handles.back().get();
  };
  for (size_t i = arguments.size(); i < entry.record->args.size(); ++i)
    arguments.push_back(graph.copy(entry.record->args[i].default_value));
  for (const Argument& a : arguments) {
    bp_value v = a.plain;
    if (a.is_value()) v.u.t = handle(a.value());
    if (a.is_values()) {
      auto& list = lists.emplace_back();
      for (const ValueId one : Argument(a).values()) list.push_back(handle(one));
      v.u.tensors = list.data();
    }
    args.push_back(v);
  }
  std::vector<std::vector<Dim>> dims;
  std::vector<Type> types;
  const auto inferred = infer(entry.handle, args.data(), static_cast<int32_t>(args.size()));
  for (const InferredResult& result : inferred) dims.emplace_back(result.shape.begin(), result.shape.end());
  for (size_t i = 0; i < inferred.size(); ++i)
    types.push_back({inferred[i].dtype, backplane::testing::null_backend(), dims[i]});
  const NodeId node = graph.add_node(entry, arguments, types, graph.add_location({"random.py", "f", 1}));
  return graph.node(node).first_result;
}

inline Argument number(Graph& graph, double x) { return graph.copy(backplane::number(backplane::value(x))); }
inline Argument ints(Graph& graph, std::vector<int64_t> list) { return graph.copy(backplane::value(Shape(list))); }

// Adds a node over values of the graph. All values are matrices of 3 by 4, their transposes, or smaller.
inline ValueId grow(Graph& graph, std::vector<ValueId>& values, std::mt19937& random) {
  const auto any = [&] { return values[random() % values.size()]; };
  const ValueId x = any();
  const auto rank = static_cast<int64_t>(graph.dims(x).size());
  switch (random() % 9) {
    case 0:
    case 1: {
      // Another value of its shape; else a number.
      std::vector<ValueId> alike;
      for (const ValueId v : values)
        if (std::equal(graph.dims(v).begin(), graph.dims(v).end(), graph.dims(x).begin(), graph.dims(x).end()))
          alike.push_back(v);
      return emit(graph, random() % 2 ? "add" : "multiply",
                  {Argument::of(x), Argument::of(alike[random() % alike.size()])});
    }
    case 2:
      return emit(graph, "negative", {Argument::of(x)});
    case 3:
      return emit(graph, "multiply", {Argument::of(x), number(graph, 0.5)});
    case 4:
      return rank == 2 ? emit(graph, "permute_dims", {Argument::of(x), ints(graph, {1, 0})})
                       : emit(graph, "add", {Argument::of(x), Argument::of(x)});
    case 5:
      return rank == 2 ? emit(graph, "sum", {Argument::of(x), ints(graph, {static_cast<int64_t>(random() % 2)})})
                       : emit(graph, "negative", {Argument::of(x)});
    case 6:  // decomposed there
      return emit(graph, "square", {Argument::of(x)});
    case 7: {
      const bool wide = graph.value(x).dtype == BP_FLOAT64;
      return emit(graph, "cast", {Argument::of(x), graph.copy(dtype_value(wide ? BP_FLOAT32 : BP_FLOAT64))});
    }
    default:
      return rank == 2 ? emit(graph, "select",
                              {Argument::of(x), graph.copy(backplane::value(int64_t{0})),
                               graph.copy(backplane::value(int64_t{1}))})
                       : emit(graph, "multiply", {Argument::of(x), Argument::of(x)});
  }
}

inline Tensor random_tensor(std::vector<int64_t> shape, std::mt19937& random) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<double> data(static_cast<size_t>(count));
  for (double& x : data) x = static_cast<double>(random() % 64) / 16 - 2;  // sums of few are exact
  return from_host(data.data(), shape, {}, BP_FLOAT64, backplane::testing::null_backend());
}

// Of two inputs and a constant, with `nodes` nodes and up to four outputs.
inline std::unique_ptr<Graph> random_graph(std::mt19937& random, int nodes) {
  auto graph = std::make_unique<Graph>();
  graph->name = "random";
  const Dim dims[] = {3, 4};
  const Type type{BP_FLOAT64, backplane::testing::null_backend(), dims};
  std::vector<ValueId> values = {graph->add_input("x", type), graph->add_input("y", type),
                                 graph->add_constant(random_tensor({3, 4}, random), "c")};
  for (int i = 0; i < nodes; ++i) values.push_back(grow(*graph, values, random));
  for (uint32_t i = 0; i < 1 + random() % 4; ++i) graph->outputs.push_back(values[random() % values.size()]);
  graph->outputs.push_back(values.back());
  return graph;
}

inline std::vector<Tensor> random_inputs(std::mt19937& random) {
  // One input is a transpose, whose strides differ from the graph's.
  Tensor y = random_tensor({4, 3}, random);
  const int64_t swapped[] = {1, 0};
  if (random() % 2) return {random_tensor({3, 4}, random), random_tensor({3, 4}, random)};
  return {random_tensor({3, 4}, random),
          backplane::testing::op("permute_dims", {backplane::value(y), backplane::value(Shape(swapped))})};
}

// The bytes of each tensor.
inline std::vector<std::vector<char>> bytes_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<char>> all;
  for (const Tensor& t : tensors) {
    all.emplace_back(t.get()->nbytes);
    to_host(t, all.back().data());
  }
  return all;
}

}  // namespace backplane::core::graph::testing
