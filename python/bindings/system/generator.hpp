// Generator: where random numbers come from. It only hands out positions in a Philox sequence (a key and a counter), so
// one seed gives the same bits on every backend; the bits are made by the ops that take the position.
//
// The interpreter lock guards the counter.
#pragma once

#include <span>

#include "backplane/op.hpp"
#include "bindings/system/py_ref.hpp"

namespace backplane::python {

bool add_generator(PyObject* module);

bool is_generator(PyObject* object) noexcept;

// A new Generator at this position, or nullptr with a Python error.
PyObject* wrap_generator(bp_generator_state state) noexcept;

// Reserves the positions of a call from a Generator, or from the process's own for NULL. False: a Python error is set
// (a checkpoint that runs again differs from its first run).
bool reserve_positions(PyObject* generator, OpHandle op, std::span<const bp_value> args,
                       bp_generator_state* reserved) noexcept;

}  // namespace backplane::python
