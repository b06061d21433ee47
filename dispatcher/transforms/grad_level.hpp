// Reverse mode as a level: the graph of a functional gradient, of the same nodes as the tape.
//
// The level concerns a call by its arguments: those that wrap a value with a history here. Values are kept as seen
// below the level, so that the pullback outlives it, and its formulas run as ordinary calls below.
#pragma once

#include <functional>
#include <vector>

#include "transforms/level.hpp"

namespace backplane::core {

// The handler of a grad level, for LevelScope.
void call_grad_level(Level& level, const Call& call);

using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
struct ValueAndGradients {
  std::vector<Tensor> values;
  std::vector<Tensor> gradients;  // per input, of its shape and dtype; zeros where the value does not depend on it
};
// Gradients of the function's first result, one element, with respect to all inputs. The others are values only.
ValueAndGradients value_and_gradients(const Function& function, std::span<const Tensor> inputs);

}  // namespace backplane::core
