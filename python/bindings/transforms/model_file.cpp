// Models: graphs from files and texts, as callables over tensors.
#include <algorithm>
#include <map>

#include "backplane/device.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_caster.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/transforms/graph_members.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

struct Model {
  Graph graph;
  std::string source = "Model";  // what errors name: the file
};

std::optional<bp_device> device_or_none(const py::object& device) {
  if (device.is_none()) return {};
  bp_device found{};
  if (read_device(device.ptr(), &found) < 0) throw py::error_already_set();
  return found;
}

Model load_model(const std::string& path, const py::object& device) {
  const std::optional<bp_device> where = device_or_none(device);
  py::gil_scoped_release released;
  return {load_graph(path, where), path};
}

Model parse_model(const std::string& text, const std::map<std::string, Tensor>& constants, const py::object& device) {
  const auto find = [&](const std::string& name) {
    const auto known = constants.find(name);
    return known == constants.end() ? Tensor() : known->second;
  };
  const std::optional<bp_device> where = device_or_none(device);
  py::gil_scoped_release released;
  return {parse_graph(text, find, where)};
}

// Arrays of other libraries are converted as by asarray. A container is refused, because a model's inputs are flat.
Tensor input_of(const py::handle& argument, const std::string& input) {
  if (is_tensor(argument.ptr())) return tensor_of(argument.ptr());
  BP_CHECK(is_foreign_array(argument.ptr()), TYPE, "Model: input ", input, ": found a value of type ",
           Py_TYPE(argument.ptr())->tp_name,
           ", expected a Tensor. Fix: give one per input, in the order of model.inputs, for a container its tensors");
  PyRef made = PyRef::steal(tensor_of_data(argument.ptr()));
  if (!made) throw py::error_already_set();
  return tensor_of(made.get());
}

// The inputs behind those by position, by their names.
void add_named_inputs(const Graph& graph, const py::kwargs& named, std::vector<Tensor>& inputs) {
  const std::vector<Graph::Value> expected = graph.inputs();
  const size_t n_placed = inputs.size();
  inputs.resize(std::max(expected.size(), n_placed));
  for (const auto& [key, argument] : named) {
    const auto name = key.cast<std::string>();
    size_t i = 0;
    while (i < expected.size() && (inputs[i] || expected[i].name != name)) ++i;
    if (i < expected.size()) {
      inputs[i] = input_of(argument, name);
      continue;
    }
    std::string left;
    for (size_t k = n_placed; k < expected.size(); ++k) left += (left.empty() ? "" : ", ") + expected[k].name;
    BP_CHECK(false, TYPE, "Model: found an argument ", name, "=, expected the inputs by position or by name",
             left.empty() ? "; all have been given by position" : ": ", left, ". Fix: see model.inputs");
  }
  for (size_t i = n_placed; i < inputs.size(); ++i)
    BP_CHECK(inputs[i], TYPE, "Model: input ", i, " \"", expected[i].name, "\" is missing. Fix: give a tensor for it");
}

std::vector<Tensor> inputs_of(const Graph& graph, const py::args& args, const py::kwargs& named) {
  std::vector<Tensor> inputs;
  for (const py::handle argument : args) inputs.push_back(input_of(argument, std::to_string(inputs.size())));
  if (!named.empty()) add_named_inputs(graph, named, inputs);
  return inputs;
}

// Runs `call`, whose errors name the model where a graph's name the function that has made it.
template <class Call>
auto naming(const Model& model, Call&& call) {
  try {
    return call();
  } catch (const Error& error) {
    const std::string text = error.what();
    const size_t end = text.find(": ");
    if (!text.starts_with("graph ") || end == std::string::npos) throw;
    throw Error(error.code(), model.source + text.substr(end));
  }
}

py::tuple call_model(const Model& model, const py::args& args, std::optional<uint64_t> seed, const py::kwargs& named) {
  use_context_settings();
  const std::vector<Tensor> inputs = inputs_of(model.graph, args, named);
  std::vector<bp_generator_state> states(model.graph.generators().size());
  std::vector<bp_generator_state*> generators;
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].key = seed.value_or(0) + i;
    generators.push_back(seed ? &states[i] : &generator_state(default_generator()));
  }
  std::vector<Tensor> results;
  if (generators.empty() || seed) {
    py::gil_scoped_release released;
    results = naming(model, [&] { return model.graph.call(inputs, generators); });
  } else {  // the lock guards the generator
    results = naming(model, [&] { return model.graph.call(inputs, generators); });
  }
  py::tuple given(results.size());
  for (size_t i = 0; i < results.size(); ++i) given[i] = py::cast(std::move(results[i]));
  return given;
}

constexpr Declared kModelCallDoc =
    R"(Model.__call__(self, *inputs: Tensor, seed: int | None = None, **named: Tensor) -> tuple[Tensor, ...]
--

Runs the model and returns a tuple of results. Takes one tensor per input, in the order of inputs or by name. seed: with a seed,
each call draws the same random numbers; without one, each call draws new numbers from the default generator.)";

constexpr Declared kModelExplainDoc = R"(Model.explain(self, *inputs: Tensor, **named: Tensor) -> str
--

Lists which backend runs each node for inputs of these sizes, and how memory is reused.)";

}  // namespace

void bind_model_file(py::module_& module) {
  py::options options;
  options.disable_function_signatures();
  py::class_<Model> model(module, "Model", "A graph from a file or a text.");
  model.def("__call__", &call_model, py::kw_only(), py::arg("seed") = py::none(), kModelCallDoc.text)
      .def("__copy__", [](const py::object& self) { return self; })
      .def("__deepcopy__", [](const py::object& self, const py::object&) { return self; })
      .def("__repr__", [](const Model& m) { return "<Model of " + std::to_string(m.graph.size()) + " nodes>"; })
      .def(
          "explain",
          [](const Model& m, const py::args& args, const py::kwargs& named) {
            return naming(m, [&] { return m.graph.explain(inputs_of(m.graph, args, named)); });
          },
          kModelExplainDoc.text)
      // Python: Model.edit(self, visit: Callable[..., Tensor | Sequence[Tensor] | None]) -> Model
      .def(
          "edit",
          [](const Model& m, const py::function& visit) {
            return Model{edited(m.graph, visit), m.source};
          },
          py::arg("visit"), kEditDoc)
      // Python: Model.decompose(self, kept: set[str]) -> Model
      .def(
          "decompose",
          [](const Model& m, const std::set<std::string>& kept) {
            return Model{decomposed(m.graph, kept), m.source};
          },
          py::arg("kept"), kDecomposeDoc);
  bind_reading(model, [](const Model& m) -> const Graph& { return m.graph; });
  module.def("load_model", &load_model, py::arg("path"), py::arg("device") = py::none());
  module.def("parse_model", &parse_model, py::arg("text"), py::arg("constants"), py::arg("device") = py::none());
}

}  // namespace backplane::python
