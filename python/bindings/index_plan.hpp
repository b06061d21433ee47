// The meaning of x[key]: a key split into the view that its slices, ints and new axes make, and the index arrays that
// then pick elements from that view.
//
// Follows NumPy: an int beside an index array is an index array of no dimensions; a boolean mask stands for the
// positions of its true elements, one array per axis of the mask. Needs the interpreter lock; functions throw Error, or
// PythonError where a Python error is set.
#pragma once

#include <vector>

#include "backplane/tensor.hpp"
#include "py_ref.hpp"

namespace backplane::python {

// A Python error is set; unwinds to the slot.
struct PythonError {};

struct IndexPlan {
  // Of the view, in terms of the indexed tensor's axes. An int is a slice of one, squeezed afterwards.
  std::vector<int64_t> slice_axes;
  std::vector<bp_value> starts;
  std::vector<bp_value> stops;
  std::vector<int64_t> steps;
  std::vector<int64_t> squeezed;  // axes of the sliced tensor
  std::vector<int64_t> inserted;  // positions in the view
  // One per axis of the view up to the last index array; empty tensors for axes that are taken whole.
  std::vector<Tensor> arrays;
};

IndexPlan plan_index(const Tensor& tensor, PyObject* key);

// The view of a plan; the plan's arrays are left to the caller.
Tensor view_of(const Tensor& tensor, const IndexPlan& plan);

}  // namespace backplane::python
