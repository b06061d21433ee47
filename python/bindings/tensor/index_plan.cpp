// Reads a key item by item, keeping count of the tensor's axes and of the view's.
#include "bindings/tensor/index_plan.hpp"

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

[[noreturn]] void raise_key(PyObject* item) {
  PyRef kind = found_kind(item);
  if (kind) {
    raise(BP_ERROR_INDEX, "index: found %U, expected ints, slices, None, ..., or integer or boolean arrays",
          kind.get());
  }
  throw PythonError{};
}

OpHandle needed(Slot slot) {
  const OpHandle op = require_op(slot);
  if (op == BP_NO_OP) throw PythonError{};
  return op;
}

// An item as Python spells it, read once.
struct Item {
  enum Kind { kInt, kSlice, kNewAxis, kEllipsis, kArray } kind;
  int64_t integer;
  PyObject* slice;   // borrowed from the key
  bp_tensor* array;  // borrowed from the key's reader

  Item() = default;  // unset, so that a list of items that nobody fills costs nothing
  Item(Kind k, int64_t i = 0, PyObject* s = nullptr, bp_tensor* a = nullptr)
      : kind(k), integer(i), slice(s), array(a) {}
  bool is_mask() const { return kind == kArray && array->dtype == BP_BOOL; }
  int64_t axes() const {
    if (kind == kNewAxis || kind == kEllipsis) return 0;
    return is_mask() ? array->dl.ndim : 1;
  }
};

Tensor on_device_of(const Tensor& tensor, Tensor array) {
  const bool same =
      array.device().backend == tensor.device().backend && array.device().ordinal == tensor.device().ordinal;
  return same ? array : to_device(array, tensor.device());
}

Tensor read_array(const Tensor& tensor, PyObject* item) {
  PyRef object = PyRef::steal(tensor_of_data(item));
  if (!object) throw PythonError{};
  Tensor array = tensor_of(object.get());
  // An empty list says nothing of its dtype.
  if (array.get()->nbytes == 0 && (PyList_Check(item) || PyTuple_Check(item)))
    array = call(needed(Slot::Cast), {value(array), dtype_value(BP_INT64)});
  BP_CHECK(BP_DTYPE_BIT(array.dtype()) & (BP_MASK_INTEGER | BP_MASK_BOOL), INDEX, "index: found an array of ",
           dtype_name(array.dtype()), ", expected integers or bools");
  return is_tensor(item) ? array : on_device_of(tensor, std::move(array));
}

// Where a mask from outside of a trace is true: its elements are read, for no call of a trace has values.
std::vector<Tensor> known_positions(const Tensor& mask) {
  const Tensor read = plain_value(mask, "index");
  std::vector<char> chosen(read.get()->nbytes);
  read_elements(read, chosen.data());
  std::vector<int64_t> sizes(mask.shape().begin(), mask.shape().end());
  if (sizes.empty()) sizes.push_back(1);
  std::vector<std::vector<int64_t>> places(sizes.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis]) places[axis].push_back(rest % sizes[axis]);
  }
  std::vector<Tensor> arrays;
  for (const std::vector<int64_t>& along : places) {
    const auto count = static_cast<int64_t>(along.size());
    arrays.push_back(from_host(along.data(), Shape(&count, 1), {}, BP_INT64, mask.device()));
  }
  return arrays;
}

// Where the mask is true, an array per axis; one for a mask without axes.
std::vector<Tensor> positions_of(const Tensor& mask) {
  if (every_call_taken() && !is_transformed(mask)) return known_positions(mask);
  try {
    const int64_t first = 0;
    const Tensor several = mask.ndim() ? mask : call(needed(Slot::Unsqueeze), {value(mask), value(Shape(&first, 1))});
    const Tensor rows = call(needed(Slot::Positions), {value(several)});
    std::vector<Tensor> arrays;
    for (int64_t i = 0; i < several.ndim(); ++i)
      arrays.push_back(call(needed(Slot::Select), {value(rows), value(int64_t{1}), value(i)}));
    return arrays;
  } catch (const Error& error) {
    const std::vector<const char*> transforms = transforms_of(mask);
    if (error.code() != BP_ERROR_NOT_IMPLEMENTED || transforms.empty()) throw;
    detail::fail(BP_ERROR_NOT_IMPLEMENTED,
                 "index: the number of elements that a mask selects depends on its values, which are not known inside ",
                 transforms[0],
                 ". Fix: keep all elements, and choose with where(mask, x, other); x[mask] = value takes one value for "
                 "all of them");
  }
}

