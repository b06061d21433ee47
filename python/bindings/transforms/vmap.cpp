// vmap: the mapped axes of the arguments, with which the function is called once, and the batch in its results.
//
// in_axes and out_axes are prefixes of the arguments' and the result's structure: an int or None stands for everything
// below its place.
#include <limits>
#include <optional>
#include <string_view>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/transforms/transform_values.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {
namespace {

constexpr int64_t kNoAxis = std::numeric_limits<int64_t>::min();

// in_axes or out_axes: one axis for everything, or a prefix.
struct Axes {
  int64_t single = 0;
  PyRef prefix;  // empty where `single` says it
};

struct BatchOptions final : TransformOptions {
  std::unique_ptr<TransformOptions> clone() const override { return std::make_unique<BatchOptions>(*this); }
  Axes in;
  Axes out;
  int64_t size = -1;  // -1: that of the mapped axes
  Randomness randomness = Randomness::kError;
};

// NumPy's integers too, but no arrays.
bool is_axis(PyObject* object) {
  return object == Py_None || PyLong_Check(object) ||
         (PyIndex_Check(object) && !is_tensor(object) && !PySequence_Check(object));
}

// Far out where the axis has more than 64 bits; -1 also with a Python error.
int64_t axis_value(PyObject* axis) {
  const int64_t value = axis == Py_None ? kNoAxis : PyNumber_AsSsize_t(axis, nullptr);
  return axis != Py_None && value == kNoAxis ? value + 1 : value;
}

bool raise_axis(const char* argument, PyObject* found) {
  PyRef kind = found_kind(found);
  if (kind)
    raise(BP_ERROR_TYPE, "vmap: argument %s: found %U, expected an int, None, or a container of these", argument,
          kind.get());
  return false;
}

bool read_axes(const char* argument, PyObject* object, Axes* axes) {
  if (!object) return true;
  if (is_axis(object)) {
    axes->single = axis_value(object);
    return !PyErr_Occurred();
  }
  Leaves leaves;
  Tree tree;
  if (!flatten_tree(object, &leaves, &tree)) return false;
  for (const PyRef& leaf : leaves)
    if (!is_axis(leaf.get())) return raise_axis(argument, leaf.get());
  axes->prefix = PyRef::borrow(object);
  return true;
}

// Writes the axis of each of the tree's leaves.
bool spread(PyObject* prefix, const Tree& tree, const MatchNames& names, InlineVector<int64_t, 8>& axes) {
  return walk_prefix(prefix, tree, is_axis, names, [&](PyObject* axis, size_t, size_t count) {
    const int64_t value = axis_value(axis);
    if (PyErr_Occurred()) return false;
    for (size_t i = 0; i < count; ++i) axes.push_back(value);
    return true;
  });
}

constexpr char kPrefixFix[] = "an int or None there applies to all leaves below it";

// The arguments of one call: their leaves with the axis along which each is mapped.
class BatchInputs {
 public:
  BatchInputs(const TransformCall& call, const BatchOptions& options) : call_(call), options_(options) {}

  bool read() {
    if (!add_positional()) return false;
    for (Py_ssize_t i = 0; i < call_.n_keywords(); ++i) {
      if (!inputs_.add(call_.args[call_.n_args + i], call_.n_args + i, PyTuple_GET_ITEM(call_.keywords, i)))
        return false;
      fill(0);
    }
    tensors_.resize(inputs_.leaves.size());
    for (size_t i = 0; i < axes_.size(); ++i)
      if (axes_[i] != kNoAxis && !read_mapped(i)) return false;
    return find_size();
  }

  int64_t size() const noexcept { return size_; }

  bool enter(BatchScope& scope, CallArray& array) {
    for (size_t i = 0; i < axes_.size(); ++i) {
      PyObject* leaf = inputs_.leaves[i].get();
      if (axes_[i] == kNoAxis && !is_tensor(leaf)) continue;
      inputs_.leaves[i] =
          PyRef::steal(wrap_tensor(axes_[i] == kNoAxis ? scope.enter_shared(tensor_of(leaf))
                                                       : scope.enter(tensors_[i], static_cast<int32_t>(axes_[i]))));
      if (!inputs_.leaves[i]) return false;
    }
    for (const InputTrees::Entry& entry : inputs_.entries) {
      InlineVector<PyObject*, 8> leaves;
      for (size_t i = entry.first; i < entry.end(); ++i) leaves.push_back(inputs_.leaves[i].get());
      PyRef argument = PyRef::steal(unflatten_tree(entry.tree, leaves.data()));
      if (!argument) return false;
      array.replace(entry.position, std::move(argument));
    }
    return true;
  }

