#include "cli/run_graph.hpp"

#include <cstdio>
#include <optional>

#include "backplane/device.hpp"
#include "backplane/graph.hpp"
#include "backplane/plugins.hpp"
#include "cli/npy.hpp"

namespace backplane::cli {
namespace {

std::string described(const Graph::Value& value) {
  std::string text = value.name + ": " + dtype_name(value.dtype) + "[";
  for (size_t i = 0; i < value.dims.size(); ++i) text += (i ? ", " : "") + value.dims[i];
  return text + "] on " + device_name(value.device);
}

std::vector<Tensor> read_inputs(const Graph& graph, const RunOptions& options) {
  const std::vector<Graph::Value> expected = graph.inputs();
  std::string all;
  for (const Graph::Value& input : expected) all += "\n  " + described(input);
  BP_CHECK(options.inputs.size() == expected.size(), VALUE, options.model, ": takes ", expected.size(),
           " inputs, found ", options.inputs.size(), ". Fix: give --input FILE.npy for each of", all);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < expected.size(); ++i)
    inputs.push_back(read_npy(options.inputs[i], expected[i].dtype, expected[i].device));
  return inputs;
}

}  // namespace

int run_graph(const RunOptions& options) {
  for (const std::string& plugin : options.plugins) load_plugin(plugin);
  std::optional<bp_device> device;
  if (!options.device.empty()) device = parse_device(options.device);
  const Graph graph = load_graph(options.model, device);
  const std::vector<Tensor> inputs = read_inputs(graph, options);
  if (options.assignment) std::fputs(graph.explain(inputs).c_str(), stdout);
  std::vector<bp_generator_state> states(graph.generators().size());
  std::vector<bp_generator_state*> generators;
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].key = options.seed + i;
    generators.push_back(&states[i]);
  }
  const std::vector<Tensor> results = graph.call(inputs, generators);
  BP_CHECK(options.outputs.size() <= results.size(), VALUE, options.model, ": gives ", results.size(),
           " results, found ", options.outputs.size(), " files for them");
  const std::vector<Graph::Value> outputs = graph.outputs();
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < options.outputs.size())
      write_npy(options.outputs[i], results[i]);
    else
      std::printf("%s\n", described(outputs[i]).c_str());
  }
  return 0;
}

}  // namespace backplane::cli
