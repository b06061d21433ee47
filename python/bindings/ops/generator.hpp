// Generator: where random numbers come from. It only hands out positions in a Philox sequence (a key and a counter), so
// one seed gives the same bits on every backend; the bits are made by the ops that take the position.
//
// The interpreter lock guards the counter.
#pragma once

#include <span>

#include "backplane/op.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

bool add_generator(PyObject* module);

bool is_generator(PyObject* object) noexcept;

// A new Generator at this position, or nullptr with a Python error.
PyObject* wrap_generator(bp_generator_state state) noexcept;

bp_generator_state& generator_state(PyObject* generator) noexcept;
PyObject* default_generator() noexcept;  // the process's own; borrowed

// While it lives, the Generators that this thread's calls draw from are noted. On the stack, nested.
class GeneratorNotes {
 public:
  GeneratorNotes() noexcept;
  ~GeneratorNotes();
  GeneratorNotes(const GeneratorNotes&) = delete;
  // Removes and returns the noted object of this state; empty if it has none.
  PyRef take(const bp_generator_state* state) noexcept;
  // Does any note on this thread? Does nobody else hold the Generator of this state?
  static bool is_noting() noexcept;
  static bool is_sole_owner(const bp_generator_state* state) noexcept;

 private:
  friend bool reserve_positions(PyObject*, OpHandle, std::span<const bp_value>, bp_generator_state*) noexcept;
  void note(PyObject* generator);
  std::vector<PyRef> noted_;
  GeneratorNotes* outer_;
};

// Reserves the positions of a call from a Generator, or from the process's own for NULL. False: a Python error is set
// (a checkpoint that runs again differs from its first run).
bool reserve_positions(PyObject* generator, OpHandle op, std::span<const bp_value> args,
                       bp_generator_state* reserved) noexcept;

}  // namespace backplane::python
