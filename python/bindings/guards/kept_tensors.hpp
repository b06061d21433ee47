// Finds who keeps a tensor of a trace that has ended, whatever code put it there.
#pragma once

#include <unordered_set>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

using Objects = std::unordered_set<PyObject*>;

// Who holds a traced tensor of `made`, or one of `entered`, directly or through objects of `made`: the first such
// object that is in `handed`, which may hold those of `entered`, or that one of `roots` leads to without objects of
// `made`; empty if there is none. `made`: what the run made, and the collector knows. `entered`: the traced inputs that
// more objects hold than before the run. `handed`: the arguments of the run and their contents. `roots`: what the run
// read. Costs next to nothing where no traced tensor is left. Needs the interpreter lock, and leaves no Python error.
PyRef keeper_of_traced(const Objects& made, const Objects& entered, const Objects& handed,
                       const std::vector<PyObject*>& roots);

}  // namespace backplane::python
