#include "bindings/transforms/graph_members.hpp"

#include "backplane/graph_decompose.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/tensor/tensor_caster.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

namespace py = pybind11;

// What bind_reading gives to both types:
// Python: Graph.nodes: list[GraphNode]
// Python: Graph.inputs: list[GraphValue]
// Python: Graph.outputs: list[GraphValue]
// Python: Graph.updates: list[GraphValue]
// Python: Graph.constants: list[Tensor]
// Python: Graph.save(self, path: str, names: Sequence[str] = ()) -> None
// Python: Graph.__len__(self) -> int
// Python: Graph.__iter__(self) -> Iterator[GraphNode]
// Python: Model.nodes: list[GraphNode]
// Python: Model.inputs: list[GraphValue]
// Python: Model.outputs: list[GraphValue]
// Python: Model.updates: list[GraphValue]
// Python: Model.constants: list[Tensor]
// Python: Model.save(self, path: str, names: Sequence[str] = ()) -> None
// Python: Model.__len__(self) -> int
// Python: Model.__iter__(self) -> Iterator[GraphNode]

py::list nodes_of(const Graph& graph) {
  py::list nodes;
  for (size_t i = 0; i < graph.size(); ++i) nodes.append(graph.node(i));
  return nodes;
}

Graph decomposed(const Graph& graph, const std::set<std::string>& kept) {
  return decompose_graph(graph, [&](std::string_view op_name) { return kept.contains(std::string(op_name)); });
}

Graph edited(const Graph& graph, const py::function& visit) {
  const auto edit = [&](size_t node, std::span<const Tensor> inputs) -> std::optional<std::vector<Tensor>> {
    py::tuple args(inputs.size() + 1);
    args[0] = graph.node(node);
    for (size_t i = 0; i < inputs.size(); ++i) args[i + 1] = py::cast(inputs[i]);
    const py::object found = visit(*args);
    if (found.is_none()) return std::nullopt;
    std::vector<Tensor> tensors;
    const auto take = [&](const py::handle one) {
      BP_CHECK(is_tensor(one.ptr()), TYPE, "edit: node ", node, " (", graph.node(node).op_name,
               "): found a value of type ", Py_TYPE(one.ptr())->tp_name,
               " as its replacement, expected None, a Tensor, or a list of Tensors. Fix: make one with "
               "backplane.asarray(value)");
      tensors.push_back(tensor_of(one.ptr()));
    };
    if (!py::isinstance<py::list>(found) && !py::isinstance<py::tuple>(found)) {
      take(found);
    } else {
      for (const py::handle one : found) take(one);
    }
    return tensors;
  };
  return edit_graph(graph, edit, user_line);
}

}  // namespace backplane::python
