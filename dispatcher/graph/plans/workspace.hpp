// The memory of one run of a plan. A plan keeps the workspace of a run that has ended for the next one.
#pragma once

#include <vector>

#include "graph/plans/plan.hpp"
#include "memory/storage.hpp"

namespace backplane::core::graph {

// Handles over arenas of one run, and the arguments that lead to them.
struct Workspace {
  explicit Workspace(const PlanData& plan);
  ~Workspace();
  void give_back() noexcept;
  Workspace(const Workspace&) = delete;
  // Lets the slots of a value show the tensor.
  void bind(const PlanData& plan, ValueId value, TensorImpl* tensor);
  // The same for a tensor that may not be row-major, or lie where kernels cannot begin: then for a copy.
  void bind_any(const PlanData& plan, ValueId value, TensorImpl* tensor);
  void make_handles(const PlanData& plan);
  void patch(const PlanData& plan);
  void forget(const PlanData& plan) noexcept;

  std::vector<bp_value> arguments;
  std::vector<TensorImpl*> handles;  // by slot; nullptr: none uses it. Their storages are others'
  std::vector<Tensor> values;        // of this run, and constants
  std::vector<Tensor> copies;        // of this run
  std::vector<Tensor> constants;     // row-major ones, of constants that are not
  std::vector<bp_storage*> arenas;
  std::vector<bp_storage*> arenas_written;  // in this run
  std::vector<PlanData::MadeFor> made_for;
  std::vector<std::vector<bp_tensor*>> lists;
  std::vector<bp_generator_state> draws;
};

}  // namespace backplane::core::graph