// The items of a key; owns the arrays that were made from lists and the like.
class KeyReader {
 public:
  KeyReader(const Tensor& tensor, PyObject* key) : tensor_(tensor) {
    const bool several = PyTuple_Check(key);
    const Py_ssize_t count = several ? PyTuple_GET_SIZE(key) : 1;
    for (Py_ssize_t i = 0; i < count; ++i) add(read(several ? PyTuple_GET_ITEM(key, i) : key));
    BP_CHECK(ellipses_ <= 1, INDEX, "index: found ", ellipses_, " ellipses ('...'), expected at most one");
    BP_CHECK(used_ <= tensor.ndim(), INDEX, "index: found indices for ", used_, " axes, expected at most ",
             tensor.ndim(), ", the tensor's");
    if (!ellipses_) add({Item::kEllipsis});
  }

  std::span<const Item> items() const { return items_.span(); }
  int64_t used_axes() const { return used_; }
  bool has_arrays() const { return has_arrays_; }

 private:
  void add(Item item) {
    items_.push(item);
    used_ += item.axes();
    ellipses_ += item.kind == Item::kEllipsis;
    has_arrays_ |= item.kind == Item::kArray;
  }

  Item read(PyObject* item) {
    if (PySlice_Check(item)) return {Item::kSlice, 0, item};
    if (item == Py_None) return {Item::kNewAxis};
    if (item == Py_Ellipsis) return {Item::kEllipsis};
    if (!is_tensor(item)) {
      int64_t integer = 0;
      const int read = read_int(item, &integer);
      if (read < 0) {
        place_error("index", nullptr);
        throw PythonError{};
      }
      if (read > 0) return {Item::kInt, integer};
      if (PyUnicode_Check(item) || PyDict_Check(item) || PyFloat_Check(item)) raise_key(item);
    }
    owned_.push_back(read_array(tensor_, item));
    return {Item::kArray, 0, nullptr, owned_.back().get()};
  }

  const Tensor& tensor_;
  AxisList<Item> items_;
  std::vector<Tensor> owned_;
  int64_t used_ = 0;
  int64_t ellipses_ = 0;
  bool has_arrays_ = false;
};

// The key's items against the tensor's axes.
class Planner {
 public:
  Planner(const Tensor& tensor, const KeyReader& key, IndexPlan& plan) : tensor_(tensor), key_(key), plan_(plan) {}

  void run() {
    for (const Item& item : key_.items()) {
      switch (item.kind) {
        case Item::kInt:
          add_int(item.integer);
          break;
        case Item::kSlice:
          add_slice(item.slice);
          break;
        case Item::kNewAxis:
          plan_.inserted.push(view_axis_++);
          break;
        case Item::kEllipsis:
          skip_rest(tensor_.ndim() - key_.used_axes());
          break;
        case Item::kArray:
          add_arrays(item);
          break;
      }
    }
    if (parted_) move_arrays_first();
  }

 private:
  void skip(int64_t axes) {
    axis_ += axes;
    view_axis_ += axes;
  }

  // An ellipsis parts the arrays on its two sides, as a slice does, though it stands for no axis: NumPy's rule, by
  // which the axes of the result that the arrays make then come first.
  void skip_rest(int64_t axes) {
    arrays_before_ = axes == 0 && !plan_.arrays.empty();
    skip(axes);
  }

  void move_arrays_first() {
    plan_.arrays.resize(static_cast<size_t>(view_axis_));
    std::vector<Tensor> arrays;
    std::vector<int64_t> others;
    for (int64_t axis = 0; axis < view_axis_; ++axis) {
      Tensor& array = plan_.arrays[static_cast<size_t>(axis)];
      (array ? plan_.order : others).push_back(axis);
      if (array) arrays.push_back(std::move(array));
    }
    plan_.order.insert(plan_.order.end(), others.begin(), others.end());
    plan_.arrays = std::move(arrays);
  }

  int64_t checked(int64_t index) const {
    const int64_t size = tensor_.shape()[static_cast<size_t>(axis_)];
    BP_CHECK(index >= -size && index < size, INDEX, "index: found ", index, ", expected an int from ", -size, " to ",
             size - 1, " for axis ", axis_, " of size ", size);
    return index < 0 ? index + size : index;
  }

  void add_int(int64_t index) {
    index = checked(index);
    if (key_.has_arrays()) {
      const Tensor host = from_host(&index, {}, {}, BP_INT64, parse_device("cpu"));
      return add_array(on_device_of(tensor_, host));
    }
    push_slice(value(index), value(index + 1), 1);
    plan_.squeezed.push(axis_++);
  }

