#include "graph/verify_functions.hpp"

#include "backplane/device.hpp"
#include "call/dispatch.hpp"
#include "graph/text/print.hpp"
#include "memory/devices/device.hpp"
#include "record/owned_value.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core::graph {

StatedFunction::StatedFunction(const Graph& graph, std::vector<int64_t> symbols)
    : ClosedFunction(graph.name), graph_(graph), symbols_(std::move(symbols)) {
  BP_CHECK(graph.draws.empty(), VALUE, "graph ", graph.name,
           ": draws random numbers, which a function of a node cannot do. Fix: make them an input of it");
}

std::vector<Tensor> StatedFunction::call(std::span<const Tensor>) {
  detail::fail(BP_ERROR_INTERNAL, "graph ", name(), ": is verified, not run");
}

std::vector<Tensor> StatedFunction::result_forms(std::span<const Tensor> args) const {
  BP_CHECK(args.size() == graph_.inputs().size(), TYPE, "graph ", graph_.name, ": takes ", graph_.inputs().size(),
           " tensors, is given ", args.size());
  std::vector<Shape> shapes;
  for (size_t i = 0; i < args.size(); ++i) {
    const Input& input = graph_.inputs()[i];
    const Value& v = graph_.value(input.value);
    const bp_device at = args[i].device();
    BP_CHECK(args[i].dtype() == v.dtype && at.backend == v.device.backend && at.ordinal == v.device.ordinal, DTYPE,
             "graph ", graph_.name, ": takes ", type_text(graph_, graph_.type(input.value)), " as input \"", input.name,
             "\", is given ", dtype_name(args[i].dtype()), " on ", device_name(at));
    shapes.push_back(args[i].shape());
  }
  const std::vector<int64_t> symbols = symbols_.empty() ? graph_.bind(shapes) : symbols_;
  const auto sizes_of = [&](ValueId value) {
    std::vector<int64_t> sizes;
    for (const Dim dim : graph_.dims(value)) sizes.push_back(graph_.sizes.evaluate(dim, symbols));
    return sizes;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    const std::vector<int64_t> sizes = sizes_of(graph_.inputs()[i].value);
    BP_CHECK(std::equal(sizes.begin(), sizes.end(), shapes[i].begin(), shapes[i].end()), SHAPE, "graph ", graph_.name,
             ": takes a tensor of shape ", shape_text(sizes), " as input \"", graph_.inputs()[i].name,
             "\", is given one of shape ", shape_text(shapes[i]));
  }
  std::vector<Tensor> results;
  for (const ValueId output : graph_.outputs) {
    const Value& v = graph_.value(output);
    const std::vector<int64_t> sizes = sizes_of(output);
    results.push_back(
        Tensor::adopt(new_handle(device_at(v.device), v.dtype, static_cast<int32_t>(sizes.size()), sizes.data())));
  }
  return results;
}

std::vector<Tensor> result_forms(const OpEntry& op, const bp_value* args, int32_t n_args) {
  std::vector<Tensor> tensors;
  const ClosedFunction* function = nullptr;
  for (int32_t i = 0; i < n_args; ++i) {
    const bp_arg_def& arg = op.record->args[static_cast<size_t>(i)];
    BP_CHECK(arg.type != BP_TYPE_TENSOR || args[i].tag == BP_TAG_TENSOR || args[i].tag == BP_TAG_TENSOR_LIST, TYPE,
             op.record->name, ": argument ", i + 1, " \"", arg.name, "\": found a number, expected a tensor");
    if (args[i].tag == BP_TAG_GRAPH) function = static_cast<const ClosedFunction*>(args[i].u.p);
    each_tensor(&args[i], 1, [&](TensorImpl* t) { tensors.push_back(Tensor::share(t)); });
  }
  const MakeFunction make = function_maker(op.record->def);
  if (!make) return function->result_forms(tensors);
  bp_value out{};
  const std::shared_ptr<GraphFunction> made = make({op, args, n_args, &out, 1, 0});
  return static_cast<const ClosedFunction&>(*made).result_forms(tensors);
}

}  // namespace backplane::core::graph
