// x[key] and x[key] = value: an int or two, a slice, None and x[:, int] go straight to their view op; every other key
// is planned first.
#include <optional>
#include <string>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "bindings/tensor/asarray.hpp"
#include "bindings/tensor/index_plan.hpp"
#include "bindings/tensor/named_dims.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/size_hook.hpp"
#include "bindings/tensor/slots.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {
namespace {

// As guarded(), for bodies that may also leave with a Python error set.
template <class Body>
auto guarded_index(Body&& body) noexcept {
  return guarded([&]() -> std::invoke_result_t<Body> {
    try {
      return body();
    } catch (const PythonError&) {
      if constexpr (std::is_pointer_v<std::invoke_result_t<Body>>) {
        return nullptr;
      } else {
        return -1;
      }
    }
  });
}

bool plain_int(PyObject* key, int64_t* index) {
  if (!PyLong_CheckExact(key)) return false;
  int overflow = 0;
  *index = PyLong_AsLongLongAndOverflow(key, &overflow);
  return !overflow;
}

PyObject* select(bp_tensor* tensor, int64_t axis, int64_t index) {
  const OpHandle op = require_op(Slot::Select);
  if (op == BP_NO_OP) return nullptr;
  const bp_value args[] = {tensor_value(tensor), value(axis), value(index)};
  return call_to_view(op, args, 3);
}

// How many ints the key is, 1 or 2, each in range for its axis; 0 for every other key.
int plain_ints(const bp_tensor* tensor, PyObject* key, int64_t* indices) {
  const bool several = PyTuple_CheckExact(key);
  const Py_ssize_t count = several ? PyTuple_GET_SIZE(key) : 1;
  if (count < 1 || count > 2 || count > tensor->dl.ndim) return 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int64_t size = tensor->dl.shape[i];
    if (!plain_int(several ? PyTuple_GET_ITEM(key, i) : key, &indices[i])) return 0;
    if (indices[i] < -size || indices[i] >= size) return 0;
  }
  return static_cast<int>(count);
}

// The last axis first: the one before it keeps its number.
Tensor selected(const Tensor& tensor, const int64_t* indices, int count) {
  Tensor view = tensor;
  for (int64_t axis = count; axis-- > 0;)
    view = call(op_of(Slot::Select), {value(view), value(axis), value(indices[axis])});
  return view;
}

PyObject* insert_first(bp_tensor* tensor) {
  const OpHandle op = require_op(Slot::Unsqueeze);
  if (op == BP_NO_OP) return nullptr;
  const int64_t axis = 0;
  const bp_value args[] = {tensor_value(tensor), value(Shape(&axis, 1))};
  return call_to_view(op, args, 2);
}

