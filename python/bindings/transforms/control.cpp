// Control flow from Python: bodies are traced, and the op is called with their graphs
// (backplane/_transforms/_control.py).
#include <pybind11/stl.h>

#include "backplane/graph.hpp"
#include "backplane/operand.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/ops/generator.hpp"
#include "bindings/tensor/tensor_caster.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

// A callable from a list of tensors to a list of tensors.
Function function_of(py::object callable) {
  return [callable = std::move(callable)](std::span<const Tensor> tensors) {
    const WithGil locked;
    py::list list;
    for (const Tensor& t : tensors) list.append(py::cast(t));
    PyRef returned = PyRef::steal(PyObject_CallOneArg(callable.ptr(), list.ptr()));
    if (!returned) throw keep_python_error();
    return py::reinterpret_borrow<py::object>(returned.get()).cast<std::vector<Tensor>>();
  };
}

constexpr size_t kRows = 1;  // which group is gone through, of an op that goes through one

// `name`: the function that the user called. `groups`: what the op's tensor arguments are; the last is a list, which
// what the bodies use from outside joins. `draws`: may they draw random numbers, "none", "once" or "per row".
std::vector<Tensor> call_control(const std::string& name, const std::string& op,
                                 const std::vector<std::pair<py::object, std::vector<Tensor>>>& of,
                                 const std::vector<py::object>& groups, std::pair<size_t, size_t> rows, int64_t length,
                                 bool reverse, const std::string& draws) {
  use_context_settings();
  const OpHandle handle = detail::op_named(op.c_str());
  const auto may_draw = draws == "once"      ? BodyOf::Draws::kOnce
                        : draws == "per row" ? BodyOf::Draws::kPerRow
                                             : BodyOf::Draws::kNone;
  std::vector<BodyOf> functions;
  for (const auto& [callable, examples] : of)
    functions.push_back({name.c_str(), function_of(callable), examples, rows.first, rows.second, may_draw, length});
  std::optional<GeneratorNotes> notes;  // a Generator that the function makes lives as long as it is asked for
  if (!GeneratorNotes::is_noting()) notes.emplace();
  const Bodies bodies = make_bodies(functions, {}, user_line, GeneratorNotes::is_sole_owner);
  std::vector<std::vector<Tensor>> lists;
  for (const py::object& group : groups)
    lists.push_back(py::isinstance<py::list>(group) ? group.cast<std::vector<Tensor>>()
                                                    : std::vector<Tensor>{group.cast<Tensor>()});
  lists.back().insert(lists.back().end(), bodies.lifted.begin(), bodies.lifted.end());
  if (!bodies.rows.empty()) lists[kRows].insert(lists[kRows].end(), bodies.rows.begin(), bodies.rows.end());
  std::vector<bp_value> args;
  for (const auto& function : bodies.functions) args.push_back(value(*function));
  for (size_t k = 0; k < groups.size(); ++k)
    args.push_back(py::isinstance<py::list>(groups[k]) ? detail::borrow(Tensors(lists[k])) : value(lists[k][0]));
  if (args.size() < op_def(handle).args.count) {
    args.push_back(value(length));
    args.push_back(value(reverse));
  }
  bp_value out{};
  bp_status status;
  {
    WithoutGil unlocked;  // however small a step is, of the number of steps nothing is known
    status = call_packed(handle, args.data(), static_cast<int32_t>(args.size()), &out, 1);
  }
  if (status != BP_OK) throw_last_error(status);
  return take_list(out);
}

// (a function of lists of tensors, what the callable uses from outside): the function takes these behind the arguments.
py::tuple closed_function(const std::string& name, py::object callable, const std::vector<Tensor>& examples) {
  use_context_settings();
  const BodyOf of[] = {{name.c_str(), function_of(std::move(callable)), examples}};
  const Bodies bodies = make_bodies(of, {}, user_line);
  const auto call = [function = bodies.functions[0]](const std::vector<Tensor>& args) { return function->call(args); };
  return py::make_tuple(py::cpp_function(call), bodies.lifted);
}

}  // namespace

void bind_control(py::module_& module) {
  module.def("closed_function", &closed_function, py::arg("name"), py::arg("callable"), py::arg("examples"),
             "A callable over lists of tensors, traced with these examples, as a function without captured tensors.");
  module.def("call_control", &call_control, py::arg("name"), py::arg("op"), py::arg("bodies"), py::arg("groups"),
             py::arg("rows") = std::pair<size_t, size_t>{0, 0}, py::arg("length") = 0, py::arg("reverse") = false,
             py::arg("draws") = "none",
             "Calls an op of control flow for the function `name`: bodies as (callable over lists of tensors, "
             "examples). `rows` (first and "
             "number) are the examples that stand for an element along axis 0.");
}

}  // namespace backplane::python
