// grad and value_and_grad: the function's arguments become inputs of a reverse-mode scope, its value the root.
#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/transforms/transform_values.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {
namespace {

struct GradOptions final : TransformOptions {
  std::unique_ptr<TransformOptions> clone() const override { return std::make_unique<GradOptions>(*this); }
  std::vector<Py_ssize_t> argnums;
  bool single = true;  // an int and not a sequence of them
  bool has_aux = false;
  bool holomorphic = false;
  bool with_value = false;
};

bool read_argnums(const char* name, PyObject* object, GradOptions& options) {
  int64_t number = 0;
  if (const int read = read_int(object, &number); read != 0) {
    if (read < 0) place_error(name, "argnums");
    options.argnums.push_back(number);
    return read == 1;
  }
  options.single = false;
  const bool sequence = PyTuple_Check(object) || PyList_Check(object);
  PyRef numbers = PyRef::steal(sequence ? PySequence_Tuple(object) : nullptr);
  for (Py_ssize_t i = 0; numbers && i < PyTuple_GET_SIZE(numbers.get()); ++i) {
    const int read = read_int(PyTuple_GET_ITEM(numbers.get(), i), &number);
    if (read < 0) return place_error(name, "argnums"), false;
    if (read == 0) numbers = PyRef{};
    options.argnums.push_back(number);
  }
  if (numbers) return true;
  PyRef kind = found_kind(object);
  if (kind)
    raise(BP_ERROR_TYPE, "%s: argument argnums: found %U, expected an int or a tuple of ints", name, kind.get());
  return false;
}

// The positions of the arguments that are differentiated, each at most once.
bool resolve(const TransformCall& call, const GradOptions& options, InlineVector<Py_ssize_t, 4>& positions) {
  for (Py_ssize_t number : options.argnums) {
    const Py_ssize_t position = number < 0 ? number + call.n_args : number;
    if (position < 0 || position >= call.n_args) {
      raise(BP_ERROR_VALUE,
            "%s: argument argnums: found %zd, but the call has %zd positional arguments; give the argument by position",
            call.name, number, call.n_args);
      return false;
    }
    for (Py_ssize_t other : positions) {
      if (other == position) {
        raise(BP_ERROR_VALUE, "%s: argument argnums: found argument %zd twice, expected each once", call.name,
              position);
        return false;
      }
    }
    positions.push_back(position);
  }
  return true;
}

bool check_loss(const TransformCall& call, const GradOptions& options, const Tensor& loss) {
  const char* dtype = dtype_name(loss.dtype());
  const char* expected = nullptr;
  if (loss.ndim() != 0) {
    raise(BP_ERROR_SHAPE,
          "%s: the function returned a tensor of shape %s; expected one without dimensions; use jacrev or vjp, or "
          "reduce it",
          call.name, shape_text(loss.shape()).c_str());
    return false;
  }
  if (!is_differentiable(loss)) {
    expected = "a floating one; cast it with astype";
  } else if (options.holomorphic && !is_complex(loss)) {
    expected = "a complex one, because of holomorphic=True";
  } else if (!options.holomorphic && is_complex(loss)) {
    expected = "a real one; take its real part, or pass holomorphic=True where the function is holomorphic";
  }
  if (expected)
    raise(BP_ERROR_DTYPE, "%s: the function returned a tensor of dtype %s; expected %s", call.name, dtype, expected);
  return !expected;
}

bool read_loss(const TransformCall& call, const GradOptions& options, PyObject* returned, bool took_elements,
               Outputs& outputs) {
  PyObject *value = returned, *aux = nullptr;
  if (options.has_aux && !split_aux(call.name, returned, &value, &aux)) return false;
  Tensor loss;
  const int read = read_leaf(value, &loss);
  if (read < 0) return false;
  if (read == 0) {
    PyRef kind = found_kind(value);
    if (kind)
      raise(BP_ERROR_TYPE, "%s: the function returned %U; expected a tensor without dimensions%s", call.name,
            kind.get(), PyTuple_Check(value) ? ", and beside it what has_aux=True allows" : "");
    return false;
  }
  return check_loss(call, options, loss) && outputs.read(call.name, returned, options.has_aux, took_elements);
}

// The arguments at `positions` as inputs of the scope, in the call's array.
bool enter_inputs(const TransformCall& call, const GradOptions& options, GradScope& scope, InputTrees& inputs,
                  CallArray& array, uint64_t* bytes) {
  InlineVector<Py_ssize_t, 4> positions;
  if (!resolve(call, options, positions)) return false;
  for (Py_ssize_t position : positions)
    if (!inputs.add_variables(call.args[position], position)) return false;
  InlineVector<Tensor, 4> entered;
  for (size_t i = 0; i < inputs.leaves.size(); ++i) {
    Tensor tensor;
    const int read = read_leaf(inputs.leaves[i].get(), &tensor);
    if (read == 0) raise_leaf(call.name, inputs.path(i), inputs.leaves[i].get(), "a floating or complex tensor");
    if (read != 1) return false;
    if (!is_differentiable(tensor) || options.holomorphic) [[unlikely]] {
      if (!check_differentiable(call.name, inputs.path(i), tensor, options.holomorphic)) return false;
    }
    *bytes += work_of(*tensor.get());
    entered.push_back(scope.enter(tensor));
  }
  for (const InputTrees::Entry& entry : inputs.entries) {
    PyRef argument = PyRef::steal(unflatten_tensors(entry.tree, entered.data() + entry.first));
    if (!argument) return false;
    array.replace(entry.position, std::move(argument));
  }
  return true;
}

// One gradient per differentiated argument, in its structure; of several, a tuple.
PyObject* wrap_gradients(const GradOptions& options, InputTrees& inputs, std::vector<Tensor>& gradients) {
  for (InputTrees::Entry& entry : inputs.entries) keep_gradients_only(entry.tree);
  if (options.holomorphic) {
    // The pullback is the adjoint: of a holomorphic function, the conjugate of its derivative.
    const OpHandle conj = require_op(Slot::Conj);
    if (conj == BP_NO_OP) return nullptr;
    for (Tensor& gradient : gradients) gradient = call(conj, {value(gradient)});
  }
  if (options.single) return unflatten_tensors(inputs.entries[0].tree, gradients.data());
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(inputs.entries.size())));
  for (size_t i = 0; tuple && i < inputs.entries.size(); ++i) {
    PyObject* gradient = unflatten_tensors(inputs.entries[i].tree, gradients.data() + inputs.entries[i].first);
    if (!gradient) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), gradient);
  }
  return tuple.release();
}

