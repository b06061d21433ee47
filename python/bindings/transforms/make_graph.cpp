// make_graph: the function that traces, and the type Graph.
#include <pybind11/stl.h>

#include "backplane/device.hpp"
#include "backplane/graph_picture.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_caster.hpp"
#include "bindings/transforms/dynamic_spec.hpp"
#include "bindings/transforms/graph_members.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

using Traced = std::shared_ptr<const TracedCall>;
struct GraphObject {
  Traced call;
};

struct MakeGraphOptions final : TransformOptions {
  std::unique_ptr<TransformOptions> clone() const override { return std::make_unique<MakeGraphOptions>(*this); }
  DynamicSpec dynamic;
};

// A graph's inputs are tensors in containers that are taken apart. What an object holds is a constant; of a container
// that would be a surprise.
bool check_containers(const CallInputs& inputs) {
  for (size_t i = 0; i < inputs.trees.leaves.size(); ++i) {
    PyObject* leaf = inputs.trees.leaves[i].get();
    if (!is_container(leaf) || !leads_to_tensor(leaf, [](const Tensor&) { return true; })) continue;
    const PyRef kind = found_kind(leaf);
    if (kind)
      raise(BP_ERROR_TYPE,
            "%s: %s: found %U, whose tensors would be constants of the graph, expected registered containers. "
            "Fix: pass a dict, a list or a tuple of them, or register the class with tree.register",
            inputs.call.name, input_name(inputs, i).c_str(), kind.get());
    return false;
  }
  return true;
}

PyObject* trace_body(const TransformCall& call, const TransformOptions& options) {
  CallInputs inputs(call);
  if (!inputs.read() || !check_containers(inputs)) return nullptr;
  Traced traced = TracedCall::trace(inputs, {}, &static_cast<const MakeGraphOptions&>(options).dynamic);
  return traced ? py::cast(GraphObject{std::move(traced)}).release().ptr() : nullptr;
}

py::object call_graph_object(const GraphObject& self, const py::args& args, const py::kwargs& kwargs) {
  use_context_settings();
  std::vector<PyObject*> all;
  for (const py::handle argument : args) all.push_back(argument.ptr());
  py::tuple names(kwargs.size());
  size_t k = 0;
  for (const auto& [name, argument] : kwargs) {
    names[k++] = name;
    all.push_back(argument.ptr());
  }
  const TransformCall call{"graph", Py_None, all.data(), static_cast<Py_ssize_t>(args.size()),
                           kwargs.size() ? names.ptr() : nullptr};
  CallInputs inputs(call);
  if (!inputs.read()) throw py::error_already_set();
  std::string why;
  const int fits = self.call->fits(inputs, &why);
  if (fits < 0) throw py::error_already_set();
  if (fits == 0) throw Error(BP_ERROR_VALUE, "graph: the call differs from the traced one: " + why);
  PyObject* result = self.call->run(inputs);
  if (!result || !self.call->repeat_effects(inputs)) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

std::vector<Tensor> tensors_of(const py::args& args) {
  std::vector<Tensor> tensors;
  for (const py::handle argument : args) tensors.push_back(argument.cast<Tensor>());
  return tensors;
}

std::string dot_of(const GraphObject& self, const py::args& args, const std::string& color) {
  static constexpr std::pair<std::string_view, GraphColors> kColors[] = {
      {"backend", GraphColors::kBackend}, {"bytes", GraphColors::kBytes}, {"flops", GraphColors::kFlops}};
  for (const auto& [name, colors] : kColors)
    if (name == color) return graph_dot(self.call->graph(), tensors_of(args), colors);
  throw Error(BP_ERROR_VALUE,
              "dot: argument color: found \"" + color + "\", expected \"backend\", \"bytes\" or \"flops\"");
}

py::list costs_of(const GraphObject& self, const py::args& args) {
  py::list costs;
  for (const NodeCost& cost : graph_costs(self.call->graph(), tensors_of(args)))
    costs.append(py::make_tuple(cost.op_name, cost.flops ? py::object(py::int_(*cost.flops)) : py::none(), cost.bytes));
  return costs;
}

constexpr Declared kCallDoc = R"(Graph.__call__(self, *args: Any, **kwargs: Any) -> Any
--

Runs the graph. The arguments must be like the traced arguments.)";

constexpr Declared kExplainDoc =
    R"(Graph.explain(self, *inputs: Tensor, memory_budget: int | None = None, donated: Sequence[int] = ()) -> str
--

Lists which backend runs each node for inputs of these sizes (one tensor each), and how memory is reused. donated: the
numbers of the inputs whose memory may be overwritten with results.)";

constexpr Declared kDotDoc = R"(Graph.dot(self, *inputs: Tensor, color: str = 'backend') -> str
--

A Graphviz text that shows how the graph runs for inputs of these sizes (one tensor each). color: "backend", "bytes" or "flops".)";