bool is_whole(PyObject* key) {
  const auto* slice = reinterpret_cast<PySliceObject*>(key);
  return PySlice_Check(key) && slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

// x[:, i]
bool is_column(bp_tensor* tensor, PyObject* key, int64_t* index) {
  return tensor->dl.ndim > 1 && PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 2 &&
         is_whole(PyTuple_GET_ITEM(key, 0)) && plain_int(PyTuple_GET_ITEM(key, 1), index);
}

// The parts of a slice, with the default for None. Plain ints, the most common case, are read without Python's general
// way. Throws PythonError and Error.
void read_slice(PyObject* key, int64_t* start, int64_t* stop, int64_t* step) {
  const auto* slice = reinterpret_cast<PySliceObject*>(key);
  *start = *stop = 0;
  *step = 1;
  if (slice->step == Py_None && (slice->start == Py_None || plain_int(slice->start, start)) &&
      (slice->stop == Py_None || plain_int(slice->stop, stop)))
    return;
  Py_ssize_t parts[3];
  unpack_slice(key, &parts[0], &parts[1], &parts[2]);
  *start = parts[0];
  *stop = parts[1];
  *step = parts[2];
}

PyObject* slice_first(bp_tensor* tensor, PyObject* key) {
  const OpHandle op = require_op(Slot::Slice);
  int64_t start, stop, stride;
  if (op == BP_NO_OP) return nullptr;
  const auto read = [&] {
    read_slice(key, &start, &stop, &stride);
    return 0;
  };
  if (guarded_index(read) < 0) return nullptr;
  const auto* slice = reinterpret_cast<PySliceObject*>(key);
  const int64_t axis = 0;
  const bp_value first = slice->start == Py_None ? absent() : value(start);
  const bp_value last = slice->stop == Py_None ? absent() : value(stop);
  bp_value starts{}, stops{};
  starts.tag = stops.tag = BP_TAG_VALUE_LIST;
  starts.count = stops.count = 1;
  starts.u.values = &first;
  stops.u.values = &last;
  const bp_value args[] = {tensor_value(tensor), value(Shape(&axis, 1)), starts, stops, value(Shape(&stride, 1))};
  return call_to_view(op, args, 5);
}

// The arrays of a plan as the argument of the gathering and scattering ops.
struct ArrayList {
  std::vector<bp_tensor*> handles;
  explicit ArrayList(const IndexPlan& plan) {
    for (const Tensor& array : plan.arrays) handles.push_back(array.get());
  }
  bp_value value() const {
    bp_value list{};
    list.tag = BP_TAG_TENSOR_LIST;
    list.count = static_cast<uint32_t>(handles.size());
    list.u.tensors = handles.data();
    return list;
  }
};

PyObject* get_planned(PyObject* self, PyObject* key) {
  return guarded_index([&]() -> PyObject* {
    const BorrowedTensor borrowed(self);
    const Tensor& tensor = borrowed.get();
    IndexPlan plan;
    plan_index(tensor, key, plan);
    if (plan.arrays.empty()) return wrap_tensor(view_of(tensor, plan));
    const OpHandle op = require_op(Slot::Gather);
    if (op == BP_NO_OP) return nullptr;
    const Tensor view = plan.takes_all() ? tensor : view_of(tensor, plan);
    const ArrayList arrays(plan);
    const bp_value args[] = {value(view), arrays.value()};
    PyObject* found = call_to_tensor(op, args, 2);
    return found ? found : as_bad_index();
  });
}

bool same_memory(const bp_tensor* a, const bp_tensor* b) {
  if (!a->storage || a->storage != b->storage || a->dl.byte_offset != b->dl.byte_offset || a->dtype != b->dtype ||
      a->dl.ndim != b->dl.ndim) {
    return false;
  }
  for (int32_t i = 0; i < a->dl.ndim; ++i) {
    if (a->dl.shape[i] != b->dl.shape[i] || a->dl.strides[i] != b->dl.strides[i]) return false;
  }
  return true;
}

// Is it true, as Python and NumPy say of numbers?
bool is_not_zero(const bp_value& number) {
  if (number.tag == BP_TAG_FLOAT) return number.u.f != 0;
  if (number.tag == BP_TAG_COMPLEX) return number.u.c[0] != 0 || number.u.c[1] != 0;
  return number.u.i != 0;
}

// The assigned value; `owner` and `pair` hold it. Numbers are written into bools as their truth;
// a tensor of numbers is not.
bp_value assigned_value(PyObject* object, const Tensor& target, PyRef& owner, double* pair) {
  bp_value number{};
  const int read = read_number(object, &number, pair);
  if (read > 0) return backplane::number(target.dtype() == BP_BOOL ? value(is_not_zero(number)) : number);
  if (read < 0) place_error("setitem", nullptr);
  if (read == 0) owner = PyRef::steal(tensor_of_data(object, target.dtype()));
  if (!owner) throw PythonError{};
  if (!is_tensor(object)) {
    Tensor made = to_device(tensor_of(owner.get()), target.device());
    if (target.dtype() == BP_BOOL) made = call(op_of(Slot::Cast), {value(made), dtype_value(BP_BOOL)});
    owner = PyRef::steal(wrap_tensor(std::move(made)));
    if (!owner) throw PythonError{};
  }
  return tensor_value(handle_of(owner.get()));
}

// If the assigned value has more axes than the target, leading axes with one element are dropped,
// as NumPy and PyTorch do; `owner` holds the result. If it still does not fit, the op raises the error.
bp_value without_first_axes(bp_value assigned, int64_t ndim, PyRef& owner) {
  if (assigned.tag != BP_TAG_TENSOR || assigned.u.t->dl.ndim <= ndim) return assigned;
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < assigned.u.t->dl.ndim - ndim; ++axis) {
    if (assigned.u.t->dl.shape[axis] != 1) return assigned;
    axes.push_back(axis);
  }
  owner = PyRef::steal(wrap_tensor(call(op_of(Slot::Squeeze), {assigned, value(Shape(axes))})));
  if (!owner) throw PythonError{};
  return tensor_value(handle_of(owner.get()));
}

// What the user wrote stands in the error for the op that writes.
[[gnu::cold]] int raise_assignment(bp_status status, OpHandle op) noexcept {
  return guarded([&] {
    const std::string prefix = std::string(op_def(op).name) + ": ";
    std::string text = last_error();
    if (text.starts_with(prefix)) text.replace(0, prefix.size(), "x[index] = value: ");
    raise_text(status, text.c_str());
    return -1;
  });
}

int write(Slot slot, const bp_value* args, int32_t n_args) {
  const OpHandle op = require_op(slot);
  if (op == BP_NO_OP) return -1;
  const bp_status status = call_op_inplace(op, args, n_args, bytes_of(args, n_args));
  return status ? raise_assignment(status, op) : 0;
}

// x[key] op= v ends with x[key] = the view that was changed: it holds the values already, and their history.
bool holds_already(const Tensor& target, const Tensor& source) {
  return same_memory(target.get(), source.get()) &&
         (have_one_base(target, source) || !grad_enabled() || (!requires_grad(source) && !requires_grad(target)));
}

int assign(const Tensor& target, PyObject* object) {
  if (is_tensor(object) && holds_already(target, tensor_of(object))) return 0;
  PyRef owner;
  double pair[2];
  // Writes where a slice of no axes reads: everywhere.
  const bp_value none = value(Shape());
  bp_value absent_none = none;
  absent_none.tag = BP_TAG_VALUE_LIST;
  const bp_value assigned = without_first_axes(assigned_value(object, target, owner, pair), target.ndim(), owner);
  const bp_value args[] = {value(target), assigned, none, absent_none, absent_none, none};
  return write(Slot::Assign, args, 6);
}

