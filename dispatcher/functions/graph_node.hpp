// Nodes that stand for the whole run of a function: a checkpoint, which runs it again backwards, and a function with a
// backward rule of its own.
//
// Results and arguments come as seen below the level (nullptr: the tape), and go back as tensors of it with a history.
#pragma once

#include "functions/graph_call.hpp"
#include "grad/grad_level.hpp"
#include "levels/random_log.hpp"

namespace backplane::core {

struct GraphRun {
  const OpEntry& op;
  std::shared_ptr<GraphFunction> function;
  const GradLevel* level;
  Args outer;  // the arguments with their histories
  Args inner;  // as seen below; on the tape the same
  RandomLog random;
};

// One node with an edge to each tensor that the run used. `constant`: per result, has it no derivative? Empty: all may.
std::vector<Tensor> record_checkpoint(GraphRun run, const std::vector<Tensor>& results, Captures& captures,
                                      const std::vector<bool>& constant = {});
// One node with an edge per argument.
std::vector<Tensor> record_custom(GraphRun run, GraphFunction::Forward forward);

}  // namespace backplane::core
