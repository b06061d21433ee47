// The tape of a traced function: a TapeScope around the function's calls, and the gradients that its tensors have while
// the function runs. Python makes one for each trace (backplane/_graphs/_compiled_tape.py).
//
// The gradients live here and not in the tensors, which outlive the trace. The gradients of before the call are
// arguments of the graph, and the gradients of after the call are its results.
#include "bindings/transforms/tape.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/tensor_caster.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

class Tape;
thread_local constinit Tape* innermost_tape = nullptr;

// One object per trace. Before a function has called backward() the tape is only offered: the first use of one raises
// what `again` makes, which ends the trace, and the function is traced with a tape.
class Tape {
 public:
  // tensors: of the state. gradients: what they hold, or None where the function was not seen to ask.
  Tape(std::vector<Tensor> tensors, std::optional<std::vector<Tensor>> gradients, bool offered, py::object again)
      : tensors_(std::move(tensors)), n_state_(tensors_.size()), offered_(offered), again_(std::move(again)) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      place_of_.emplace(tensors_[i].get(), i);
      gradients_.push_back({gradients ? std::optional<Tensor>((*gradients)[i]) : std::nullopt, false});
    }
  }

  void enter() {
    if (!offered_) {
      for (const Tensor& tensor : tensors_)
        if (requires_grad(tensor) && backplane::is_leaf(tensor)) leaves_.push_back(tensor);
      scope_ = std::make_unique<TapeScope>(leaves_);
    }
    depth_ = transform_depth();
    outer_ = std::exchange(innermost_tape, this);
  }

  void leave() {
    innermost_tape = outer_;
    scope_.reset();
    for (const auto& [place, wanted] : flags_before_) backplane::set_requires_grad(tensors_[place], wanted);
  }

  // The tape whose function this thread runs, and not a function inside of it that a transform runs.
  static Tape* now() {
    return innermost_tape && innermost_tape->depth_ == transform_depth() ? innermost_tape : nullptr;
  }

  // Sets the exception that ends the trace; `what` it wants: "tape", or "gradients" of before the call.
  void want(const char* what) const { PyErr_SetObject(again_.ptr(), py::str(what).ptr()); }
  bool is_offered() const { return offered_; }
  TapeScope& scope() { return *scope_; }

  struct Gradient {
    std::optional<Tensor> value;  // an empty tensor is None; nothing: unknown
    bool touched;
  };
  Gradient* gradient_of(const Tensor& tensor) {
    const auto place = place_of_.find(tensor.get());
    return place == place_of_.end() ? nullptr : &gradients_[place->second];
  }

  bool has_own_gradient(const Tensor& tensor) const {
    const auto place = place_of_.find(tensor.get());
    if (place == place_of_.end() || place->second < n_state_) return false;
    const std::optional<Tensor>& gradient = gradients_[place->second].value;
    return gradient && *gradient;
  }

  bool is_leaf(const Tensor& tensor) const {
    return std::any_of(leaves_.begin(), leaves_.end(), [&](const Tensor& leaf) { return leaf.get() == tensor.get(); });
  }

  // Of a tensor of the state the flag is put back when the trace ends: each call sets it anew. A tensor that the
  // function made is a leaf of its own.
  void set_requires_grad(const Tensor& tensor, bool wanted) {
    scope_->follow(tensor, wanted);
    if (!is_transformed(tensor)) {
      const size_t place = place_of_.at(tensor.get());
      flags_before_.try_emplace(place, requires_grad(tensor));
      backplane::set_requires_grad(tensor, wanted);
    } else if (place_of_.try_emplace(tensor.get(), tensors_.size()).second) {
      tensors_.push_back(tensor);
      gradients_.push_back({Tensor(), false});
    }
    std::erase_if(leaves_, [&](const Tensor& leaf) { return leaf.get() == tensor.get(); });
    if (wanted) leaves_.push_back(tensor);
  }

  // (position, flag) of the tensors of the state whose requires_grad the function has set.
  py::tuple flags() const {
    py::list all;
    for (const auto& [place, wanted] : flags_before_) all.append(py::make_tuple(place, requires_grad(tensors_[place])));
    return py::tuple(all);
  }

  bool backward(const Tensor& root, const Tensor& cotangent, bool retain_graph) {
    std::vector<Tensor> found = scope_->gradients({&root, 1}, {&cotangent, 1}, leaves_, retain_graph);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) continue;
      Gradient& gradient = *gradient_of(leaves_[i]);
      if (!gradient.value) return want("gradients"), false;
      gradient.touched = true;
      if (!*gradient.value) {
        gradient.value = std::move(found[i]);
        continue;
      }
      const PyRef before = PyRef::steal(wrap_tensor(*gradient.value)), more = PyRef::steal(wrap_tensor(found[i]));
      const PyRef sum = PyRef::steal(before && more ? PyNumber_InPlaceAdd(before.get(), more.get()) : nullptr);
      if (!sum) return false;
      gradient.value = tensor_of(sum.get());
    }
    return true;
  }

  // Of each tensor of the state: False where its gradient is still that of before the call, else the new one, or None.
  py::list gradients() const {
    py::list all;
    for (size_t i = 0; i < n_state_; ++i) {
      const Gradient& gradient = gradients_[i];
      if (!gradient.touched)
        all.append(py::bool_(false));
      else
        all.append(*gradient.value ? py::cast(scope_->outside(*gradient.value)) : py::none());
    }
    return all;
  }

 private:
  std::vector<Tensor> tensors_;  // of the state, and behind them those that the function made leaves
  const size_t n_state_;
  std::unordered_map<const bp_tensor*, size_t> place_of_;
  std::vector<Gradient> gradients_;
  std::vector<Tensor> leaves_;
  std::map<size_t, bool> flags_before_;
  const bool offered_;
  py::object again_;
  std::unique_ptr<TapeScope> scope_;
  uint32_t depth_ = 0;
  Tape* outer_ = nullptr;
};

