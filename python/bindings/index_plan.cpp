// Reads a key item by item, keeping count of the tensor's axes and of the view's.
#include "index_plan.hpp"

#include "asarray.hpp"
#include "backplane/device.hpp"
#include "convert.hpp"
#include "dtype_device.hpp"
#include "scalars.hpp"
#include "slots.hpp"
#include "tensor_object.hpp"

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
  int64_t integer = 0;
  PyObject* slice = nullptr;  // borrowed from the key
  Tensor array = {};

  bool is_mask() const { return kind == kArray && array.dtype() == BP_BOOL; }
  int64_t axes() const {
    if (kind == kNewAxis || kind == kEllipsis) return 0;
    return is_mask() ? array.ndim() : 1;
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
  if (array.get()->nbytes == 0 && !is_tensor(item))
    array = call(needed(Slot::Cast), {value(array), dtype_value(BP_INT64)});
  BP_CHECK(BP_DTYPE_BIT(array.dtype()) & (BP_MASK_INTEGER | BP_MASK_BOOL), INDEX, "index: found an array of ",
           dtype_name(array.dtype()), ", expected integers or bools");
  return is_tensor(item) ? array : on_device_of(tensor, std::move(array));
}

Item read_item(const Tensor& tensor, PyObject* item) {
  if (PySlice_Check(item)) return {Item::kSlice, 0, item};
  if (item == Py_None) return {Item::kNewAxis};
  if (item == Py_Ellipsis) return {Item::kEllipsis};
  if (!is_tensor(item)) {
    int64_t integer = 0;
    const int read = read_int(item, &integer);
    if (read < 0) throw PythonError{};
    if (read > 0) return {Item::kInt, integer};
    if (PyUnicode_Check(item) || PyDict_Check(item) || PyFloat_Check(item)) raise_key(item);
  }
  return {Item::kArray, 0, nullptr, read_array(tensor, item)};
}

std::vector<Item> read_items(const Tensor& tensor, PyObject* key) {
  std::vector<Item> items;
  if (PyTuple_Check(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) items.push_back(read_item(tensor, PyTuple_GET_ITEM(key, i)));
  } else {
    items.push_back(read_item(tensor, key));
  }
  int64_t used = 0, ellipses = 0;
  for (const Item& item : items) {
    used += item.axes();
    ellipses += item.kind == Item::kEllipsis;
  }
  BP_CHECK(ellipses <= 1, INDEX, "index: found ", ellipses, " ellipses ('...'), expected at most one");
  BP_CHECK(used <= tensor.ndim(), INDEX, "index: found indices for ", used, " axes, expected at most ", tensor.ndim(),
           ", the tensor's");
  if (!ellipses) items.push_back({Item::kEllipsis});
  return items;
}

// The key's items against the tensor's axes.
class Planner {
 public:
  Planner(const Tensor& tensor, std::vector<Item> items) : tensor_(tensor), items_(std::move(items)) {
    for (const Item& item : items_) {
      used_ += item.axes();
      has_arrays_ |= item.kind == Item::kArray;
    }
  }

  IndexPlan plan() {
    for (const Item& item : items_) {
      switch (item.kind) {
        case Item::kInt:
          add_int(item.integer);
          break;
        case Item::kSlice:
          add_slice(item.slice);
          break;
        case Item::kNewAxis:
          plan_.inserted.push_back(view_axis_++);
          break;
        case Item::kEllipsis:
          skip(tensor_.ndim() - used_);
          break;
        case Item::kArray:
          item.is_mask() ? add_mask(item.array) : add_array(item.array);
          break;
      }
    }
    return std::move(plan_);
  }

 private:
  void skip(int64_t axes) {
    axis_ += axes;
    view_axis_ += axes;
  }

  int64_t checked(int64_t index) const {
    const int64_t size = tensor_.shape()[static_cast<size_t>(axis_)];
    BP_CHECK(index >= -size && index < size, INDEX, "index: found ", index, ", expected an int from ", -size, " to ",
             size - 1, " for axis ", axis_, " of size ", size);
    return index < 0 ? index + size : index;
  }

  void add_int(int64_t index) {
    index = checked(index);
    if (has_arrays_) {
      const Tensor host = from_host(&index, {}, {}, BP_INT64, parse_device("cpu"));
      return add_array(on_device_of(tensor_, host));
    }
    push_slice(value(index), value(index + 1), 1);
    plan_.squeezed.push_back(axis_++);
  }

  void add_slice(PyObject* item) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) throw PythonError{};
    const auto* slice = reinterpret_cast<PySliceObject*>(item);
    const bool whole = slice->start == Py_None && slice->stop == Py_None && step == 1;
    if (!whole) {
      push_slice(slice->start == Py_None ? absent() : value(int64_t{start}),
                 slice->stop == Py_None ? absent() : value(int64_t{stop}), step);
    }
    skip(1);
  }

  void push_slice(bp_value start, bp_value stop, int64_t step) {
    plan_.slice_axes.push_back(axis_);
    plan_.starts.push_back(start);
    plan_.stops.push_back(stop);
    plan_.steps.push_back(step);
  }

  void add_array(Tensor array) {
    plan_.arrays.resize(static_cast<size_t>(view_axis_));
    plan_.arrays.push_back(std::move(array));
    skip(1);
  }

  void add_mask(const Tensor& mask) {
    for (int32_t i = 0; i < mask.ndim(); ++i) {
      const int64_t found = mask.shape()[static_cast<size_t>(i)];
      const int64_t expected = tensor_.shape()[static_cast<size_t>(axis_ + i)];
      BP_CHECK(found == expected, INDEX, "index: found a mask of size ", found, " along its axis ", i, ", expected ",
               expected, ", the size of the tensor's axis ", axis_ + i);
    }
    BP_CHECK(mask.ndim() > 0, INDEX, "index: found a mask of no dimensions, expected one axis or more");
    const Tensor positions = call(needed(Slot::Positions), {value(mask)});  // (count, axes of the mask)
    for (int64_t i = 0; i < mask.ndim(); ++i) {
      add_array(call(needed(Slot::Select), {value(positions), value(int64_t{1}), value(i)}));
    }
  }

  const Tensor& tensor_;
  std::vector<Item> items_;
  IndexPlan plan_;
  int64_t used_ = 0;
  bool has_arrays_ = false;
  int64_t axis_ = 0;
  int64_t view_axis_ = 0;
};

bp_value value_list(const std::vector<bp_value>& elements) {
  bp_value list{};
  list.tag = BP_TAG_VALUE_LIST;
  list.count = static_cast<uint32_t>(elements.size());
  list.u.values = elements.data();
  return list;
}

}  // namespace

IndexPlan plan_index(const Tensor& tensor, PyObject* key) { return Planner(tensor, read_items(tensor, key)).plan(); }

Tensor view_of(const Tensor& tensor, const IndexPlan& plan) {
  const bool changes = !plan.squeezed.empty() || !plan.inserted.empty();
  Tensor view = tensor;
  if (!plan.slice_axes.empty() || !changes) {
    view = call(needed(Slot::Slice), {value(view), value(Shape(plan.slice_axes)), value_list(plan.starts),
                                      value_list(plan.stops), value(Shape(plan.steps))});
  }
  if (!plan.squeezed.empty()) view = call(needed(Slot::Squeeze), {value(view), value(Shape(plan.squeezed))});
  if (!plan.inserted.empty()) view = call(needed(Slot::Unsqueeze), {value(view), value(Shape(plan.inserted))});
  return view;
}

}  // namespace backplane::python
