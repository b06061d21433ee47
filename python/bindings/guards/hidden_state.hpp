// What the results of functions of C hang on besides their arguments: settings, clocks' zones, the state of objects.
//
// A call of a function about which nothing is known here is traced for itself alone. All functions need the interpreter
// lock, and leave no Python error.
#pragma once

#include <span>
#include <string>

#include "bindings/guards/reads.hpp"

namespace backplane::python {

struct CallOfC {
  PyObject* function;
  PyObject* self;                        // whose method it is, or nullptr
  const std::string &name, &module;      // as the function's __name__ and __module__ say
  std::span<PyObject* const> arguments;  // with `self`, where that is not in the function
  std::span<PyObject* const> given;      // as the function is called again
};
void note_hidden_state(const CallOfC& call, Reads& reads, const Reads::Storing& at);
// Of a function of this package, in C or in Python, whose instructions are not looked at.
void note_settings(PyObject* function, const std::string& name, std::span<PyObject* const> given, Reads& reads,
                   const Reads::Storing& at);
// Arithmetic of decimals depends on a context that is not an operand. Notes it if a call has a decimal argument.
void note_decimals(std::span<PyObject* const> arguments, Reads& reads);
void note_decimal_context(Reads& reads);
// Arithmetic of NumPy may warn or raise, as np.errstate says.
void note_numpy_errors(Reads& reads);

}  // namespace backplane::python