  void add_slice(PyObject* item) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    unpack_slice(item, &start, &stop, &step);
    const auto* slice = reinterpret_cast<PySliceObject*>(item);
    const bool whole = slice->start == Py_None && slice->stop == Py_None && step == 1;
    if (!whole) {
      push_slice(slice->start == Py_None ? absent() : value(int64_t{start}),
                 slice->stop == Py_None ? absent() : value(int64_t{stop}), step);
    }
    skip(1);
  }

  void push_slice(bp_value start, bp_value stop, int64_t step) {
    plan_.slice_axes.push(axis_);
    plan_.starts.push(start);
    plan_.stops.push(stop);
    plan_.steps.push(step);
  }

  void add_array(Tensor array) {
    plan_.arrays.resize(static_cast<size_t>(view_axis_));
    plan_.arrays.push_back(std::move(array));
    parted_ = parted_ || arrays_before_;
    skip(1);
  }

  void add_arrays(const Item& item) {
    const Tensor array = Tensor::share(item.array);
    if (item.is_mask()) {
      add_mask(array);
    } else {
      add_array(array);
    }
  }

  void add_mask(const Tensor& mask) {
    for (int32_t i = 0; i < mask.ndim(); ++i) {
      const int64_t found = mask.shape()[static_cast<size_t>(i)];
      const int64_t expected = tensor_.shape()[static_cast<size_t>(axis_ + i)];
      BP_CHECK(found == expected || found == 0, INDEX, "index: found a mask of size ", found, " along its axis ", i,
               ", expected ", expected, ", the size of the tensor's axis ", axis_ + i, ", or 0, which selects nothing");
    }
    if (mask.ndim() == 0) return add_mask_of_no_axes(mask);
    for (Tensor& array : positions_of(mask)) add_array(std::move(array));
  }

  // Takes the whole part that it stands before, once or not at all: a new axis of size 1, indexed by [0] or by [].
  void add_mask_of_no_axes(const Tensor& mask) {
    plan_.inserted.push(view_axis_);
    add_array(std::move(positions_of(mask).front()));
    --axis_;  // it stands for no axis of the tensor
  }

  const Tensor& tensor_;
  const KeyReader& key_;
  IndexPlan& plan_;
  int64_t axis_ = 0;
  int64_t view_axis_ = 0;
  bool arrays_before_ = false;  // an ellipsis for no axis
  bool parted_ = false;
};

bp_value value_list(std::span<const bp_value> elements) {
  bp_value list{};
  list.tag = BP_TAG_VALUE_LIST;
  list.count = static_cast<uint32_t>(elements.size());
  list.u.values = elements.data();
  return list;
}

// One int or two among whole slices: a call for each costs less than a slice and a squeeze.
bool is_selection(const IndexPlan& plan) {
  return plan.slice_axes.count == plan.squeezed.count && plan.squeezed.count > 0 && plan.squeezed.count <= 2;
}

}  // namespace

void unpack_slice(PyObject* slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) {
  const auto* parts = reinterpret_cast<PySliceObject*>(slice);
  for (PyObject* part : {parts->start, parts->stop, parts->step})
    BP_CHECK(!is_tensor(part) || !is_transformed(tensor_of(part)), VALUE,
             "index: found a slice with a bound that is a tensor without a value yet, as a traced or mapped function "
             "has them, so the size of the result is not known. Fix: x[i + arange(n)] takes n elements from i on, "
             "and dynamic_slice(x, (i,), (n,)) too");
  if (PySlice_Unpack(slice, start, stop, step) < 0) throw PythonError{};
}

void plan_index(const Tensor& tensor, PyObject* key, IndexPlan& plan) {
  const KeyReader reader(tensor, key);
  Planner(tensor, reader, plan).run();
}

Tensor view_of(const Tensor& tensor, const IndexPlan& plan) {
  Tensor view;
  const auto sofar = [&] { return value(view ? view : tensor); };
  if (is_selection(plan)) {
    for (int i = plan.squeezed.count; i-- > 0;)  // the last axis first: the others keep their numbers
      view = call(needed(Slot::Select), {sofar(), value(plan.squeezed.items[i]), plan.starts.items[i]});
  } else {
    if (plan.slice_axes.count || plan.takes_all()) {
      view = call(needed(Slot::Slice), {sofar(), value(plan.slice_axes.span()), value_list(plan.starts.span()),
                                        value_list(plan.stops.span()), value(plan.steps.span())});
    }
    if (plan.squeezed.count) view = call(needed(Slot::Squeeze), {sofar(), value(plan.squeezed.span())});
  }
  if (plan.inserted.count) view = call(needed(Slot::Unsqueeze), {sofar(), value(plan.inserted.span())});
  if (!plan.order.empty()) view = call(needed(Slot::Permute), {sofar(), value(Shape(plan.order))});
  return view;
}

}  // namespace backplane::python