// grad: gradients, or (gradients, aux); value_and_grad: (value, gradients), or ((value, aux), gradients).
PyObject* arrange(const GradOptions& options, Outputs& outputs, PyRef gradients) {
  if (!options.with_value && !options.has_aux) return gradients.release();
  PyRef aux = PyRef::steal(options.has_aux ? outputs.aux() : nullptr);
  if (options.has_aux && !aux) return nullptr;
  if (!options.with_value) return PyTuple_Pack(2, gradients.get(), aux.get());
  PyRef value = PyRef::steal(outputs.value());
  if (value && aux) value = PyRef::steal(PyTuple_Pack(2, value.get(), aux.get()));
  return value ? PyTuple_Pack(2, value.get(), gradients.get()) : nullptr;
}

PyObject* grad_body(const TransformCall& call, const TransformOptions& any_options) {
  const auto& options = static_cast<const GradOptions&>(any_options);
  GradScope scope(call.name);
  InputTrees inputs;
  CallArray array(call.args, call.n_args + call.n_keywords());
  uint64_t bytes = 0;
  if (!enter_inputs(call, options, scope, inputs, array, &bytes)) return nullptr;
  PyRef returned = PyRef::steal(array.call(call.function, call.n_args, call.keywords));
  Outputs outputs;
  if (!returned || !read_loss(call, options, returned.get(), array.took_elements(), outputs)) return nullptr;
  const Pullback pullback = scope.leave({outputs.tensors.data(), outputs.tensors.size()}, 1);
  std::vector<Tensor> gradients;
  if (bytes < kReleaseGilBytes) {
    gradients = pullback.of_one();
  } else {
    WithoutGil unlocked;
    gradients = pullback.of_one();
  }
  PyRef wrapped = PyRef::steal(wrap_gradients(options, inputs, gradients));
  return wrapped ? arrange(options, outputs, std::move(wrapped)) : nullptr;
}

PyObject* make_grad(const char* name, const char* format, bool with_value, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"fun", "argnums", "has_aux", "holomorphic", nullptr};
  PyObject *function = nullptr, *argnums = nullptr;
  int has_aux = 0, holomorphic = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(keywords), &function, &argnums, &has_aux,
                                   &holomorphic)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto options = std::make_unique<GradOptions>();
    if (!argnums) {
      options->argnums.push_back(0);
    } else if (!read_argnums(name, argnums, *options)) {
      return nullptr;
    }
    options->has_aux = has_aux != 0;
    options->holomorphic = holomorphic != 0;
    options->with_value = with_value;
    return make_transformed(name, function, grad_body, std::move(options));
  });
}

}  // namespace

PyObject* grad_function(PyObject*, PyObject* args, PyObject* kwargs) {
  return make_grad("grad", "O|Opp:grad", false, args, kwargs);
}

PyObject* value_and_grad_function(PyObject*, PyObject* args, PyObject* kwargs) {
  return make_grad("value_and_grad", "O|Opp:value_and_grad", true, args, kwargs);
}

}  // namespace backplane::python
