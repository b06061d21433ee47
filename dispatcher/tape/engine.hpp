// Running formulas from roots backwards.
#pragma once

#include <span>
#include <vector>

#include "memory/process/lock.hpp"
#include "tape/node.hpp"

namespace backplane::core {

// Guards the tensor's gradient: several threads may add to it, read it and replace it.
Lock& gradient_lock(const TensorImpl* tensor);
// A tensor of one value, made at the levels that are active: seeds, and zeros for absent cotangents.
Tensor filled(Shape shape, double fill, bp_dtype dtype, bp_device device);

// `captured` (may be null) receives the cotangents of `inputs` (not added to grads).
struct BackwardRun {
  std::span<const Edge> roots;
  std::span<TensorImpl* const> cotangents;  // one per root
  std::span<const Edge> inputs;
  std::vector<Tensor>* captured = nullptr;
  bool retain_graph = false;
  bool create_graph = false;    // formulas are recorded by what is active: the tape, and the levels below
  bool stop_at_inputs = false;  // an outer pass goes on from there
  bool only_paths = false;      // some of the history may lead to no input
};
void run_backward(const BackwardRun& run);

// The cotangent that a pass from `root` begins with: the given one, checked, or one for a root of one element.
Tensor seed_of(const Tensor& root, const Tensor& cotangent);
// Runs the hooks of a leaf, which may replace its gradient, without recording.
void run_leaf_hooks(TensorImpl* leaf, Tensor& gradient);

}  // namespace backplane::core
