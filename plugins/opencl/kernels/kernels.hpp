// The kernels: every primitive of the registry. All other ops reach the device by decomposition.
//
// Each records its work on the call's queue and returns; nothing of the call is used later but memory, which the host
// keeps.
#pragma once

#include "backplane/plugin/element.hpp"
#include "backplane/plugin/indexing.hpp"
#include "runtime/backend.hpp"

namespace opencl {

using namespace backplane::plugin;

void register_elementwise(const Registrar& registrar);  // what an op does to one element, over whole tensors
void register_movement(const Registrar& registrar);     // elements that change their places
void register_values(const Registrar& registrar);       // what makes, casts and folds elements
void register_lines(const Registrar& registrar);        // along an axis: argmax, cumsum, argsort, matmul

}  // namespace opencl
