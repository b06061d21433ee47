// What the types Graph and Model of Python have in common: their nodes, values and text, and editing.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <set>
#include <string>

#include "backplane/graph.hpp"
#include "backplane/graph_names.hpp"

namespace backplane::python {

// The graph with what `visit(node, *tensors)` gives in the place of each node: None leaves it, else a tensor, or a list
// of them. With the interpreter lock.
Graph edited(const Graph& graph, const pybind11::function& visit);

inline constexpr const char* kEditDoc =
    "edit($self, visit)\n--\n\n"
    "The graph with some calls replaced. visit(node, *tensors) is called for each, with the tensors "
    "that it reads. A returned tensor or list of tensors replaces the results of the call; None keeps them.";

// The graph with each node whose op is not among `kept`, by full names, replaced by the calls of its decomposition.
Graph decomposed(const Graph& graph, const std::set<std::string>& kept);

inline constexpr const char* kDecomposeDoc =
    "decompose($self, kept)\n--\n\n"
    "The graph with each node whose op is not among kept (full names, as \"bp::softmax\") replaced by the calls of its "
    "op's decomposition, repeatedly. Nodes without a decomposition stay, and so do nodes that draw random "
    "numbers, take a function, or have dynamic sizes.";

pybind11::list nodes_of(const Graph& graph);

template <class Object, class Read>
void bind_reading(pybind11::class_<Object>& type, Read read) {
  type.def("__str__", [read](const Object& o) { return read(o).text(); })
      .def(
          "save",
          [read](const Object& o, const std::string& path, const std::vector<std::string>& names) {
            names.empty() ? save_graph(read(o), path) : save_graph(name_constants(read(o), names), path);
          },
          pybind11::arg("path"), pybind11::arg("names") = std::vector<std::string>(),
          "save($self, path, names=())\n--\n\nWrites it to a safetensors file, which load reads. names: the names of "
          "the "
          "constants, in their order; \"\" for one that keeps its own.")
      .def("__len__", [read](const Object& o) { return read(o).size(); })
      .def("__iter__", [read](const Object& o) { return pybind11::iter(nodes_of(read(o))); })
      .def_property_readonly(
          "nodes", [read](const Object& o) { return nodes_of(read(o)); }, "The calls, in the order in which they run.")
      .def_property_readonly(
          "inputs", [read](const Object& o) { return read(o).inputs(); }, "The tensors that it takes.")
      .def_property_readonly(
          "outputs", [read](const Object& o) { return read(o).outputs(); }, "The tensors that it gives.")
      .def_property_readonly(
          "updates", [read](const Object& o) { return read(o).updates(); },
          "The tensors that a call changes in place: inputs, by their names, and constants.")
      .def_property_readonly(
          "constants", [read](const Object& o) { return read(o).constants(); },
          "The tensors from outside that it uses.");
}

}  // namespace backplane::python
