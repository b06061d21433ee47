// The meaning of x[key]: a key split into the view that its slices, ints and new axes make, and the index arrays that
// then pick elements from that view.
//
// Follows NumPy: an int beside an index array is an index array of no dimensions; a boolean mask stands for the
// positions of its true elements, one array per axis of the mask. Needs the interpreter lock; functions throw Error, or
// PythonError where a Python error is set.
#pragma once

#include <algorithm>
#include <vector>

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// A Python error is set; unwinds to the slot.
struct PythonError {};

// As many as a tensor may have axes, without the heap: keys are read on every indexing.
template <class T>
struct AxisList {
  static constexpr int kCapacity = 64;
  T items[kCapacity];
  int count = 0;

  void push(T item) {
    BP_CHECK(count < kCapacity, INDEX, "index: found more than ", kCapacity, " indices");
    items[count++] = item;
  }
  std::span<const T> span() const { return {items, static_cast<size_t>(count)}; }
};

struct IndexPlan {
  // Of the view, in terms of the indexed tensor's axes. An int is a slice of one, squeezed afterwards.
  AxisList<int64_t> slice_axes;
  AxisList<bp_value> starts;
  AxisList<bp_value> stops;
  AxisList<int64_t> steps;
  AxisList<int64_t> squeezed;  // axes of the sliced tensor
  AxisList<int64_t> inserted;  // positions in the view
  // One per axis of the view up to the last index array; empty tensors for axes that are taken whole.
  std::vector<Tensor> arrays;
  // The order of the view's axes, if the axes of the arrays must move to the front; else empty.
  std::vector<int64_t> order;

  // Of what the arrays select from a view of so many axes.
  int64_t selected_ndim(int64_t of_view) const {
    int64_t together = 0;
    for (const Tensor& array : arrays) {
      if (!array) continue;
      together = std::max<int64_t>(together, array.ndim());
      --of_view;
    }
    return of_view + together;
  }
  bool takes_all() const { return !slice_axes.count && !squeezed.count && !inserted.count && order.empty(); }
};

// PySlice_Unpack. The error for a tensor without a value names the index to write. Throws PythonError and Error.
void unpack_slice(PyObject* slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step);

void plan_index(const Tensor& tensor, PyObject* key, IndexPlan& plan);

// The view of a plan, in as few calls as its parts need; the plan's arrays are left to the caller.
Tensor view_of(const Tensor& tensor, const IndexPlan& plan);

}  // namespace backplane::python
