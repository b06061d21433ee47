// What a graph within another one says that its results are, for the verifier: a function that can be asked for forms
// and not run.
#pragma once

#include "functions/closed_function.hpp"
#include "graph/graph.hpp"

namespace backplane::core::graph {

class StatedFunction final : public ClosedFunction {
 public:
  // `symbols`: of `graph`; empty where they follow from the inputs. `graph` is verified, and outlives this.
  StatedFunction(const Graph& graph, std::vector<int64_t> symbols);
  std::vector<Tensor> call(std::span<const Tensor> args) override;
  std::vector<Tensor> result_forms(std::span<const Tensor> args) const override;

 private:
  const Graph& graph_;
  std::vector<int64_t> symbols_;
};

// The forms of the results of a call of the op, whose Graph arguments are StatedFunctions.
std::vector<Tensor> result_forms(const OpEntry& op, const bp_value* args, int32_t n_args);

}  // namespace backplane::core::graph
