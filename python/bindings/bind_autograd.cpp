// A Python hook is held by the tape and may be called and dropped on any thread, with or without the lock.
#include "bind_autograd.hpp"

#include <memory>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "scalars.hpp"
#include "tensor_caster.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

// A Python callable as a Hook; the shared pointer's deleter takes the lock for the last reference.
Hook make_hook(py::object function) {
  std::shared_ptr<PyObject> held(function.release().ptr(), [](PyObject* object) {
    if (interpreter_gone()) return;
    WithGil locked;
    Py_DECREF(object);
  });
  return [held](const Tensor& cotangent) -> Tensor {
    WithGil locked;
    PyRef argument = PyRef::steal(wrap_tensor(cotangent));
    PyRef result = PyRef::steal(argument ? PyObject_CallOneArg(held.get(), argument.get()) : nullptr);
    if (result && result.get() == Py_None) return {};
    if (result && is_tensor(result.get())) return tensor_of(result.get());
    if (result) {
      raise(BP_ERROR_TYPE, "register_hook: the hook returned a value of type %s, expected a Tensor or None",
            Py_TYPE(result.get())->tp_name);
    }
    throw keep_python_error();
  };
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                 std::vector<Tensor> cotangents, bool retain_graph, bool create_graph) {
  if (cotangents.empty()) cotangents.resize(outputs.size());
  BP_CHECK(cotangents.size() == outputs.size(), VALUE, "gradients: argument cotangents: found ", cotangents.size(),
           ", expected one per output, ", outputs.size());
  py::gil_scoped_release unlocked;
  return gradients(outputs, cotangents, inputs, {retain_graph, create_graph});
}

}  // namespace

void bind_autograd(py::module_& module) {
  module.def("grad_enabled", &grad_enabled, "Are calls of this thread recorded?");
  module.def("set_grad_enabled", &set_grad_enabled, py::arg("enabled"),
             "Switches recording on this thread on or off; returns the old setting.");
  module.def(
      "exportable", [](const Tensor& tensor, const char* who) { return exportable_tensor(tensor.get(), who); },
      py::arg("tensor"), py::arg("who"),
      "The tensor, or its primal value inside transforms; an error where another library would lose a derivative.");
  module.def("gradients", &gradients_of, py::arg("outputs"), py::arg("inputs"), py::arg("cotangents"),
             py::arg("retain_graph"), py::arg("create_graph"));
  module.def("add_hook", [](const Tensor& tensor, py::object function) {
    return add_hook(tensor, make_hook(std::move(function)));
  });
  module.def("remove_hook", &remove_hook);
  module.def("transforms_of", &transforms_of, py::arg("tensor"), "The transforms it belongs to, innermost first.");
  module.def("plain_value", &plain_value, py::arg("tensor"), py::arg("who"),
             "The primal value of a tensor inside transforms; an error where a batch has no single one.");
  module.def("bytes_per_node", &bytes_per_node, "Bytes that one recorded call takes.");
}

}  // namespace backplane::python