// The tape, or nullptr with an error set.
Tape* tape_for(const char* who, const char* fix) {
  Tape* const tape = Tape::now();
  if (!tape) {
    raise(BP_ERROR_VALUE, "%s: a function is traced here, and its tensors have no history. Fix: %s", who, fix);
    return nullptr;
  }
  if (!tape->is_offered()) return tape;
  tape->want("tape");
  return nullptr;
}

constexpr const char* kFix =
    "name the model and the optimiser in compile(state=), and call it directly in that function; or use "
    "value_and_grad(loss)(weights) here";

void check_not_recorded(const char* who, bool create_graph) {
  BP_CHECK(
      !create_graph, VALUE, who,
      ": argument create_graph: found True inside of a compiled function, whose backward pass is not recorded. Fix: "
      "use grad or value_and_grad, whose results can be differentiated");
}

}  // namespace

PyObject* backward_in_trace(const Tensor& root, const Tensor& cotangent, bool retain_graph, bool create_graph) {
  Tape* const tape = tape_for("backward", kFix);
  if (!tape) return nullptr;
  return guarded([&]() -> PyObject* {
    check_not_recorded("backward", create_graph);
    return tape->backward(root, cotangent, retain_graph) ? Py_NewRef(Py_None) : nullptr;
  });
}

std::vector<Tensor> gradients_in_trace(const std::vector<Tensor>& roots, const std::vector<Tensor>& cotangents,
                                       const std::vector<Tensor>& inputs, bool retain_graph, bool create_graph) {
  Tape* const tape = tape_for("gradients", kFix);
  if (!tape) throw py::error_already_set();
  check_not_recorded("gradients", create_graph);
  return tape->scope().gradients(roots, cotangents, inputs, retain_graph);
}

bool is_leaf_in_trace(const Tensor& tensor) {
  const Tape* const tape = Tape::now();
  return tape && tape->is_leaf(tensor);
}

int put_requires_grad_in_trace(const Tensor& tensor, bool wanted) {
  if (requires_grad(tensor) == wanted || (wanted && is_leaf_in_trace(tensor))) return 0;
  Tape* const tape = tape_for("requires_grad", "set it outside of the function");
  if (!tape) return -1;
  return guarded([&] {
    BP_CHECK(
        is_transformed(tensor) || tape->gradient_of(tensor), VALUE,
        "requires_grad: the tensor is not part of the state, and a traced function would set it only once. Fix: set "
        "it outside of the function");
    tape->set_requires_grad(tensor, wanted);
    return 0;
  });
}

PyObject* grad_in_trace(const Tensor& tensor) {
  Tape* const tape =
      tape_for("grad",
               "name the model and the optimiser in compile(state=); or pass the gradients as arguments, "
               "f(parameters, [p.grad for p in parameters])");
  if (!tape) return nullptr;
  Tape::Gradient* const gradient = tape->gradient_of(tensor);
  if (!gradient && is_transformed(tensor) && requires_grad(tensor)) return Py_NewRef(Py_None);  // a result keeps none
  if (!gradient)
    return raise(BP_ERROR_VALUE,
                 "grad: the tensor is not part of the state, and a traced function would read its gradient only once. "
                 "Fix: add it, or the module that it belongs to, to state=");
  if (!gradient->value) return tape->want("gradients"), nullptr;
  return guarded([&] { return *gradient->value ? wrap_tensor(*gradient->value) : Py_NewRef(Py_None); });
}

int put_grad_in_trace(const Tensor& tensor, const Tensor& grad) {
  Tape* const tape = tape_for("grad", "name the model and the optimiser in compile(state=); or set it outside");
  if (!tape) return -1;
  return guarded([&] {
    Tape::Gradient* const gradient = tape->gradient_of(tensor);
    BP_CHECK(
        gradient, VALUE,
        "grad: the tensor is not part of the state, and would keep a tensor of a trace. Fix: add it, or the module "
        "that it belongs to, to state=");
    if (grad) check_grad_of(tensor, grad);
    *gradient = {grad, true};
    return 0;
  });
}

void bind_tape(py::module_& module) {
  py::class_<Tape>(module, "Tape")
      .def(py::init<std::vector<Tensor>, std::optional<std::vector<Tensor>>, bool, py::object>(), py::arg("tensors"),
           py::arg("gradients"), py::arg("offered"), py::arg("again"))
      .def("enter", &Tape::enter)
      .def("leave", &Tape::leave)
      .def(
          "outside",
          [](Tape& tape, const py::object& tensor) {
            const Tensor value = tensor.cast<Tensor>(), plain = tape.scope().outside(value);
            return plain.get() == value.get() ? tensor : py::cast(plain);
          },
          py::arg("tensor"), "The tensor without the tape; the same object where it is not the tape's.")
      .def(
          "inside", [](Tape& tape, const Tensor& argument) { return tape.scope().inside(argument); },
          py::arg("argument"), "The tensor of the tape for an argument of the function.")
      .def(
          "has_own_gradient", [](Tape& tape, const Tensor& tensor) { return tape.has_own_gradient(tensor); },
          py::arg("tensor"), "Has the function made the tensor a leaf, and computed its gradient?")
      .def("gradients", &Tape::gradients)
      .def("flags", &Tape::flags);
}

}  // namespace backplane::python