 private:
  void fill(int64_t axis) {
    while (axes_.size() < inputs_.leaves.size()) axes_.push_back(axis);
  }

  bool add_positional() {
    PyObject* prefix = options_.in.prefix.get();
    const bool sequence = prefix && (PyTuple_CheckExact(prefix) || PyList_CheckExact(prefix));
    const Py_ssize_t count = sequence ? PySequence_Fast_GET_SIZE(prefix) : call_.n_args;
    if (prefix && (!sequence || count != call_.n_args)) {
      PyRef kind = found_kind(prefix);
      if (kind)
        raise(
            BP_ERROR_VALUE,
            "vmap: argument in_axes: found %U, but the call has %zd positional arguments; expected an int, None, or a "
            "tuple with one entry per argument",
            kind.get(), call_.n_args);
      return false;
    }
    for (Py_ssize_t i = 0; i < call_.n_args; ++i) {
      if (!inputs_.add(call_.args[i], i)) return false;
      if (!prefix) {
        fill(options_.in.single);
        continue;
      }
      const std::string position = "[" + std::to_string(i) + "]";
      const MatchNames names{"vmap", "in_axes" + position, "args" + position, kPrefixFix};
      PyObject* entry = PySequence_Fast_GET_ITEM(prefix, i);
      if (!spread(entry, inputs_.entries[static_cast<size_t>(i)].tree, names, axes_)) return false;
    }
    return true;
  }

  // The tensor of a mapped leaf, and its axis counted from the front.
  bool read_mapped(size_t i) {
    PyObject* leaf = inputs_.leaves[i].get();
    const int read = read_leaf(leaf, &tensors_[i]);
    if (read == 0)
      raise_leaf("vmap", inputs_.path(i), leaf,
                 "a tensor with an axis to map over; use in_axes=None for an argument that is not mapped");
    if (read != 1) return false;
    const int64_t ndim = tensors_[i].ndim();
    if (ndim == 0) {
      raise(BP_ERROR_SHAPE,
            "vmap: %s: found no axes, expected one to map over; use in_axes=None for an argument that is not mapped",
            inputs_.path(i).c_str());
      return false;
    }
    if (axes_[i] < -ndim || axes_[i] >= ndim) {
      raise(BP_ERROR_INDEX, "vmap: %s: its in_axes is %lld, but its shape is %s: expected an axis from %lld to %lld",
            inputs_.path(i).c_str(), static_cast<long long>(axes_[i]), shape_text(tensors_[i].shape()).c_str(),
            static_cast<long long>(-ndim), static_cast<long long>(ndim) - 1);
      return false;
    }
    if (axes_[i] < 0) axes_[i] += ndim;
    return true;
  }

  int64_t size_of(size_t i) const { return tensors_[i].shape()[static_cast<size_t>(axes_[i])]; }

  bool find_size() {
    size_ = options_.size;
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i] == kNoAxis) continue;
      if (size_ < 0) size_ = size_of(i);
      if (size_of(i) != size_) return raise_sizes();
    }
    if (size_ >= 0) return true;
    raise(BP_ERROR_VALUE, "vmap: found no mapped argument and no axis_size; expected an axis in in_axes, or axis_size");
    return false;
  }

  bool raise_sizes() const {
    std::string found;
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i] == kNoAxis) continue;
      found += (found.empty() ? "" : ", ") + inputs_.path(i) + " has " + std::to_string(size_of(i)) + " (axis " +
               std::to_string(axes_[i]) + ")";
      if (found.size() > 400) {
        found += ", ...";
        break;
      }
    }
    if (options_.size >= 0) found += ", axis_size is " + std::to_string(options_.size);
    raise(BP_ERROR_SHAPE, "vmap: the mapped axes differ in size: %s; expected one size", found.c_str());
    return false;
  }

  const TransformCall& call_;
  const BatchOptions& options_;
  InputTrees inputs_;
  InlineVector<int64_t, 8> axes_;  // per leaf
  std::vector<Tensor> tensors_;    // per leaf; empty for what is not mapped
  int64_t size_ = -1;
};

// The place of the batch in one result, counted from the front.
bool result_axis(const Outputs& outputs, size_t i, int64_t axis, std::optional<int32_t>* place) {
  if (axis == kNoAxis) return true;
  const int64_t ndim = int64_t{outputs.tensors[i].ndim()} + 1;
  if (axis < -ndim || axis >= ndim) {
    raise(BP_ERROR_INDEX,
          "vmap: %s: its out_axes is %lld, but with the batch it has %lld axes: expected from %lld to %lld",
          outputs.path(i).c_str(), static_cast<long long>(axis), static_cast<long long>(ndim),
          static_cast<long long>(-ndim), static_cast<long long>(ndim) - 1);
    return false;
  }
  *place = static_cast<int32_t>(axis < 0 ? axis + ndim : axis);
  return true;
}

