// Differentiation as functions of the module: settings, gradients, hooks.
#include "bindings/transforms/bind_autograd.hpp"

#include <atomic>

#include "backplane/autograd.hpp"
#include "backplane/lost_elements.hpp"
#include "backplane/traced_tensors.hpp"
#include "backplane/transforms.hpp"
#include "bindings/tensor/owned_objects.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/tensor_caster.hpp"
#include "bindings/transforms/tape.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

std::vector<Tensor> gradients_of(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                 std::vector<Tensor> cotangents, bool retain_graph, bool create_graph) {
  use_context_settings();
  if (cotangents.empty()) cotangents.resize(outputs.size());
  BP_CHECK(cotangents.size() == outputs.size(), VALUE, "gradients: argument cotangents: found ", cotangents.size(),
           ", expected one per output, ", outputs.size());
  if (every_call_taken()) return gradients_in_trace(outputs, cotangents, inputs, retain_graph, create_graph);
  WithoutGil unlocked;
  return gradients(outputs, cotangents, inputs, {retain_graph, create_graph});
}

// A trace has the hooks of leaves in it, so it holds until one is added or removed.
std::atomic<uint64_t> leaf_hook_changes{0};

void note_leaf_hook(const Tensor& tensor) {
  if (is_transformed(tensor) || !is_leaf(tensor)) return;
  BP_CHECK(
      !every_call_taken(), VALUE,
      "register_hook: a traced function would add the hook of this tensor from outside only once. Fix: add it before "
      "the call, or change the gradient (p.grad) after backward()");
  ++leaf_hook_changes;
}

}  // namespace

void bind_autograd(py::module_& module) {
  module.def(
      "grad_enabled",
      [] {
        use_context_settings();
        note_grad_mode_read();
        return grad_enabled() && recorded_outside();
      },
      "Are calls of this thread recorded?");
  module.def("recording", [] {
    use_context_settings();
    return grad_enabled();
  });
  module.def(
      "exportable", [](const Tensor& tensor, const char* who) { return exportable_tensor(tensor.get(), who); },
      py::arg("tensor"), py::arg("who"),
      "The tensor, or its primal value inside transforms; an error where another library would lose a derivative.");
  module.def(
      "readable", [](const Tensor& tensor, const char* who) { return readable_tensor(tensor.get(), who); },
      py::arg("tensor"), py::arg("who"),
      "The tensor, or its primal value inside transforms; an error where a transform differentiates it.");
  module.def("gradients", &gradients_of, py::arg("outputs"), py::arg("inputs"), py::arg("cotangents"),
             py::arg("retain_graph"), py::arg("create_graph"));
  module.def("add_hook", [](const py::object& tensor, const py::object& function) {
    note_leaf_hook(tensor.cast<Tensor>());
    const uint64_t id = add_hook(tensor.cast<Tensor>(), PythonHook(PyRef::borrow(function.ptr())));
    track_tensor(tensor.ptr());
    return id;
  });
  module.def("remove_hook", [](const Tensor& tensor, uint64_t id) {
    if (is_leaf(tensor)) ++leaf_hook_changes;
    return remove_hook(tensor, id);
  });
  module.def(
      "leaf_hook_changes", [] { return leaf_hook_changes.load(); },
      "How often hooks of leaves were added and removed.");
  module.def("transforms_of", &transforms_of, py::arg("tensor"), "The transforms it belongs to, innermost first.");
  module.def(
      "has_values", [](const Tensor& x) { return !is_transformed(x) && !every_call_taken(); }, py::arg("tensor"),
      "Can values computed from the tensor be read at once, without a transform?");
  module.def("have_one_base", &have_one_base, py::arg("tensor"), py::arg("other"),
             "Are the two views of one tensor, or one a view of the other, as transforms know them?");
  module.def("may_share_outside_memory", &may_share_outside_memory, py::arg("tensor"),
             "In a trace: is the tensor an argument, a tensor from outside, or maybe a view of one?");
  module.def("has_lost_elements", &has_lost_elements, py::arg("tensor"),
             "Was the tensor's device reset since, or did the work that wrote it fail?");
  module.def("value_beside", &value_beside, py::arg("tensor"), py::arg("other"), py::arg("who"),
             "The tensor without the transforms that began later than those of other, and than a trace around both.");
  module.def("plain_value", &plain_value, py::arg("tensor"), py::arg("who"),
             "The primal value of a tensor inside transforms; an error where a batch has no single one.");
  module.def("bytes_per_node", &bytes_per_node, "Bytes that one recorded call takes.");
}

}  // namespace backplane::python
