// Finds who keeps a tensor of a trace that has ended, whatever code put it there.
#pragma once

#include <unordered_set>
#include <vector>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

using Objects = std::unordered_set<PyObject*>;

// The traced tensors of `made`, the objects that a run made and that the garbage collector knows.
std::vector<PyObject*> traced_among(const Objects& made);

// An object that holds one of `left` or of `entered`, directly or through objects of `made`; empty if no object does.
// It is one of `handed`, which may hold those of `entered`, or `roots` lead to it without objects of `made`. `left`:
// the traced tensors of `made`. `entered`: traced inputs that more objects hold than before the run. `handed`: the
// arguments of the run and their contents. `roots`: objects that the run read. Needs the interpreter lock, and leaves
// no Python error.
PyRef keeper_of_traced(const std::vector<PyObject*>& left, const Objects& made, const Objects& entered,
                       const Objects& handed, const std::vector<PyObject*>& roots);

}  // namespace backplane::python