PyObject* take_out(BatchScope& scope, const BatchOptions& options, PyObject* returned) {
  Outputs outputs;
  if (!outputs.read("vmap", returned, false)) return nullptr;
  InlineVector<int64_t, 8> axes;
  if (options.out.prefix) {
    const MatchNames names{"vmap", "out_axes", "the function's result", kPrefixFix};
    if (!spread(options.out.prefix.get(), outputs.tree(), names, axes)) return nullptr;
  } else {
    for (size_t i = 0; i < outputs.n_values; ++i) axes.push_back(options.out.single);
  }
  for (size_t i = 0; i < outputs.n_values; ++i) {
    std::optional<int32_t> place;
    if (!result_axis(outputs, i, axes[i], &place)) return nullptr;
    outputs.tensors[i] = scope.leave(outputs.tensors[i], place);
  }
  return outputs.value();
}

PyObject* vmap_body(const TransformCall& call, const TransformOptions& any_options) {
  const auto& options = static_cast<const BatchOptions&>(any_options);
  BatchInputs inputs(call, options);
  if (!inputs.read()) return nullptr;
  BatchScope scope(inputs.size(), options.randomness);
  CallArray array(call.args, call.n_args + call.n_keywords());
  if (!inputs.enter(scope, array)) return nullptr;
  PyRef returned = PyRef::steal(array.call(call.function, call.n_args, call.keywords));
  return returned ? take_out(scope, options, returned.get()) : nullptr;
}

bool read_size(PyObject* object, int64_t* size) {
  if (!object || object == Py_None) return true;
  const int read = read_int(object, size);
  if (read < 0) return place_error("vmap", "axis_size"), false;
  if (read == 1 && *size >= 0) return true;
  raise(BP_ERROR_VALUE, "vmap: argument axis_size: found %R, expected a size (an int from 0 on) or None", object);
  return false;
}

bool read_randomness(const char* word, Randomness* randomness) {
  struct Row {
    const char* word;
    Randomness value;
  };
  static constexpr Row kRows[] = {
      {"error", Randomness::kError}, {"same", Randomness::kSame}, {"different", Randomness::kDifferent}};
  for (const Row& row : kRows) {
    if (std::string_view(row.word) != word) continue;
    *randomness = row.value;
    return true;
  }
  raise(BP_ERROR_VALUE, "vmap: argument randomness: found '%s', expected 'error', 'same' or 'different'", word);
  return false;
}

// PyTorch's words for the axes, as ours.
PyRef with_pytorch_words(PyObject* kwargs) {
  PyRef named = PyRef::borrow(kwargs);
  const std::pair<const char*, const char*> synonyms[] = {{"in_dims", "in_axes"}, {"out_dims", "out_axes"}};
  for (const auto& [word, axes] : synonyms) {
    PyObject* value = kwargs ? PyDict_GetItemString(kwargs, word) : nullptr;
    if (!value) continue;
    if (PyDict_GetItemString(kwargs, axes)) {
      raise(BP_ERROR_TYPE, "vmap: found the arguments '%s' and '%s', which have the same meaning; expected one", word,
            axes);
      return {};
    }
    if (named.get() == kwargs) named = PyRef::steal(PyDict_Copy(kwargs));
    if (!named || PyDict_SetItemString(named.get(), axes, value) < 0 || PyDict_DelItemString(named.get(), word) < 0)
      return {};
  }
  return named;
}

}  // namespace

PyObject* vmap_function(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"fun", "in_axes", "out_axes", "axis_size", "randomness", nullptr};
  PyObject *function = nullptr, *in_axes = nullptr, *out_axes = nullptr, *size = nullptr;
  const char* randomness = "error";
  const PyRef named = with_pytorch_words(kwargs);
  if (kwargs && !named) return nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, named.get(), "O|OOO$s:vmap", const_cast<char**>(keywords), &function, &in_axes,
                                   &out_axes, &size, &randomness)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto options = std::make_unique<BatchOptions>();
    const bool read = read_axes("in_axes", in_axes, &options->in) && read_axes("out_axes", out_axes, &options->out) &&
                      read_size(size, &options->size) && read_randomness(randomness, &options->randomness);
    return read ? make_transformed("vmap", function, vmap_body, std::move(options)) : nullptr;
  });
}

}  // namespace backplane::python