// x[mask] = v where a transform is active: no positions are looked for, whose number no transform knows. Not where v
// has an element for each of them.
std::optional<int> fill_masked(const Tensor& tensor, PyObject* key, PyObject* object) {
  if (PyTuple_Check(key) && PyTuple_GET_SIZE(key) == 1) key = PyTuple_GET_ITEM(key, 0);
  if (!is_tensor(key)) return {};
  Tensor mask = tensor_of(key);
  if (mask.dtype() != BP_BOOL || mask.ndim() > tensor.ndim() ||
      !std::equal(mask.shape().begin(), mask.shape().end(), tensor.shape().begin()))
    return {};
  PyRef owner;
  double pair[2];
  const bp_value v = assigned_value(object, tensor, owner, pair);
  if (v.tag == BP_TAG_TENSOR && v.u.t->dl.ndim > tensor.ndim() - mask.ndim()) return {};
  std::vector<int64_t> after;
  for (int64_t axis = mask.ndim(); axis < tensor.ndim(); ++axis) after.push_back(axis);
  if (!after.empty()) mask = call(op_of(Slot::Unsqueeze), {value(mask), value(Shape(after))});
  const bp_value args[] = {value(tensor), value(mask), v};
  return write(Slot::Fill, args, 3);
}

int set_planned(PyObject* self, PyObject* key, PyObject* object) {
  const Tensor tensor = tensor_of(self);
  int64_t indices[2];
  if (const int count = plain_ints(tensor.get(), key, indices)) {
    if (require_op(Slot::Select) == BP_NO_OP) return -1;
    return assign(selected(tensor, indices, count), object);
  }
  if (transforms_active())
    if (const std::optional<int> done = fill_masked(tensor, key, object)) return *done;
  IndexPlan plan;
  plan_index(tensor, key, plan);
  const Tensor target = plan.takes_all() ? tensor : view_of(tensor, plan);
  if (plan.arrays.empty()) return assign(target, object);
  PyRef owner;
  double pair[2];
  const ArrayList arrays(plan);
  const bp_value assigned =
      without_first_axes(assigned_value(object, target, owner, pair), plan.selected_ndim(target.ndim()), owner);
  const bp_value args[] = {value(target), arrays.value(), assigned};
  const int done = write(Slot::Scatter, args, 3);
  if (done < 0) as_bad_index();
  return done;
}

// Python: Tensor.__len__(self) -> int
Py_ssize_t length(PyObject* self) {
  const bp_tensor* tensor = handle_of(self);
  if (tensor->dl.ndim == 0) {
    raise(BP_ERROR_TYPE, "len: a tensor of no dimensions has no length");
    return -1;
  }
  note_length(self);
  return static_cast<Py_ssize_t>(tensor->dl.shape[0]);
}

// The sequence protocol's x[i], which Python uses to iterate: the end is an IndexError.
PyObject* get_in_order(PyObject* self, Py_ssize_t index) {
  bp_tensor* tensor = handle_of(self);
  if (tensor->dl.ndim == 0 || index < 0 || index >= tensor->dl.shape[0]) {
    PyErr_SetString(PyExc_IndexError, "index: beyond the first axis");
    return nullptr;
  }
  return select(tensor, 0, index);
}

}  // namespace

// Python: Tensor.__getitem__(self, key: Any, /) -> Tensor
PyObject* get_item(PyObject* self, PyObject* key) {
  bp_tensor* tensor = handle_of(self);
  if (tensor->dl.ndim > 0) [[likely]] {
    int64_t index = 0;
    if (plain_int(key, &index)) return select(tensor, 0, index);
    if (PySlice_Check(key)) return slice_first(tensor, key);
    if (is_column(tensor, key, &index)) return select(tensor, 1, index);
    int64_t indices[2];
    if (const int count = plain_ints(tensor, key, indices); count && require_op(Slot::Select) != BP_NO_OP)
      return guarded_index([&] { return wrap_tensor(selected(BorrowedTensor(self).get(), indices, count)); });
  }
  if (key == Py_None) return insert_first(tensor);
  return has_named_dims(key) ? get_item_by_named_dims(self, key) : get_planned(self, key);
}

// Python: Tensor.__setitem__(self, key: Any, value: Any, /) -> None
int set_item(PyObject* self, PyObject* key, PyObject* object) {
  if (!object) {
    raise(BP_ERROR_TYPE, "del: elements of a tensor cannot be deleted");
    return -1;
  }
  if (has_named_dims(key) || has_named_dims(object)) return set_item_by_named_dims(self, key, object);
  return guarded_index([&] { return set_planned(self, key, object); });
}

void append_index_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_mp_subscript, reinterpret_cast<void*>(get_item)});
  slots.push_back({Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)});
  slots.push_back({Py_mp_length, reinterpret_cast<void*>(length)});
  slots.push_back({Py_sq_item, reinterpret_cast<void*>(get_in_order)});
}

}  // namespace backplane::python