constexpr Declared kCostsDoc = R"(Graph.costs(self, *inputs: Tensor) -> list[tuple[str, int | None, int]]
--

For each node, as it runs for inputs of these sizes (one tensor each): its op, its number of operations (None if unknown)
and the bytes that it reads and writes.)";

std::string type_text(const Graph::Value& value) {
  std::string text = std::string(dtype_name(value.dtype)) + "[";
  for (size_t i = 0; i < value.dims.size(); ++i) text += (i ? ", " : "") + value.dims[i];
  return text + "]";
}

py::object edit(const GraphObject& self, const py::function& visit) {
  return py::cast(GraphObject{self.call->with_graph(edited(self.call->graph(), visit))});
}

py::object decompose(const GraphObject& self, const std::set<std::string>& kept) {
  return py::cast(GraphObject{self.call->with_graph(decomposed(self.call->graph(), kept))});
}

}  // namespace

PyObject* make_graph_function(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"fun", "dynamic", nullptr};
  PyObject *function = nullptr, *dynamic = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:make_graph", const_cast<char**>(keywords), &function, &dynamic))
    return nullptr;
  auto options = std::make_unique<MakeGraphOptions>();
  if (!options->dynamic.read("make_graph", dynamic)) return nullptr;
  return make_transformed("make_graph", function, trace_body, std::move(options));
}

void bind_graph(py::module_& module) {
  py::options options;
  options.disable_function_signatures();
  py::class_<Graph::Value>(module, "GraphValue", "A tensor of a graph: its name, dtype, and dims.")
      .def_readonly("name", &Graph::Value::name, "str: Its name in the text.")
      .def_property_readonly(
          "dtype", [](const Graph::Value& v) { return std::string(dtype_name(v.dtype)); },
          "str: The name of its dtype.")
      .def_readonly("dims", &Graph::Value::dims, "list[str]: Its sizes, numbers or names.")
      .def("__repr__", [](const Graph::Value& v) { return v.name + ": " + type_text(v); });
  py::class_<Graph::Node>(module, "GraphNode", "A call of an op in a graph.")
      .def_readonly("op", &Graph::Node::op_name, "str: The full name of the op.")
      .def_readonly("inputs", &Graph::Node::inputs, "list[str]: The names of the tensors that it takes.")
      .def_property_readonly(
          "arguments",
          [](const Graph::Node& n) {
            py::dict arguments;
            for (const auto& [name, text] : n.arguments) arguments[py::str(name)] = text;
            return arguments;
          },
          "dict[str, str]: Its arguments that differ from their defaults, as the graph's text has them.")
      .def_readonly("results", &Graph::Node::results, "list[GraphValue]: What it makes.")
      .def_property_readonly(
          "file", [](const Graph::Node& n) { return n.line.file; }, "str: The user's file that called it.")
      .def_property_readonly(
          "function", [](const Graph::Node& n) { return n.line.function; }, "str: The function there.")
      .def_property_readonly(
          "line", [](const Graph::Node& n) { return n.line.line; }, "int: The line there.")
      .def("__repr__", [](const Graph::Node& n) {
        std::string text = "<GraphNode " + n.op_name + "(";
        for (const auto& [name, argument] : n.arguments)
          text += (text.back() == '(' ? "" : ", ") + name + "=" + argument;
        return text + ")>";
      });
  py::class_<GraphObject> graph_class(module, "Graph",
                                      "The operations of a function on tensors, as nodes that are calls of ops.");
  graph_class.def("__call__", &call_graph_object, kCallDoc.text)
      .def("__copy__", [](const py::object& self) { return self; })
      .def("__deepcopy__", [](const py::object& self, const py::object&) { return self; })
      .def("__repr__",
           [](const GraphObject& g) { return "<Graph of " + std::to_string(g.call->graph().size()) + " nodes>"; })
      .def(
          "explain",
          [](const GraphObject& g, const py::args& args, std::optional<uint64_t> memory_budget,
             const std::vector<size_t>& donated) {
            std::vector<bool> given(args.size(), false);
            for (const size_t i : donated)
              if (i < given.size()) given[i] = true;
            return g.call->graph().with_options({given, memory_budget}).explain(tensors_of(args));
          },
          py::arg("memory_budget") = py::none(), py::arg("donated") = std::vector<size_t>(), kExplainDoc.text)
      .def("dot", &dot_of, py::arg("color") = "backend", kDotDoc.text)
      .def("costs", &costs_of, kCostsDoc.text)
      // Python: Graph.edit(self, visit: Callable[..., Tensor | Sequence[Tensor] | None]) -> Graph
      .def("edit", &edit, py::arg("visit"), kEditDoc)
      // Python: Graph.decompose(self, kept: set[str]) -> Graph
      .def("decompose", &decompose, py::arg("kept"), kDecomposeDoc);
  bind_reading(graph_class, [](const GraphObject& g) -> const Graph& { return g.call->graph(); });
}

}  // namespace backplane::python
